"""Tables in plain text: figures are never cut, words wrap, notes stand below their row."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from rich.cells import cell_len

GAP: Final = "  "
NARROWEST_COLUMNS: Final = 12  # a column of words is not made narrower than this
NOTE_INDENT: Final = "    "

_FIGURE: Final = re.compile(r"[+-]?\d[\d.,]*(e[+-]?\d+)?[A-Za-z%]{0,3}")

Paint = dict[int, str]  # the SGR parameter of a column's text


class Row(msgspec.Struct, frozen=True):
    """A row: its cells, how some are painted, and a note of any length below them."""

    cells: tuple[str, ...]
    paint: Paint = msgspec.field(default_factory=dict)
    note: str = ""


def painted(text: str, sgr: str, colored: bool) -> str:
    """Return a text in a colour, if there are colours."""
    return f"\x1b[{sgr}m{text}\x1b[0m" if colored and sgr and text else text


def is_figure(text: str) -> bool:
    """Whether a cell holds a number with at most a unit, or stands for a missing one."""
    return text in ("", "-") or _FIGURE.fullmatch(text) is not None


def grid(
    head: Sequence[str], rows: Sequence[Row], width_columns: int, *, colored: bool = False
) -> Iterator[str]:
    """Return the lines of a table: columns of figures to the right, the head dim.

    A table that is too wide has its words wrapped. If that is not enough it stays too wide.
    """
    table = [tuple(head), *(row.cells for row in rows)]
    numeric = [
        index > 0 and all(is_figure(row.cells[index]) for row in rows) for index in range(len(head))
    ]
    widths = _fitted(
        [max(cell_len(line[index]) for line in table) for index in range(len(head))],
        [max(_longest_figure(line[index]) for line in table) for index in range(len(head))],
        numeric,
        width_columns - len(GAP) * (len(head) - 1),
    )
    dim = dict.fromkeys(range(len(head)), "2")
    yield from _lines(tuple(head), widths, numeric, dim if colored else {})
    for row in rows:
        yield from _lines(row.cells, widths, numeric, row.paint if colored else {})
        if row.note:
            wrapped = textwrap.wrap(row.note, max(20, width_columns - len(NOTE_INDENT)))
            yield from (NOTE_INDENT + painted(line, "2", colored) for line in wrapped)


def _longest_figure(text: str) -> int:
    return max((cell_len(word) for word in text.split() if is_figure(word)), default=0)


def _fitted(natural: list[int], least: list[int], numeric: list[bool], room: int) -> list[int]:
    """Narrow the widest columns of words until all fit, none below what it must hold."""
    widths = list(natural)
    while sum(widths) > room:
        narrowable = [
            index
            for index, width in enumerate(widths)
            if not numeric[index] and width > max(NARROWEST_COLUMNS, least[index])
        ]
        if not narrowable:
            break
        widths[max(narrowable, key=lambda index: widths[index])] -= 1
    return widths


def _lines(
    cells: tuple[str, ...], widths: list[int], numeric: list[bool], paint: Paint
) -> Iterator[str]:
    wrapped = [
        [cell] if cell_len(cell) <= width else textwrap.wrap(cell, width) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    for number in range(max(len(lines) for lines in wrapped)):
        parts = []
        for index, lines in enumerate(wrapped):
            text = lines[number] if number < len(lines) else ""
            space = " " * (widths[index] - cell_len(text))
            text = painted(text, paint.get(index, ""), bool(paint))
            parts.append(space + text if numeric[index] else text + space)
        yield GAP.join(parts).rstrip()
