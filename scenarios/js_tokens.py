"""A script's tokens: enough of JavaScript to find calls and their arguments, and no more.

It never fails: what it does not understand is a token of one character. The engine alone says
whether a script is right; this only looks for mistakes in one that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

Kind = Literal["name", "number", "string", "template", "regex", "mark"]

_BLANK: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|\ufeff|(?<![^\n])#![^\n]*)+", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_$#\u0080-\uffff][\w$\u0080-\uffff]*")
_NUMBER: Final = re.compile(r"(?:\d[\w.]*|\.\d\w*)")
_STRING: Final = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_REGEX: Final = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
_MARK: Final = re.compile(r"=>|\?\.|\.\.\.|&&|\|\||\?\?|[=!]==?|.", re.DOTALL)

# After these names comes an expression, so a slash begins a regular expression.
OPERATORS: Final = frozenset(
    [
        "return",
        "typeof",
        "instanceof",
        "in",
        "of",
        "new",
        "delete",
        "void",
        "throw",
        "case",
        "do",
        "else",
        "await",
        "yield",
    ]
)


class Token(NamedTuple):
    """One token: what it is, its text, where it begins."""

    kind: Kind
    text: str
    at: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.at + len(self.text)


def tokens_of(text: str) -> list[Token]:
    """Return a script's tokens, without blanks and comments.

    A template is the pieces of its text; an expression within it stands in round brackets, so that
    brackets are balanced wherever they are in the script.
    """
    return list(_Reader(text).tokens())


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[str] = []  # brackets; "`" for an expression within a template
        self.last: Token | None = None

    def tokens(self) -> Iterator[Token]:
        while True:
            blank = _BLANK.match(self.text, self.at)
            if blank is not None:
                self.at = blank.end()
            if self.at >= len(self.text):
                return
            for token in self.next():
                self.last = token
                self.at = token.end
                yield token

    def next(self) -> Iterator[Token]:
        at = self.at  # it moves with every token
        first = self.text[at]
        if first == "`":
            yield Token("mark", "`", at)
            yield from self.template(at + 1)
        elif first == "}" and self.open and self.open[-1] == "`":
            self.open.pop()
            yield Token("mark", ")", at)
            yield from self.template(at + 1)
        else:
            token = self.plain()
            if token.text in ("{", "[", "("):
                self.open.append(token.text)
            elif token.text in ("}", "]", ")") and self.open:
                self.open.pop()
            yield token

    def template(self, at: int) -> Iterator[Token]:
        """Yield a template's text up to its end, or to an expression in it."""
        found = _TEMPLATE.match(self.text, at)
        piece = found[0] if found else ""
        yield Token("template", piece, at)
        end = at + len(piece)
        if self.text.startswith("${", end):
            self.open.append("`")
            yield Token("mark", "(", end)
            # The bracket has two characters here: the second is passed by.
            self.text = self.text[: end + 1] + " " + self.text[end + 2 :]
        elif self.text.startswith("`", end):
            yield Token("mark", "`", end)

    def plain(self) -> Token:
        kinds: Sequence[tuple[Kind, re.Pattern[str]]] = (
            ("name", _NAME), ("number", _NUMBER), ("string", _STRING),
        )  # fmt: skip
        for kind, pattern in kinds:
            if found := pattern.match(self.text, self.at):
                return Token(kind, found[0], self.at)
        regex = _REGEX.match(self.text, self.at)
        if regex is not None and self.expression_begins():
            return Token("regex", regex[0], self.at)
        found = _MARK.match(self.text, self.at)
        assert found is not None, "any character is a mark"
        return Token("mark", found[0], self.at)

    def expression_begins(self) -> bool:
        """Whether an expression may begin here, rather than go on."""
        last = self.last
        if last is None:
            return True
        if last.kind == "name":
            return last.text in OPERATORS
        return last.kind == "mark" and last.text not in (")", "]", "}", "`")
