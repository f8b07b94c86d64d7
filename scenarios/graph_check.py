"""Mistakes in a Graph that can be seen without running it.

Whether it is JavaScript the engine says, which compiles it and runs nothing of it. In a script that
is, calls of what Graphs find around them are looked at: options that do not exist, Graphs that do
not exist, and calls at the beginning of a statement that nothing waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

from msgspec import Struct

from actors.graphs.meta import MetaError, read_script
from actors.graphs.script import ScriptVmPort
from actors.graphs.seam import ScriptFailure, VmLimitError, VmLimits, VmMissingError, VmState
from scenarios.graph_files import SUFFIX, Graph
from scenarios.js_tokens import OPERATORS, Token, tokens_of
from scenarios.places import Lines
from scenarios.problems import Problem, listed, quote, suggest

ENGINE_MODULE: Final = "quickjs"  # what the extra [graphs] installs
NOTHING_RUNS: Final = "return;"  # before a script: it is compiled, and ends at once

# The options of a call, by the place of the argument that has them.
OPTIONS: Final[Mapping[str, tuple[int, tuple[str, ...]]]] = {
    "agent": (1, ("label", "phase", "model", "schema", "maxTokens", "timeoutMs", "tools")),
    "parallel": (1, ("settle",)),
    "retry": (1, ("attempts", "backoffMs", "factor", "when")),
}
AWAITED: Final = ("agent", "graph", "parallel", "pipeline", "retry", "sleep")
DECLARES: Final = frozenset(("function", "const", "let", "var", "class"))
CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
# Before a name they make it an operand or a member, and no beginning of a statement.
STARTS: Final = frozenset((";", "{", "}", ")"))
STARTING_WORDS: Final = frozenset(("else", "do"))


def scripts_can_run() -> bool:
    """Whether the extra is there that brings the JavaScript engine."""
    return find_spec(ENGINE_MODULE) is not None


def problems_of(graph: Graph, library: Mapping[str, str]) -> list[Problem]:
    """Return all that is wrong with a Graph, as far as it can be seen. `library` has the others.

    Without the engine only what needs none is looked for.
    """
    problems = syntax_problems(graph) if scripts_can_run() else _meta_problems(graph)
    return problems or list(Calls(graph, library).problems())


def syntax_problems(graph: Graph) -> list[Problem]:
    """Return why a Graph can't be compiled, nothing if it can."""
    if problems := _meta_problems(graph):
        return problems
    source = NOTHING_RUNS + read_script(graph.text).source
    try:
        # In this process: nothing of it runs, so nothing can hang.
        vm = ScriptVmPort().open(VmLimits())
        turn = vm.start(source, {}, (1, 2, 3, 4), VmState(0.0, 0, None, 0))
    except (VmLimitError, VmMissingError) as error:
        return [Problem(path=graph.shown, message=str(error))]
    failure = None if turn.finished is None else turn.finished.error
    return [] if failure is None else [_syntax_problem(graph, failure)]


def _meta_problems(graph: Graph) -> list[Problem]:
    try:
        read_script(graph.text)
    except MetaError as error:
        return [_at(graph, error.line, error.column, error.message)]
    return []


def _syntax_problem(graph: Graph, failure: ScriptFailure) -> Problem:
    column = failure.column - (len(NOTHING_RUNS) if failure.line == 1 else 0)
    return _at(graph, failure.line, column, f"{failure.name}: {failure.message}")


def _at(graph: Graph, line: int, column: int, message: str) -> Problem:
    lines = graph.text.split("\n")
    if not 1 <= line <= len(lines):
        return Problem(path=graph.shown, message=message)
    return Problem(
        path=graph.shown,
        line=line,
        column=max(1, column),
        message=message,
        source_line=lines[line - 1].removesuffix("\r"),
    )


class Call(Struct):
    """One call: the tokens of each argument, and where its name and its closing bracket are."""

    name: Token
    first: int
    last: int
    arguments: list[list[Token]]


class Calls:
    """The calls of one script."""

    def __init__(self, graph: Graph, library: Mapping[str, str]) -> None:
        self.graph = graph
        self.text = graph.text
        self.names = [name.removesuffix(SUFFIX) for name in library]
        self.lines = Lines(graph.text)
        self.tokens = tokens_of(graph.text)
        self.own = {
            token.text
            for before, token in zip(self.tokens, self.tokens[1:], strict=False)
            if before.text in DECLARES
        }

    def problems(self) -> Iterator[Problem]:
        """Yield the mistakes, in the order of the script."""
        for call in self.all():
            yield from self.options(call)
            yield from self.sub_graph(call)
            yield from self.waiting(call)

    def all(self) -> Iterator[Call]:
        """Yield the calls of what every Graph finds, in the order of the script."""
        for place, token in enumerate(self.tokens):
            if token.kind == "name" and token.text in AWAITED and self.is_ours(place):
                call = self.call(place)
                if call is not None:
                    yield call

    def is_ours(self, place: int) -> bool:
        """Whether a name is the one that every Graph finds, and is called."""
        before = self.tokens[place - 1].text if place else ""
        after = self.tokens[place + 1].text if place + 1 < len(self.tokens) else ""
        known = self.tokens[place].text not in self.own
        return known and after == "(" and before not in (".", "?.", "function", "async", "get")

    def call(self, place: int) -> Call | None:
        """Return the call whose name is at a place; None if it has no end, or is a method."""
        closing: list[str] = []
        arguments: list[list[Token]] = [[]]
        for at in range(place + 1, len(self.tokens)):
            token = self.tokens[at]
            if token.kind == "mark" and token.text in CLOSING:
                closing.append(CLOSING[token.text])
                if len(closing) == 1:
                    continue
            elif token.kind == "mark" and token.text == closing[-1]:
                closing.pop()
                if not closing:
                    if self.text_at(at + 1) == "{":
                        return None
                    return Call(self.tokens[place], place, at, arguments)
            elif token.text == "," and token.kind == "mark" and len(closing) == 1:
                arguments.append([])
                continue
            arguments[-1].append(token)
        return None

    def text_at(self, place: int) -> str:
        """Return a token's text; nothing behind the end."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def options(self, call: Call) -> Iterator[Problem]:
        """Yield the options that do not exist."""
        if call.name.text not in OPTIONS:
            return
        place, known = OPTIONS[call.name.text]
        if len(call.arguments) <= place:
            return
        for token in keys_of(call.arguments[place]):
            key = token.text.strip("'\"")
            if key not in known:
                near = suggest(key, known)
                cure = f"did you mean {near}?" if near else f"there is {listed(known, last='and')}"
                yield self.problem(token, f"{call.name.text} has no option {quote(key)}", cure)

    def sub_graph(self, call: Call) -> Iterator[Problem]:
        """Yield the call of a Graph that is not there, if its name is written out."""
        first = call.arguments[0]
        if call.name.text != "graph" or len(first) != 1 or first[0].kind != "string":
            return
        name = first[0].text[1:-1]
        if name not in self.names and "\\" not in name:
            near = suggest(name, self.names)
            cure = (
                f"did you mean {quote(near)}?" if near else "it lies beside this one, or is saved"
            )
            yield self.problem(first[0], f"there is no Graph {quote(name)}", cure)

    def waiting(self, call: Call) -> Iterator[Problem]:
        """Yield a call that is a statement of its own, so nothing waits for it."""
        if self.begins_statement(call.first) and self.ends_statement(call.last):
            name = call.name.text
            message = f"nothing waits for this call of {name}"
            yield self.problem(call.name, message, f"write: await {name}(...)")

    def begins_statement(self, place: int) -> bool:
        """Whether a statement begins at a token, as far as that can be said."""
        if place == 0:
            return True
        before = self.tokens[place - 1]
        if before.kind == "mark":
            new_line = before.text in ("]", "`") and self.is_broken(place - 1)
            return new_line or before.text in STARTS
        if before.text in STARTING_WORDS:
            return True
        operand = before.kind != "name" or before.text not in OPERATORS
        return operand and self.is_broken(place - 1)

    def ends_statement(self, place: int) -> bool:
        """Whether a statement ends behind a token."""
        after = self.text_at(place + 1)
        if after in ("", ";", "}"):
            return True
        following = self.tokens[place + 1]
        return self.is_broken(place) and (
            following.kind != "mark" or following.text in ("{", "}", ";")
        )

    def is_broken(self, place: int) -> bool:
        """Whether a line ends between a token and the next."""
        one, other = self.tokens[place], self.tokens[place + 1]
        return "\n" in self.text[one.end : other.at]

    def problem(self, token: Token, message: str, cure: str) -> Problem:
        """Return a mistake at a token."""
        return self.lines.problem(self.graph.shown, token.at, token.end, message, cure)


def keys_of(argument: Sequence[Token]) -> Iterator[Token]:
    """Yield the names of an object's members that are written out; none for another value."""
    if not argument or argument[0].text != "{":
        return
    depth, expected = 0, False
    for place, token in enumerate(argument):
        if depth == 1 and expected and token.kind in ("name", "string"):
            after = argument[place + 1].text if place + 1 < len(argument) else ""
            if after in (":", ",", "}", "("):
                yield token
        if token.kind == "mark":
            expected = (depth, token.text) in ((0, "{"), (1, ","))
            depth += (token.text in CLOSING) - (token.text in CLOSING.values())
        else:
            expected = False
