"""Tools that a Graph asks for and would not get, seen without running it.

Only names that are written out in a call's `tools: [...]` are looked at. What a Graph gets as a
sub-Graph may be less: nobody gains a right by being called.
"""

from __future__ import annotations

from collections.abc import Iterator

from actors.graphs.permissions import Rights
from scenarios.graph_check import OPTIONS, Calls, keys_of
from scenarios.graph_files import Graph
from scenarios.js_tokens import Token
from scenarios.problems import Problem, listed, quote, suggest
from scenarios.tool_settings import ToolSettings

QUOTES = "\"'`"


def tool_problems(graph: Graph, settings: ToolSettings) -> Iterator[Problem]:
    """Yield the tools of a Graph's agents that the settings don't give it."""
    calls = Calls(graph, {})
    rights = Rights(settings.permissions)
    for token in _asked(calls):
        tool = token.text.strip(QUOTES)
        if not settings.may_have(tool):
            known = settings.names()
            near = suggest(tool, known)
            cure = f"there is {listed(known, last='and')}" if known else "it sets no tool up"
            message = f"{settings.path} sets no tool {quote(tool)} up"
            yield calls.problem(token, message, f"did you mean {quote(near)}?" if near else cure)
        elif rights.of((graph.name,), tool) == "deny":
            message = f"{settings.path} does not give {quote(tool)} to {graph.name}"
            cure = f'write there: [graphs."{graph.name}"] with {tool} = "ask"'
            yield calls.problem(token, message, cure)


def _asked(calls: Calls) -> Iterator[Token]:
    """Yield the names that stand in `tools: [...]` of calls of agents."""
    place, _ = OPTIONS["agent"]
    for call in calls.all():
        if call.name.text != "agent" or len(call.arguments) <= place:
            continue
        options = call.arguments[place]
        for key in keys_of(options):
            at = options.index(key)
            if key.text.strip(QUOTES) == "tools" and [
                one.text for one in options[at + 1 : at + 3]
            ] == [":", "["]:
                yield from _strings(options[at + 3 :])


def _strings(tokens: list[Token]) -> Iterator[Token]:
    """Yield the texts of a list, up to its end."""
    for token in tokens:
        if token.text == "]":
            return
        if token.kind == "string" and "\\" not in token.text:
            yield token
