"""Tools: what is done for a Graph's agents outside, each behind the guard of its settings.

tool: the contract of one; runner: the actor that a fleet engine asks, which makes the calls
files: reads in folders that are named; web: gets from hosts that are named
shell: runs commands of a list; servers: the tools of MCP servers, floods: what bounds their words
"""
