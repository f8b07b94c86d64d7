"""Problems in what a user wrote, shown with their place, the offending line and a cure.

A problem is a value, not an exception: readers collect all of them, and `ScenarioError` carries
them to whoever prints.
"""

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

import msgspec

WIDTH_COLUMNS = 80  # the narrowest terminal that people still use, and the width of a mail
TAB_COLUMNS = 4  # a tab is shown as spaces, so that the caret stands right on every terminal
WORD_LIMIT_CHARS = 100  # comparing words is quadratic, and nobody mistypes a name of this length
LIKE_ENOUGH = 0.65  # "pol" and "poll" have 0.86, "form" and "from" 0.75, "name" and "note" 0.5
PREFIX_CHARS = 3  # a shorter beginning ("re") fits too many names to be a hint
SHOWN_LIMIT = 50  # nobody mends more at a time; a file of the wrong kind has thousands
NEAR_CHARS = 2000  # what is further from the caret is never shown, so a line of 1 MiB costs nothing

_CUT = "..."
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """Terminal colours of a rendered problem: one SGR parameter a part, "" for none."""

    place: str = ""
    message: str = ""
    gutter: str = ""
    caret: str = ""
    cure: str = ""


PLAIN = Style()
ANSI = Style(place="1", message="1;31", gutter="34", caret="1;31", cure="36")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake: where it is, what is wrong, and what to do about it.

    `line` and `column` count from 1, columns in characters; line 0 means the file as a whole.
    `length_chars` is how much of the line is underlined. `cure` is what follows `help:`.
    """

    path: str
    line: int = 0
    column: int = 0
    message: str
    cure: str | None = None
    source_line: str | None = None
    length_chars: int = 1

    @property
    def place(self) -> str:
        """`FILE:LINE:COLUMN`, or the file alone when the problem has no place within it."""
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path

    def render(self, *, width_columns: int = WIDTH_COLUMNS, style: Style = PLAIN) -> str:
        """Place and message, the line, its caret, the cure; without a final newline."""
        place, message = printable(self.place), printable(self.message)
        parts = [f"{_paint(place + ':', style.place)} {_paint(message, style.message)}"]
        if self.line and self.source_line is not None:
            parts += self._excerpt(self.source_line, width_columns, style)
        if self.cure is not None:
            lines = help_lines(printable(self.cure), width_columns).split("\n")
            parts += [_paint(line, style.cure) for line in lines]
        return "\n".join(parts)

    def _excerpt(self, source_line: str, width_columns: int, style: Style) -> Iterator[str]:
        number = f"{self.line:>3}"
        room = max(width_columns - len(number) - len(" | "), 2 * len(_CUT) + 4)
        shown, before, under = _window(source_line, self.column - 1, self.length_chars, room)
        yield f"{_paint(number + ' |', style.gutter)} {shown}".rstrip()
        gutter = _paint(" " * len(number) + " |", style.gutter)
        yield f"{gutter} {' ' * before}{_paint('^' * under, style.caret)}"


class ScenarioError(Exception):
    """A user's file can't be used; `problems` has every reason, sorted by place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Sort `problems`, of which there is at least one."""
        self.problems = tuple(sorted(problems, key=lambda p: (p.path, p.line, p.column, p.message)))
        super().__init__(self.problems)

    def __str__(self) -> str:
        """The problems, rendered without colours."""
        return self.render()

    def render(self, *, width_columns: int = WIDTH_COLUMNS, style: Style = PLAIN) -> str:
        """The first problems with an empty line between, and how many more there are."""
        parts = [
            problem.render(width_columns=width_columns, style=style)
            for problem in self.problems[:SHOWN_LIMIT]
        ]
        if len(self.problems) > SHOWN_LIMIT:
            parts.append(f"and {len(self.problems) - SHOWN_LIMIT} more problems")
        return "\n\n".join(parts)


def help_lines(cure: str, width_columns: int) -> str:
    """A cure as it is printed: behind `help:`, wrapped to the width, no word of it cut."""
    return textwrap.fill(
        f"help: {cure}",
        max(width_columns, 20),
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )


def suggest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that the writer of `word` most probably meant; None when nothing is close.

    Case, `-` and `_`, a plural and an unfinished word don't count as differences.
    Of equals the first wins.
    """
    if not word or len(word) > WORD_LIMIT_CHARS:
        return None
    best, best_score = None, LIKE_ENOUGH
    for candidate in candidates:
        score = _likeness(word, candidate)
        if score > best_score or (best is None and score == best_score):
            best, best_score = candidate, score
    return best


def quote(text: str, *, limit_chars: int = 40) -> str:
    """`text` in double quotes for use in a sentence, shortened in the middle to the limit."""
    if len(text) > limit_chars:
        half = (limit_chars - len(_CUT)) // 2
        text = text[:half] + _CUT + text[-half:]
    return f'"{text}"'


def listed(words: Iterable[str], *, last: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    *head, tail = words
    return f"{', '.join(head)} {last} {tail}" if head else tail


def printable(text: str) -> str:
    """`text` with every character that would move a terminal's cursor or recolour it replaced."""
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # the Unicode pictures of the control characters
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0x2028, 0x2029) or char in _BIDI:
        return "\ufffd"
    return char


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cells(line: str) -> list[tuple[str, int]]:
    """What each character of the line looks like on a terminal, and how many columns it takes."""
    cells = []
    column = 0
    for char in line:
        if char == "\t":
            width = TAB_COLUMNS - column % TAB_COLUMNS
            cells.append((" " * width, width))
        else:
            shown = _visible(char)
            width = _columns(shown)
            cells.append((shown, width))
        column += width
    return cells


def _window(line: str, start: int, length: int, room: int) -> tuple[str, int, int]:
    """The part of the line around `start` that fits in `room` columns.

    Returns the text, the columns before the caret and the columns under it.
    """
    skipped = max(start - NEAR_CHARS, 0)
    near = line[skipped : start + NEAR_CHARS]
    cells = _cells(near)
    start = min(max(start - skipped, 0), len(cells))
    end = min(start + max(length, 1), len(cells))
    first, last = 0, len(cells)
    if _width(cells) > room:
        first, last = _cut(cells, start, end, room)
    head = _CUT if first or skipped else ""
    tail = _CUT if last < len(cells) or skipped + len(near) < len(line) else ""
    shown = head + "".join(text for text, _ in cells[first:last]) + tail
    before = len(head) + _width(cells[first:start])
    return shown, before, max(_width(cells[start : min(end, last)]), 1)


def _cut(cells: list[tuple[str, int]], start: int, end: int, room: int) -> tuple[int, int]:
    """Which cells to show of a line that is too long: its head if that has the whole underline."""
    if _width(cells[:end]) <= room - len(_CUT):
        return 0, _fill(cells, 0, room - len(_CUT))
    inner = room - 2 * len(_CUT)
    first, before = start, 0
    lead = max(inner // 3, inner - _width(cells[start:]) - 1)
    while first > 0 and before + cells[first - 1][1] <= lead:
        first -= 1
        before += cells[first][1]
    last = _fill(cells, first, room - len(_CUT))
    return first, last if last == len(cells) else _fill(cells, first, inner)


def _fill(cells: list[tuple[str, int]], first: int, room: int) -> int:
    """The end of the longest run of cells from `first` that takes at most `room` columns."""
    last = first
    while last < len(cells) and cells[last][1] <= room:
        room -= cells[last][1]
        last += 1
    return last


def _width(cells: list[tuple[str, int]]) -> int:
    return sum(width for _, width in cells)


def _likeness(word: str, candidate: str) -> float:
    """From 0 to 1; dotted names are as alike as their least similar parts."""
    parts, others = word.split("."), candidate.split(".")
    if len(parts) == len(others):
        return min(map(_part_likeness, parts, others))
    return _part_likeness(word, candidate)


def _part_likeness(word: str, candidate: str) -> float:
    if word == candidate:
        return 1.0
    a, b = _plain(word), _plain(candidate)
    if a == b:
        return 0.99
    if _numbers(a) & _numbers(b):
        return 0.98
    ratio = SequenceMatcher(None, a, b, autojunk=False).ratio()
    if sorted(a) == sorted(b) and len(a) <= 4:
        return max(ratio, 0.9)  # swapped letters: difflib gives "at" and "ta" only 0.5
    if len(a) >= PREFIX_CHARS and b.startswith(a):
        return max(ratio, 0.8)
    return ratio


def _plain(word: str) -> str:
    return word.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _numbers(word: str) -> set[str]:
    """The word, and what it may be the plural of."""
    forms = {word}
    for ending, single in (("ies", "y"), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            forms.add(word[: -len(ending)] + single)
    return forms
