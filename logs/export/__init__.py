"""Logs in the formats of other tools: one file a format, each from sections to bytes or text.

perfetto    a trace for ui.perfetto.dev: a track an actor, a slice a turn, an arrow a message
protobuf    the few lines of the wire format that such a trace needs
table       CSV: a row a record
otlp        OTLP/JSON: a trace a run, a span a turn that concerns it
lnav        the definition that lnav reads our logs by
"""
