"""What each kind of actor promises, in words, each tried on a small stage.

check    `broken_promises` tries all that a kind promises and lists what is not kept
common   what all promise: shape, handlers, the same story each time, losses, deaths
server, relay, engine, people   what each kind promises besides; people are agents and owners
stage    built-in peers, scripted ones, and a record of everything that was said
"""
