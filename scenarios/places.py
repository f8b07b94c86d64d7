"""The place in a text of every key and value of a TOML or JSON document.

The parsers of both tell no places, so a small scanner walks the text once more. It trusts them: on
text that they refused it stops at the first thing that it doesn't understand, and what it saw
before that still explains duplicate keys.
"""

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from scenarios.problems import Problem

if sys.version_info >= (3, 15):
    import tomllib
else:
    import tomli as tomllib

Keys = tuple[str | int, ...]


class Span(NamedTuple):
    """Where a key and its value stand, as offsets into the text; an element's key is its value.

    For a table with a header the key is the last name in the header and the value the whole
    header with its brackets.
    """

    key_start: int
    key_end: int
    start: int
    end: int


class Lines:
    """Offsets into a text as lines and columns."""

    def __init__(self, whole: str) -> None:
        """Find the line ends."""
        self.whole = whole
        self._starts = [0, *(found.end() for found in re.finditer("\n", whole))]

    def text(self, line: int) -> str:
        """The line without its end; `line` counts from 1."""
        start = self._starts[line - 1]
        return self.whole[start : self._end(start)]

    def place(self, start: int, end: int) -> tuple[int, int, int]:
        """Line, column and length; what is longer than a line is cut at its end."""
        line = bisect_right(self._starts, start)
        length = min(end, self._end(start)) - start
        return line, start - self._starts[line - 1] + 1, max(length, 1)

    def problem(
        self, path: str, start: int, end: int, message: str, cure: str | None = None
    ) -> Problem:
        """A problem at these offsets; what is missing at the end is shown after the last text."""
        if start >= len(self.whole.rstrip()):
            start = len(self.whole.rstrip())
            end = start + 1
        line, column, length_chars = self.place(start, end)
        return Problem(
            path=path,
            line=line,
            column=column,
            length_chars=length_chars,
            message=message,
            cure=cure,
            source_line=self.text(line),
        )

    def _end(self, start: int) -> int:
        end = self.whole.find("\n", start)
        return len(self.whole) if end < 0 else end


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_VALUE = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'''
    r"""|'''(?:[^']|'(?!''))*'{3,5}"""
    r'''|"(?:[^"\\\n]|\\.)*"'''
    r"""|'[^'\n]*'"""
    r"""|\d{4}-\d\d-\d\d[Tt ]\d\d:[^\s,\]}#]*"""
    r"""|[^\s,\]}\[{#"']+""",
    re.DOTALL,
)


class _StopError(Exception):
    """The text ends, or goes on in a way that the scanner doesn't know."""


class Scan:
    """One walk over a text that notes the span of every key and value.

    TOML's inline tables and JSON's objects are alike enough to share the code. Names in headers
    and dotted keys stand for tables too ("implied"), until the table gets a header of its own.
    """

    def __init__(self, text: str, *, is_json: bool) -> None:
        """Walk to the end of the text, or to the first thing in it that isn't valid."""
        self.text = text
        self.is_json = is_json
        self.unquote: Callable[[str], str] = json.loads if is_json else _unquote_toml
        self.at = 0
        self.spans: dict[Keys, Span] = {}
        self.implied: set[Keys] = set()
        self.counts: dict[Keys, int] = {}  # tables seen so far of each [[array]]
        self.repeats: list[tuple[Keys, Span, Span]] = []
        self.latest: tuple[Keys, Span, Span | None] = (("",), Span(0, 0, 0, 0), None)
        try:
            if is_json:
                self._skip(_BLANK)
                self._value(())
            else:
                self._statements()
        except (_StopError, RecursionError):
            pass

    def _statements(self) -> None:
        table: Keys = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self._next() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Keys:
        start = self.at
        is_array = self.text.startswith("[[", start)
        self.at += 2 if is_array else 1
        self._skip(_SPACE)
        parts = self._key_parts()
        self._skip(_SPACE)
        if self._next() == "]":
            self.at += 2 if is_array else 1
        path: Keys = ()
        for key, key_start, key_end in parts[:-1]:
            path = self._current((*path, key))
            self._imply(path, Span(key_start, key_end, start, self.at))
        key, key_start, key_end = parts[-1]
        path = (*path, key)
        span = Span(key_start, key_end, start, self.at)
        if not is_array:
            self._note(path, span)
            return path
        if path not in self.counts:
            self._note(path, span)
        index = self.counts.get(path, 0)
        self.counts[path] = index + 1
        self.spans[(*path, index)] = span
        return (*path, index)

    def _pair(self, table: Keys) -> None:
        """`key = value`, `a.b = value` or `"key": value`; a dotted key implies tables."""
        parts = self._key_parts()
        for key, key_start, key_end in parts[:-1]:
            table = (*table, key)
            self._imply(table, Span(key_start, key_end, key_start, key_end))
        key, key_start, key_end = parts[-1]
        path = (*table, key)
        self._note(path, Span(key_start, key_end, key_start, key_end))
        self._skip(_BLANK if self.is_json else _SPACE)
        self._expect(":" if self.is_json else "=")
        self._skip(_BLANK if self.is_json else _SPACE)
        start, end = self._value(path)
        self.spans[path] = Span(key_start, key_end, start, end)

    def _value(self, path: Keys) -> tuple[int, int]:
        start = self.at
        opening = self._next()
        if opening == "[":
            self._items("]", path)
        elif opening == "{":
            self._items("}", path)
        else:
            found = _VALUE.match(self.text, start)
            if found is None:
                raise _StopError
            self.at = found.end()
        return start, self.at

    def _items(self, closing: str, path: Keys) -> None:
        """What stands between brackets or braces, with commas between and perhaps after."""
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self._next() == closing:
                self.at += 1
                return
            if closing == "]":
                start, end = self._value((*path, index))
                self.spans[(*path, index)] = Span(start, end, start, end)
                index += 1
            else:
                self._pair(path)
            self._skip(_BLANK)
            if self._next() != closing:
                self._expect(",")

    def _key_parts(self) -> list[tuple[str, int, int]]:
        parts = []
        while True:
            found = _KEY.match(self.text, self.at)
            if found is None:
                raise _StopError
            written = found.group()
            try:
                key = self.unquote(written) if written[0] in "\"'" else written
            except ValueError:
                raise _StopError from None
            parts.append((key, found.start(), found.end()))
            self.at = found.end()
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                return parts
            self.at = dot.end()

    def _current(self, path: Keys) -> Keys:
        """A name in a header that is an array of tables stands for its last table."""
        count = self.counts.get(path, 0)
        return (*path, count - 1) if count else path

    def _imply(self, path: Keys, span: Span) -> None:
        if path not in self.spans:
            self.spans[path] = span
            self.implied.add(path)

    def _note(self, path: Keys, span: Span) -> None:
        first = self.spans.get(path)
        self.latest = (path, span, first)
        if first is not None and path not in self.implied:
            self.repeats.append((path, first, span))
        self.implied.discard(path)
        self.spans[path] = span

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _expect(self, char: str) -> None:
        if self._next() != char:
            raise _StopError
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at


def _unquote_toml(written: str) -> str:
    key: str = tomllib.loads(f"key = {written}")["key"]
    return key
