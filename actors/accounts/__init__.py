"""Who may say it: principals, their tokens, limits and the audit of a deployed server.

messages  what the gateway and the owners say     rows      what is kept of principals
tokens    who somebody is, and rotation           pairing   codes that make a desktop a device
audit     who did what, denied or not             desk      what an owner asks and changes
server    the server that checks every message, made of these
"""
