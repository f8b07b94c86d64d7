"""How it travels: envelopes, their bytes, the clocks and the ways between actors.

envelope  what every message travels in     codec   messages to bytes and back
units     durations and sizes               clock   what an actor may know of time
memory    the simulator's network           faults/ what can go wrong on the way
"""
