"""A swimlane: who said what to whom, a lane an actor, time going down, a row a beat.

Rows have one height, so labels never touch however fast things happen; what is left out between
two rows is said in a row of its own. A message that took its time slants and says how long, a lost
one ends in a cross. A bar on a lane is the time in which its actor is down or stopped; those on the
left are the times of the faults on links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from scenarios.report.beats import (
    Beat,
    beats_of,
    causes_of,
    chosen,
    collapsed,
    runs_of,
    window,
)
from scenarios.report.scale import amount
from scenarios.report.story import Story
from scenarios.report.svg import cut, drawing, element, label, line, path, title, width_px, words

LANE: Final = 150.0
LANES_LIMIT: Final = 7
ROW: Final = 28.0
GAP: Final = 18.0
HEAD: Final = 30.0
TIMES: Final = 66.0  # the column of times
BAR: Final = 12.0  # the bar of a fault on links
BARS_LIMIT: Final = 5
TOOK_LEAST_S: Final = 0.001  # a message on its way for less is as good as there
ORDER: Final = ("agent", "server", "relay", "engine", "owner")


class Row(msgspec.Struct, frozen=True):
    """A beat, or what is left out: where it stands."""

    y: float
    t: int
    beat: Beat | None
    text: str = ""


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """A swimlane laid out: its actors, its rows, its bars, its size."""

    actors: list[str]
    rows: list[Row]
    bars: list[str]
    left: float
    width: float
    height: float

    def x(self, actor: str) -> float:
        """Return where an actor's lane is."""
        return self.left + LANE * (self.actors.index(actor) + 0.5)

    def y(self, t: int) -> float:
        """Return where a time is: above the first row that isn't before it."""
        return next((row.y - ROW / 2 for row in self.rows if row.t >= t), self.height - 4)


def clock(t_us: int) -> str:
    """Return a time as minutes and seconds, and hours if there are any: 4:57.60, 1:04:57.60."""
    hundredths = round(t_us / 10_000)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 100:02d}.{rest % 100:02d}"
    return f"{hours}:{minutes:02d}:{seconds}" if hours else f"{minutes}:{seconds}"


def swimlane(
    name: str,
    story: Story,
    focus: Sequence[int],
    run: str,
    limits: tuple[int, int],
    kinds: Mapping[str, str],
) -> str | None:
    """Return the drawing of a replication around the records in focus, None if it has none.

    `limits` are its rows and the characters of a tip at most; `kinds` has the kind of each actor,
    which orders the lanes.
    """
    in_focus = frozenset(focus)
    records = window(story.records, in_focus)
    beats = collapsed(beats_of(records, runs_of(story.records)), in_focus)
    picked = chosen(beats, causes_of(story.records, in_focus), in_focus, run, limits[0])
    actors = _actors(picked, in_focus, kinds)
    picked = [beat for beat in picked if beat.source in actors and beat.target in actors]
    if not picked:
        return None
    lanes = _laid_out(beats, picked, actors, _bars(story, picked))
    parts = [*_bands(lanes, story), *_lane_lines(lanes), *_arrows(lanes, in_focus, limits[1])]
    first, last = clock(picked[0].t), clock(picked[-1].t)
    described = f"{len(picked)} of {len(beats)} events, from {first} to {last}"
    return drawing(lanes.width, lanes.height, name, described, parts, "lanes")


def _actors(picked: Sequence[Beat], focus: frozenset[int], kinds: Mapping[str, str]) -> list[str]:
    """Return the actors that have a lane: those of what is in focus, then the busiest."""
    counts: dict[str, int] = {}
    for beat in picked:
        for actor in (beat.source, beat.target):
            counts[actor] = counts.get(actor, 0) + (1000 if beat.n in focus else 1)
    busy = sorted(counts, key=lambda actor: -counts[actor])[:LANES_LIMIT]
    kind_order = [kinds.get(actor, "") for actor in busy]
    places = {
        actor: ORDER.index(kind) if kind in ORDER else len(ORDER)
        for actor, kind in zip(busy, kind_order, strict=True)
    }
    return sorted(busy, key=lambda actor: (places[actor], actor))


def _bars(story: Story, picked: Sequence[Beat]) -> list[str]:
    """Return the faults whose time is drawn: those that fired and whose window shows."""
    first, last = picked[0].t, picked[-1].t
    stops = {stop.fault for stop in story.stops()}
    return [
        fault
        for fault, (begin_us, end_us) in story.windows.items()
        if fault not in stops and story.firings.get(fault)
        if begin_us <= last and (end_us is None or end_us >= first)
    ][:BARS_LIMIT]


def _laid_out(
    beats: Sequence[Beat], picked: Sequence[Beat], actors: list[str], bars: list[str]
) -> Lanes:
    places = {beat.n: place for place, beat in enumerate(beats)}
    rows: list[Row] = []
    y = HEAD + 6
    before = -1
    for beat in picked:
        missing = places[beat.n] - before - 1
        if missing and rows:
            y += GAP
            rows.append(Row(y - 6, rows[-1].t, None, f"{missing} more"))
        y += ROW
        rows.append(Row(y - 6, beat.t, beat))
        before = places[beat.n]
    left = TIMES + BAR * len(bars)
    return Lanes(
        actors=actors, rows=rows, bars=bars, left=left,
        width=left + LANE * len(actors) + 16, height=y + 10,
    )  # fmt: skip


def _bands(lanes: Lanes, story: Story) -> list[str]:
    """Return the bars of the faults on links, and those of actors that are stopped."""
    parts = []
    for number, fault in enumerate(lanes.bars):
        begin_us, end_us = story.windows[fault]
        top = lanes.y(begin_us)
        foot = lanes.height - 4 if end_us is None else lanes.y(end_us)
        x = TIMES + BAR * number
        told = title(f"{fault} acts from {clock(begin_us)}")
        parts.append(
            element(
                "rect", told, class_="b", x=x, y=top, width=BAR - 2, height=max(2.0, foot - top)
            )
        )
        room = foot - top - 8
        if room > 40:
            middle = f"translate({x + BAR - 4:.0f} {top + 4:.0f}) rotate(90)"
            parts.append(element("text", words(cut(fault, room)), class_="s", transform=middle))
    for stop in story.stops():
        shown = lanes.rows[0].t <= stop.end_us and stop.begin_us <= lanes.rows[-1].t
        if stop.actor in lanes.actors and shown:
            top, foot = lanes.y(stop.begin_us), lanes.y(stop.end_us)
            told = f"{stop.actor}: {stop.act} by {stop.fault}, until {clock(stop.end_us)}"
            parts.append(
                element("rect", title(told), class_="b", x=lanes.x(stop.actor) - 6, y=top,
                        width=12, height=max(4.0, foot - top))
            )  # fmt: skip
    return parts


def _lane_lines(lanes: Lanes) -> list[str]:
    parts = [label(0, 18, "min:s", "s")]
    for actor in lanes.actors:
        x = lanes.x(actor)
        parts.append(line(x, HEAD, x, lanes.height, "g"))
        parts.append(label(x, 18, cut(actor, LANE - 8), "t", "middle"))
    return parts


def _arrows(lanes: Lanes, focus: frozenset[int], tip_chars: int) -> list[str]:
    """Return the rows: arrows and dots first, then all labels, so that no arrow crosses one."""
    shapes: list[str] = []
    labels: list[str] = []
    time_before = ""
    for row in lanes.rows:
        beat = row.beat
        if beat is None:
            labels.append(label(lanes.left, row.y + 4, f"⋮ {row.text}", "s"))
            continue
        time_text = clock(beat.t)
        if time_text != time_before:
            labels.append(label(0, row.y + 4, time_text, "s"))
        time_before = time_text
        if beat.n in focus:
            shapes.append(
                element("rect", class_="b", x=lanes.left, y=row.y - 12, height=ROW - 3,
                        width=lanes.width - lanes.left)
            )  # fmt: skip
        told = title(tip(beat, tip_chars))
        if beat.source == beat.target:
            shapes.append(_dot(lanes, row, beat, told))
        else:
            top = row.y - (6 if beat.sent_us < beat.t else 0)
            shapes.append(_arrow(lanes, beat, top, row.y, told))
        labels.append(_label(lanes, row, beat))
    return shapes + labels


def tip(beat: Beat, chars: int) -> str:
    """Return what a pointer is shown at a beat."""
    text = f"{clock(beat.t)} record {beat.n}: {beat.told}"
    return text if len(text) <= chars else f"{text[: max(0, chars - 1)]}…"


def _dot(lanes: Lanes, row: Row, beat: Beat, told: str) -> str:
    class_ = "n" if beat.style == "event" else "k"
    return element("circle", told, class_=class_, cx=lanes.x(beat.source), cy=row.y, r=3.5)


def _arrow(lanes: Lanes, beat: Beat, top: float, y: float, told: str) -> str:
    """Return an arrow; what is lost ends with a cross three quarters of its way."""
    x1, x2 = lanes.x(beat.source), lanes.x(beat.target)
    way = 1 if x2 > x1 else -1
    if beat.style == "lost":
        x2 = x1 + (x2 - x1) * 0.75
        ends = [[(x2 - 4, y - 4), (x2 + 4, y + 4)], [(x2 - 4, y + 4), (x2 + 4, y - 4)]]
    else:
        ends = [[(x2 - 7 * way, y - 4), (x2, y), (x2 - 7 * way, y + 4)]]
    d = path([(x1, top), (x2, y)]) + "".join(map(path, ends))
    return element("path", told, class_="m" if beat.style == "message" else "x", d=d)


def _label(lanes: Lanes, row: Row, beat: Beat) -> str:
    times = f" ×{beat.times} until {clock(beat.until_us)}" if beat.times > 1 else ""
    took_s = float(f"{(beat.t - beat.sent_us) / 1e6:.2g}")
    took = f" after {amount(took_s, timed=True)}" if took_s >= TOOK_LEAST_S else ""
    text = f"{beat.label}{took}{times}"
    class_ = "h" if beat.style in ("message", "event") else "o"
    if beat.source == beat.target:
        x = lanes.x(beat.source)
        room = lanes.width - x - 10
        if width_px(text) > room and x - lanes.left > room:
            return label(x - 8, row.y + 4, cut(text, x - lanes.left - 8), class_, "end")
        return label(x + 8, row.y + 4, cut(text, room), class_)
    text = cut(text, lanes.width - lanes.left)
    half = width_px(text) / 2
    middle = (lanes.x(beat.source) + lanes.x(beat.target)) / 2
    middle = min(max(middle, lanes.left + half), lanes.width - half)
    above = 4 if beat.sent_us == beat.t else 8  # of a slanting arrow
    return label(middle, row.y - above, text, class_, "middle")
