"""Tools that a Graph and those that it calls ask for and would not get, seen without running them.

Only names that are written out are looked at, in `tools: [...]` and in calls of Graphs. A Graph
that is called has the rights that all its callers have: nobody gains one by being called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from actors.graphs.permissions import Rights
from scenarios.graph_check import OPTIONS, Calls, keys_of
from scenarios.graph_files import SUFFIX, Graph, beside
from scenarios.js_tokens import Token
from scenarios.problems import Problem, listed, quote, suggest
from scenarios.tool_settings import ToolSettings

QUOTES = "\"'`"


def tool_problems(
    graph: Graph, library: Mapping[str, str], settings: ToolSettings
) -> Iterator[Problem]:
    """Yield the tools that the settings don't give to agents of a Graph, nor of those it calls.

    `library` has the sources of what may be called, by file name.
    """
    known = _read_with_called(graph, library)
    callers = _callers(known)
    rights = Rights(settings.permissions)
    for name, calls in known.items():
        for token in _asked(calls):
            tool = _word(token)
            if not settings.may_have(tool):
                yield _unknown(calls, token, settings)
                continue
            for other in (name, *callers[name]):
                if rights.of((other,), tool) == "deny":
                    yield _withheld(calls, token, settings, other, name)
                    break


def _read_with_called(graph: Graph, library: Mapping[str, str]) -> dict[str, Calls]:
    """Return the calls of a Graph, and of each that it comes to, by name."""
    known = {graph.name: Calls(graph, {})}
    names = [graph.name]
    for name in names:  # it grows meanwhile
        for called in _called(known[name]):
            if called not in known and called + SUFFIX in library:
                known[called] = Calls(beside(graph, called + SUFFIX, library), {})
                names.append(called)
    return known


def _callers(known: Mapping[str, Calls]) -> dict[str, list[str]]:
    """Return for each Graph those that come to it, directly or by others, the nearest first."""
    direct = {
        name: [other for other, calls in known.items() if name in _called(calls)] for name in known
    }
    found: dict[str, list[str]] = {}
    for name in known:
        behind = list(direct[name])
        for other in behind:  # it grows meanwhile
            behind += [one for one in direct[other] if one not in behind]
        found[name] = behind
    return found


def _called(calls: Calls) -> list[str]:
    """Return the Graphs that are called by a name written out."""
    found: dict[str, None] = {}
    for call in calls.all():
        first = call.arguments[0]
        if call.name.text == "graph" and len(first) == 1 and first[0].kind == "string":
            found[_word(first[0])] = None
    return list(found)


def _unknown(calls: Calls, token: Token, settings: ToolSettings) -> Problem:
    known, tool = settings.names(), _word(token)
    near = suggest(tool, known)
    cure = f"there is {listed(known, last='and')}" if known else "it sets no tool up"
    message = f"{settings.path} sets no tool {quote(tool)} up"
    return calls.problem(token, message, f"did you mean {quote(near)}?" if near else cure)


def _withheld(
    calls: Calls, token: Token, settings: ToolSettings, denied: str, name: str
) -> Problem:
    tool = _word(token)
    message = f"{settings.path} does not give {quote(tool)} to {denied}"
    if denied != name:
        message += f", so {name} does not have it when {denied} calls it"
    cure = f'write there: [graphs."{denied}"] with {tool} = "ask"'
    return calls.problem(token, message, cure)


def _word(token: Token) -> str:
    return token.text.strip(QUOTES)


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
