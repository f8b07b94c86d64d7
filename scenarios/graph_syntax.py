"""Whether a Graph can be compiled, found when its scenario is loaded: nothing of it is run.

A script that can't be compiled would fail each of its runs; a user's mistake is told before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

KNOWN_LIMIT = 256  # sources that are known to be right: every cell of a sweep asks
ENGINE_MODULE = "_quickjs"  # what the extra [graphs] installs
MEMORY_LIMIT_BYTES = 256 << 20
# Compiles the function that a script becomes, and runs nothing of it: all that stands behind the
# throw, also what a source adds after closing that function, is never reached.
_HEAD = '"use strict"; throw 0; (async function (args) {\n'
_TAIL = "\n})"
_CALLED = re.compile(r"""\bgraph\s*\(\s*(["'`])([^"'`$\\\n]+)\1""")
_PLACE = re.compile(r"at <input>:(\d+):(\d+)")


def reached_files(roots: Iterable[str], files: Mapping[str, str]) -> list[str]:
    """Return files of Graphs that runs begin with, and those that they call by a name written out.

    A source is read without its grammar: a call in a comment is one, too.
    """
    found = list(dict.fromkeys(roots))
    for file in found:  # it grows meanwhile
        for _, name in _CALLED.findall(files[file]):
            called = f"{name}.js"
            if called in files and called not in found:
                found.append(called)
    return found


class SyntaxProblem(NamedTuple):
    """What is wrong with a source, and where; both from 1."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return it in a line."""
        return f"line {self.line}, column {self.column}: {self.message}"


@lru_cache(maxsize=KNOWN_LIMIT)
def syntax_problem(source: str) -> SyntaxProblem | None:
    """Return why a source can't be compiled, None if it can or nobody can tell."""
    try:
        engine: Any = import_module(ENGINE_MODULE)
    except ImportError:
        return None
    context = engine.Context()
    context.set_memory_limit(MEMORY_LIMIT_BYTES)
    try:
        context.eval(_HEAD + source + _TAIL)
    except engine.JSException as error:
        told = str(error)
    else:
        raise AssertionError("it throws, compiled or not")
    if not told.startswith("SyntaxError"):
        return None
    place = _PLACE.search(told)
    line, column = (2, 1) if place is None else (int(place[1]), int(place[2]))
    last = source.count("\n") + 1
    at = min(max(1, line - 1), last)  # the source begins in the second line
    return SyntaxProblem(told.partition("\n")[0], at, column if at == line - 1 else 1)
