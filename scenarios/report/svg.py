"""Drawings: SVG elements as text, their numbers rounded, their words escaped.

A drawing has a title and a description for who can't see it, takes its colours from the style's
classes, and holds no script and no address. `standalone` makes a file of its own of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len

from scenarios.problems import printable
from scenarios.report.scale import Axis

HERE: Final = Path(__file__).resolve().parent
CHAR_PX: Final = 6.4  # what a character of 11 px takes, in the wider of the fonts that systems have


def coordinate(value: float) -> str:
    """Return a number in two decimals, without those that say nothing."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def element(name: str, inside: str = "", /, **attributes: float | str) -> str:
    """Return an element; `inside` is markup. `class_` is `class`, `stroke_width` has a hyphen."""
    words = [name]
    for key, value in attributes.items():
        text = value if isinstance(value, str) else coordinate(value)
        words.append(f"{key.rstrip('_').replace('_', '-')}={quoteattr(printable(text))}")
    head = " ".join(words)
    return f"<{head}>{inside}</{name}>" if inside else f"<{head}/>"


def words(text: str) -> str:
    """Return text as markup."""
    return escape(printable(text))


def label(x: float, y: float, text: str, class_: str = "t", anchor: str = "start") -> str:
    """Return a line of text, its baseline at `y`; `anchor` is start, middle or end."""
    if anchor == "start":
        return element("text", words(text), class_=class_, x=x, y=y)
    return element("text", words(text), class_=class_, x=x, y=y, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a straight line."""
    return element("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2)


def title(text: str) -> str:
    """Return what is shown when a pointer rests on the element that this is put into."""
    return element("title", words(text))


def path(points: Iterable[tuple[float, float]]) -> str:
    """Return the `d` of a path through points, each coordinate said only where it changes."""
    parts: list[str] = []
    before = ("", "")
    for x, y in points:
        here = coordinate(x), coordinate(y)
        if not parts:
            parts.append(f"M{here[0]} {here[1]}")
        elif here[0] == before[0] and here[1] != before[1]:
            parts.append(f"V{here[1]}")
        elif here[1] == before[1] and here[0] != before[0]:
            parts.append(f"H{here[0]}")
        elif here != before:
            parts.append(f"L{here[0]} {here[1]}")
        before = here
    return "".join(parts)


def drawing(
    width: float, height: float, name: str, description: str, parts: Iterable[str], class_: str = ""
) -> str:
    """Return a drawing of so many pixels, which shrinks to the room it has."""
    inside = title(name) + element("desc", words(description)) + "".join(parts)
    box = f"0 0 {coordinate(width)} {coordinate(height)}"
    return element(
        "svg", inside, class_=f"plot {class_}".strip(), role="img", viewBox=box, width=width,
        height=height,
    )  # fmt: skip


def width_px(text: str) -> float:
    """Return how wide a text is in a drawing, rather too much than too little."""
    return cell_len(printable(text)) * CHAR_PX


def cut(text: str, room_px: float) -> str:
    """Return a text that fits the room, its end replaced by … if it must be."""
    if width_px(text) <= room_px:
        return text
    kept = text
    while kept and width_px(f"{kept}…") > room_px:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def foot(axis: Axis, y: float, width: float, most: int) -> list[str]:
    """Return an axis's ticks below `y`, with their numbers; one that would touch is left out."""
    parts = []
    taken = 0.0
    for x, mark in axis.marks(most):
        parts.append(line(x, y, x, y + 4, "a"))
        text = f"{mark} {axis.unit.name}".strip()
        half = width_px(text) / 2
        middle = min(max(x, half), width - half)
        if middle - half >= taken:
            parts.append(label(middle, y + 17, text, "s", "middle"))
            taken = middle + half + 4
    return parts


def standalone(svg: str) -> str:
    """Return a drawing as a file of its own, with the styles that it needs."""
    style = (HERE / "plot.css").read_text(encoding="utf-8")
    head, mark, rest = svg.partition(">")
    space = 'xmlns="http://www.w3.org/2000/svg" '
    return f"{head.replace('<svg ', f'<svg {space}', 1)}{mark}<style>{style}</style>{rest}\n"
