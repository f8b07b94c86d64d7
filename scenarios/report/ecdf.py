"""ECDFs: what share of a metric's values lies at or below each value, a panel a cell.

The panels of one metric share their axes, so that they compare. A long tail doesn't flatten the
rest: where the topmost hundredth takes more than half of the room, the axis ends at p99 and the
panel says how far the values go. Lines show where expectations have their thresholds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import msgspec

from scenarios.report.interval import is_timed
from scenarios.report.scale import PLAIN, TICKS, Axis, amount, time_unit
from scenarios.report.svg import cut, drawing, element, foot, label, line, path, width_px
from scenarios.results import CellResult, ScenarioResult
from scenarios.stats import Sample, parse_statistic, value

WIDTH: Final = 288.0
HEIGHT: Final = 150.0
LEFT: Final = 40.0
RIGHT: Final = 12.0
BOTTOM: Final = 30.0
ROW: Final = 13.0  # the height of a threshold's label
THRESHOLDS_LIMIT: Final = 3  # labels above one panel; more would be taller than the curve
STRIDE_PX: Final = 2  # between two points of a curve
TAIL: Final = Fraction(99, 100)


class Threshold(msgspec.Struct, frozen=True):
    """Where an expectation has its limit on a metric's values, and what it says."""

    at: float
    text: str


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One panel: a cell's drawing and the words below it. `name` files it."""

    name: str
    cell: str
    svg: str
    words: str


def thresholds(one: ScenarioResult, metric: str, cell: CellResult) -> list[Threshold]:
    """Return the limits that expectations set on a metric in a cell, one a statistic.

    A sum, a count and a standard deviation lie on no axis of values.
    """
    found: dict[tuple[str, bool], Threshold] = {}
    for expect in one.plan.expects:
        expectation = expect.expectation
        left = expectation.left
        if left.metric != metric or parse_statistic(left.statistic).kind in ("sum", "count", "sd"):
            continue
        if left.subscript is not None and not cell.cell.matches(left.subscript):
            continue
        if expectation.right is not None:
            right = expectation.right
            others = one.lookup(right.metric, right.statistic, right.subscript)
            if len(others) != 1 or not len(others[0][1]):
                continue
            at = expectation.factor * value(others[0][1], right.statistic)
        else:
            at = expectation.numbers[0].value
        exact = expectation.form in ("equals", "agrees with")
        text = f"{left.statistic} {expectation.target}"
        found.setdefault((left.statistic, exact), Threshold(at, text))
    return list(found.values())[:THRESHOLDS_LIMIT]


def panels(one: ScenarioResult, metric: str, limit: int) -> list[Panel]:
    """Return a metric's panels, of the first `limit` cells that have a value."""
    cells = [cell for cell in one.cells if len(cell.samples[metric])]
    shown = cells[:limit]
    if not shown:
        return []
    limits = [thresholds(one, metric, cell) for cell in shown]
    samples = [cell.samples[metric] for cell in shown]
    low, high = _range(samples, [each.at for few in limits for each in few])
    timed = is_timed(one, metric)
    unit = time_unit(high) if timed else PLAIN
    rows = max(map(len, limits))
    top = 8 + rows * ROW
    axis = Axis(low, high, LEFT, WIDTH - RIGHT, unit)
    found = []
    for cell, few in zip(shown, limits, strict=True):
        sample, name = cell.samples[metric], f"{one.name} {metric}"
        text = cell.cell.label
        words = _words(sample, timed)
        parts = [*_frame(axis, top), *_curve(sample, axis, top), *_lines(few, axis, top)]
        described = f"Share of values at or below each: {words}"
        heading = f"{metric}: distribution" + (f" in {text}" if text else "")
        svg = drawing(WIDTH, HEIGHT + top, heading, described, parts)
        found.append(Panel(name=f"{name} {text}".strip(), cell=text, svg=svg, words=words))
    return found


def _range(samples: Sequence[Sample], limits: Sequence[float]) -> tuple[float, float]:
    """Return the axis that all panels share."""
    low = min(sample.ordered[0] for sample in samples)
    high = max(sample.ordered[-1] for sample in samples)
    near = max([sample.percentile(TAIL) for sample in samples])
    if high - low > 2 * (near - low) > 0:
        high = near
    low = min([low, *(at for at in limits if at > low - (high - low))])
    high = max([high, *(at for at in limits if at < high + (high - low))])
    if low > 0 and low < high / 2:
        low = 0.0
    if not high > low:
        room = abs(high) * 0.5 or 1.0
        return low - room, high + room
    return low, high


def _words(sample: Sample, timed: bool) -> str:
    figures = [f"{name} {amount(value(sample, name), timed)}" for name in ("median", "p95", "max")]
    return f"{', '.join(figures)} of {len(sample):,} value{'' if len(sample) == 1 else 's'}"


def _frame(axis: Axis, top: float) -> list[str]:
    """Return the grid with its numbers."""
    base = top + HEIGHT - BOTTOM
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = base - share * (base - top)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, "g"))
        parts.append(label(LEFT - 6, y + 4, f"{share:.0%}", "s", "end"))
    return [*parts, *foot(axis, base, WIDTH, TICKS)]


def _curve(sample: Sample, axis: Axis, top: float) -> list[str]:
    """Return the curve as steps, at the drawing's own resolution."""
    base = top + HEIGHT - BOTTOM
    ordered, size = sample.ordered, len(sample)
    points = [(axis.at(max(axis.low, ordered[0])), base)]
    before = 0
    columns = int((axis.end - axis.start) / STRIDE_PX)
    for column in range(columns + 1):
        x = axis.start + column * STRIDE_PX
        edge = axis.low + (axis.high - axis.low) * column / columns
        count = bisect_right(ordered, edge if column < columns else axis.high)
        if count == before:
            continue
        # The step stands where its first value does, if that is the only one of this column.
        x = axis.at(ordered[before]) if ordered[before] == ordered[count - 1] else x
        y = base - (base - top) * count / size
        points += [(x, points[-1][1]), (x, y)]
        before = count
    points.append((axis.end, points[-1][1]))
    return [element("path", class_="c", d=path(points))]


def _lines(few: Sequence[Threshold], axis: Axis, top: float) -> list[str]:
    """Return the thresholds, each with its label in a row of its own."""
    base = top + HEIGHT - BOTTOM
    parts = []
    for row, each in enumerate(few):
        x = axis.at(each.at)
        y = 10 + row * ROW
        beyond = each.at > axis.high or each.at < axis.low
        text = cut(f"{each.text}, beyond the axis" if beyond else each.text, WIDTH - 16)
        right = x + 4 + width_px(text) <= WIDTH
        if not beyond:
            parts.append(line(x, y - 8, x, base, "w"))
        anchor, at = ("start", x + 4) if right else ("end", max(x - 4, width_px(text)))
        parts.append(label(at, y, text, "o", anchor))
    return parts
