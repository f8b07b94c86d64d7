"""How it travels: envelopes, their bytes, the clocks and the ways between actors.

envelope, codec, wire   what messages travel in, as bytes of ours and for other languages
units, clock            durations and sizes; what an actor may know of time
memory, verdict         the simulator's network, and what a fault does to a message
frames, handshake, connection, acceptor, dialer   one greeted link on any byte stream
tcp, pipe, local        sockets, a stream in memory, and the actors of one process joined by them
proxy, proxied, flow, toxic, listening            the fault proxy over TCP; faults/ one file each
wiring, detour, lines   byte faults between actors: over their sockets, or as a model without any
"""
