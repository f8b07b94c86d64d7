"""A figure against what was wanted of it: a dot, its interval, and the limit or the wanted value.

The scale is the figure's own, so that the distance between the dot and what was wanted shows. What
an expectation accepts is shaded; of a comparison of two figures their difference is drawn.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from scenarios.judge import ROUNDING, Judgement
from scenarios.load import Expect
from scenarios.report.scale import Axis, amount
from scenarios.report.svg import drawing, element, line
from scenarios.results import ScenarioResult
from scenarios.stats import value

WIDTH: Final = 240.0
HEIGHT: Final = 26.0
MARGIN: Final = 8.0
CLOSEST: Final = 0.02  # of a figure, that an axis shows on both sides at least
MIDDLE: Final = HEIGHT / 2


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn of a judgement: infinite ends of `low` to `high` run out of the drawing.

    `wanted` are the limits or the value; `accepted` is the shaded range, None where one value is
    wanted and the interval must hold it.
    """

    here: float
    low: float
    high: float
    wanted: tuple[float, ...]
    accepted: tuple[float, float] | None
    timed: bool

    @property
    def tells(self) -> bool:
        """Whether there is anything to see: not where all is one value, the wanted one."""
        return self.low < self.high or self.wanted != (self.here,)


def shown_of(one: ScenarioResult, expect: Expect, judgement: Judgement) -> Shown | None:
    """Return what is drawn of a judgement, None if it has no figure."""
    expectation = expect.expectation
    if judgement.ours is None:
        return None
    here = judgement.ours
    limit = expectation.numbers[0].value if expectation.numbers else 0.0
    if expectation.right is not None:
        theirs = _theirs(one, expect, judgement)
        if theirs is None:
            return None
        here -= expectation.factor * theirs
    wanted: tuple[float, ...] = (limit,)
    accepted: tuple[float, float] | None = None
    if expectation.form == "within":
        wanted = (limit - expectation.numbers[1].value, limit + expectation.numbers[1].value)
        accepted = (wanted[0], wanted[1])
    elif expectation.form in ("<", "<="):
        accepted = (-math.inf, limit)
    elif expectation.form in (">", ">="):
        accepted = (limit, math.inf)
    low, high = ends(judgement) or (here, here)
    return Shown(
        here=here,
        low=low,
        high=high,
        wanted=wanted,
        accepted=accepted,
        timed=is_timed(one, expectation.left.metric, expectation.left.statistic),
    )


def ends(judgement: Judgement) -> tuple[float, float] | None:
    """Return the interval that decided, None if there is none or it is one value."""
    low, high = judgement.low, judgement.high
    if low is None or high is None or math.isclose(low, high, rel_tol=4 * ROUNDING):
        return None
    return low, high


def _theirs(one: ScenarioResult, expect: Expect, judgement: Judgement) -> float | None:
    right = expect.expectation.right
    assert right is not None, "asked of a comparison alone"
    left_label, _, label = judgement.cell.partition(" : ")
    samples = dict(one.lookup(right.metric, right.statistic, right.subscript))
    sample = samples.get(label or left_label)
    if sample is None or not len(sample):
        return None
    return value(sample, right.statistic)


def is_timed(one: ScenarioResult, metric: str, statistic: str = "mean") -> bool:
    """Whether a metric's statistic is a time in seconds."""
    return one.plan.scenarios[0].metrics[metric].source is not None and statistic != "count"


def draw(shown: Shown, name: str, verdict: str) -> str:
    """Return the drawing, described by `name` and the verdict's word."""
    axis = _axis(shown)
    low, high = axis.at(shown.low), axis.at(shown.high)
    parts = []
    if shown.accepted is not None:
        left, right = (axis.at(end) for end in shown.accepted)
        parts.append(element("rect", class_="ok", x=left, y=3, width=right - left, height=20))
    parts.append(line(MARGIN, MIDDLE, WIDTH - MARGIN, MIDDLE, "g"))
    if high > low:
        parts.append(line(low, MIDDLE, high, MIDDLE, "i"))
    for end, finite in ((low, shown.low), (high, shown.high)):
        if math.isfinite(finite) and high > low:
            parts.append(line(end, MIDDLE - 4, end, MIDDLE + 4, "i"))
    parts += [line(axis.at(end), 2, axis.at(end), HEIGHT - 2, "v") for end in shown.wanted]
    parts.append(element("circle", class_="d", cx=axis.at(shown.here), cy=MIDDLE, r=4.5))
    return drawing(WIDTH, HEIGHT, f"{name}: {verdict}", _words(shown), parts, "iv")


def _words(shown: Shown) -> str:
    ends = f"{amount(shown.low, shown.timed)} to {amount(shown.high, shown.timed)}"
    wanted = " to ".join(amount(one, shown.timed) for one in shown.wanted)
    return f"ours {amount(shown.here, shown.timed)}, interval {ends}, wanted {wanted}"


def _axis(shown: Shown) -> Axis:
    """Return an axis with room on both sides of all that is finite."""
    values = [
        one for one in (shown.here, shown.low, shown.high, *shown.wanted) if math.isfinite(one)
    ]
    low, high = min(values), max(values)
    # Never so near that what rounds to the wanted value stands at the other end.
    room = max((high - low) * 0.15, max(map(abs, values)) * CLOSEST) or 1.0
    return Axis(low - room, high + room, MARGIN, WIDTH - MARGIN)
