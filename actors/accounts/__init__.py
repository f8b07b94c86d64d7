"""Who may say it: principals, their tokens, limits and the audit of a deployed server.

messages  what the gateway and the owners say     rows      what is kept of principals
pairing   codes by which a desktop gets a name    tokens    what proves who somebody is
audit     who did what, denied or not             server    the server that checks every message
"""
