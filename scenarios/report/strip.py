"""The fault strip: when each fault was to act, and when it did, over some of the replications.

A bar is the time in which a fault acts or has an actor stopped, a tick is one of its firings. How
often it fired is counted over all replications of the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from scenarios.render import plural
from scenarios.report.scale import TICKS, Axis, time_unit
from scenarios.report.story import Story
from scenarios.report.svg import (
    coordinate,
    cut,
    drawing,
    element,
    foot,
    label,
    line,
    title,
)
from scenarios.results import CellResult
from transports.faults.fault import Fault, StrikingFault, Window

WIDTH: Final = 340.0
MARGIN: Final = 10.0
ROW: Final = 40.0
BAR: Final = 14.0
FOOT: Final = 24.0


class FaultLine(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a cell: its name and kind, when it was to act and when it did, how often."""

    name: str
    kind: str
    words: str
    windows: list[tuple[int, int | None]]
    firings: list[int]


def fault_lines(cell: CellResult, stories: Sequence[Story]) -> list[FaultLine]:
    """Return a cell's faults, as some of its replications show them."""
    return [
        FaultLine(
            name=fault.name,
            kind=kind_of(fault),
            words=fired_words(cell, fault),
            windows=_windows(fault, stories),
            firings=[at for story in stories for at in story.firings.get(fault.name, ())],
        )
        for fault in cell.scenario.faults
    ]


def _windows(fault: Fault, stories: Sequence[Story]) -> list[tuple[int, int | None]]:
    """Return when a fault was to act; of one that strikes actors, how long it had them down."""
    found: list[tuple[int, int | None]] = []
    for story in stories:
        if isinstance(fault, StrikingFault):
            stops = [stop for stop in story.stops() if stop.fault == fault.name]
            found += [(stop.begin_us, stop.end_us) for stop in stops]
        elif fault.name in story.windows:
            found.append(story.windows[fault.name])
        elif fault.on is None:  # of a log, which doesn't say
            window = Window(fault)
            found.append((window.begin_us or 0, window.end_us))
    return list(dict.fromkeys(found))


def kind_of(fault: Fault) -> str:
    """Return a fault's kind, as scenario files have it."""
    return str(type(fault).__struct_config__.tag)


def fired_words(cell: CellResult, fault: Fault) -> str:
    """Return how often a fault fired: in all, in how many replications, and in each."""
    fired = cell.fired(fault.name)
    if not sum(fired):
        return "never fired"
    hit = sum(1 for count in fired if count)
    times = f"fired {sum(fired):,} time{'' if sum(fired) == 1 else 's'}"
    if len(fired) == 1:
        return times
    few, most = min(fired, default=0), max(fired, default=0)
    each = f"{few:,}" if few == most else f"{few:,} to {most:,}"
    return f"{times}, in {hit:,} of {plural(len(fired), 'replication')}, {each} each"


def union(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times that any of the spans covers, as spans that don't touch."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def strip(name: str, lines: Sequence[FaultLine], stories: Sequence[Story]) -> str:
    """Return the drawing."""
    end_us = max([story.end_us for story in stories], default=0) or 1
    end_s = end_us / 1e6
    axis = Axis(0.0, end_s, MARGIN, WIDTH - MARGIN, time_unit(end_s))
    parts = []
    for row, one in enumerate(lines):
        y = row * ROW
        head = one.name if one.name.startswith(one.kind) else f"{one.name} ({one.kind})"
        parts.append(label(MARGIN, y + 13, cut(head, WIDTH - 2 * MARGIN), "t"))
        bar = y + 20
        parts.append(element("rect", class_="f", x=MARGIN, y=bar, width=WIDTH - 20, height=BAR))
        bars = union([(begin, end_us if until is None else until) for begin, until in one.windows])
        if bars:
            spans = [(axis.at(begin / 1e6), axis.at(until / 1e6)) for begin, until in bars]
            shape = "".join(
                f"M{coordinate(left)} {coordinate(bar)}h{coordinate(max(1.0, right - left))}"
                f"v{coordinate(BAR)}H{coordinate(left)}z"
                for left, right in spans
            )
            told = f"{one.name} acts, first from {bars[0][0] / 1e6:g} s on"
            parts.append(element("path", title(told), class_="b", d=shape))
        columns = list(dict.fromkeys(round(axis.at(at / 1e6)) for at in sorted(one.firings)))
        if columns:
            ticks = "".join(
                f"M{coordinate(x)} {coordinate(bar)}v{coordinate(BAR)}" for x in columns
            )
            parts.append(element("path", title(f"{one.name} fired"), class_="k", d=ticks))
    base = len(lines) * ROW
    parts += [line(MARGIN, base, WIDTH - MARGIN, base, "a"), *foot(axis, base, WIDTH, TICKS)]
    return drawing(
        WIDTH, base + FOOT, f"{name}: when the faults acted",
        "; ".join(f"{one.name} {one.words}" for one in lines), parts, "strip",
    )  # fmt: skip
