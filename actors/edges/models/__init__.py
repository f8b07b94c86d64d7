"""Models that live outside: what answers a Graph's agents over HTTP or by a command.

sse, openai, anthropic: what is said to a model server and how its stream is read, without I/O
structured, tool_calls: a schema's question and answer, what tools are offered and called
usage, failures: the tokens, what can go wrong
backend: the contract of what answers; http and command keep it
live: the actor that a fleet engine asks; recording: its answers as a file, to play again
"""
