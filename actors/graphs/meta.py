"""A script's `export const meta = {...}`, read without running the script.

It is the first statement, and its value a literal, so that a list of Graphs can show their names
and descriptions where no JavaScript runs. The reader knows JSON, comments, single quotes, names as
keys and trailing commas. What is read is blanked out of the script only as far as the language asks
for it (`export`), so that lines and columns stay right.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

DEPTH_LIMIT = 20  # of lists and objects; a description is flat
SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
DIRECTIVE = re.compile(r"(?:'use strict'|\"use strict\")[ \t]*(?:;|(?=\n))")
HEAD = re.compile(r"export(?=\s+const\s+meta\s*=)\s+const\s+meta\s*=")
NAME = re.compile(r"[A-Za-z_$][\w$]*")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w$.])")
STRING = re.compile(
    r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\$]|\\.|\$(?!\{))*)`", re.DOTALL
)
ESCAPE = re.compile(
    r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL
)
WORDS = {"true": True, "false": False, "null": None}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}


class MetaError(ValueError):
    """A `meta` that can't be read; with line and column, both from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.message = message
        self.line = line
        self.column = column
        super().__init__(f"line {line}, column {column}: {message}")


class Script(msgspec.Struct, frozen=True):
    """A Graph's source, ready for a VM, and what it says of itself: {} without a `meta`."""

    source: str
    meta: dict[str, Any]


def read_script(text: str) -> Script:
    """Read a Graph's file. Raises MetaError."""
    text = text.removeprefix("\ufeff")
    if text.startswith("#!"):
        text = "//" + text[2:]
    start = skip(text, 0)
    if directive := DIRECTIVE.match(text, start):
        start = skip(text, directive.end())
    head = HEAD.match(text, start)
    if head is None:
        return Script(text, {})
    reader = Reader(text)
    meta, end = reader.value(skip(text, head.end()), 0)
    if not isinstance(meta, dict):
        raise reader.refusal("meta must be an object", skip(text, head.end()))
    if not re.match(r"[^\S\n]*(?:;|\n|$|//|/\*)", text[end : end + 200]):
        raise reader.refusal("meta must be a literal: it is read without running the script", end)
    return Script(text[:start] + "      " + text[start + len("export") :], meta)


def skip(text: str, at: int) -> int:
    """Where the next token begins."""
    found = SPACE.match(text, at)
    return found.end() if found else at


class Reader:
    """Reads one literal. Each method takes a place and returns a value and the place behind it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def refusal(self, message: str, at: int) -> MetaError:
        """The error for a place."""
        before = self.text[:at]
        return MetaError(message, before.count("\n") + 1, at - before.rfind("\n"))

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """Any value."""
        if depth > DEPTH_LIMIT:
            raise self.refusal(f"meta is nested more than {DEPTH_LIMIT} levels deep", at)
        first = self.text[at : at + 1]
        if first == "{":
            return self.members(at + 1, depth)
        if first == "[":
            return self.items(at + 1, depth)
        if STRING.match(self.text, at):
            return self.string(at)
        if number := NUMBER.match(self.text, at):
            return msgspec.json.decode(number[0]), number.end()
        word = NAME.match(self.text, at)
        if word and word[0] in WORDS:
            return WORDS[word[0]], word.end()
        raise self.refusal("meta must be a literal: it is read without running the script", at)

    def items(self, at: int, depth: int) -> tuple[list[Any], int]:
        """What follows an opening bracket."""
        found: list[Any] = []
        at = skip(self.text, at)
        while self.text[at : at + 1] != "]":
            each, at = self.value(at, depth + 1)
            found.append(each)
            at = self.separator(at, "]")
        return found, at + 1

    def members(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        """What follows an opening brace."""
        found: dict[str, Any] = {}
        at = skip(self.text, at)
        while self.text[at : at + 1] != "}":
            key, at = self.key(at)
            at = skip(self.text, at)
            if self.text[at : at + 1] != ":":
                raise self.refusal("a colon is missing", at)
            found[key], at = self.value(skip(self.text, at + 1), depth + 1)
            at = self.separator(at, "}")
        return found, at + 1

    def separator(self, at: int, closing: str) -> int:
        """Pass a comma, or stand before the closing bracket."""
        at = skip(self.text, at)
        if self.text[at : at + 1] == ",":
            return skip(self.text, at + 1)
        if self.text[at : at + 1] != closing:
            raise self.refusal(f"a comma or {closing} is missing", at)
        return at

    def key(self, at: int) -> tuple[str, int]:
        """A name or a string."""
        if name := NAME.match(self.text, at):
            return name[0], name.end()
        if self.text[at : at + 1] not in {'"', "'"} or not STRING.match(self.text, at):
            raise self.refusal("a key must be a name or a string", at)
        return self.string(at)

    def string(self, at: int) -> tuple[str, int]:
        """A string in any quotes, a template only without expressions."""
        found = STRING.match(self.text, at)
        assert found is not None
        inner = next(group for group in found.groups() if group is not None)
        return ESCAPE.sub(lambda escape: self.unescaped(escape, at), inner), found.end()

    def unescaped(self, escape: re.Match[str], at: int) -> str:
        """The character that an escape stands for."""
        long, short, byte, other = escape.groups()
        if other is not None:
            return ESCAPES.get(other, other)
        code = int(long or short or byte, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.refusal("meta has an escape that is no character", at)
        return chr(code)
