"""Axes: where the ticks stand, at 1-2-5 steps, and what is written beside them.

A time's axis is in one unit, the one in which its end is a number that people say: 800 ms, 90 s,
45 min, 12 h.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from scenarios.render import number

TICKS: Final = 5  # at most on one axis: a panel is as wide as a telephone
STEPS: Final = (1, 2, 5)
LONG: Final = 1e9
SHORT_S: Final = 0.1  # a single time below it is told in ms; expectations speak of 0.5 s


class Unit(NamedTuple):
    """What an axis is in: its name, and how many of the data's own units one of it is."""

    name: str
    size: float


# From the largest: an axis is in the first whose `least` it reaches, in seconds.
_TIMES: Final = (
    (36_000.0, Unit("h", 3600.0)),
    (600.0, Unit("min", 60.0)),
    (1.0, Unit("s", 1.0)),
    (0.0, Unit("ms", 0.001)),
)
PLAIN: Final = Unit("", 1.0)


def time_unit(longest_s: float) -> Unit:
    """Return the unit of an axis that reaches so many seconds."""
    if longest_s <= 0:
        return Unit("s", 1.0)
    return next(unit for least, unit in _TIMES if longest_s >= least)


def step(span: float, most: int = TICKS) -> float:
    """Return the smallest 1-2-5 step that cuts a span, above 0, into fewer than `most` parts."""
    power = math.floor(math.log10(span / most))
    for exponent in (power, power + 1):
        for factor in STEPS:
            found = float(f"{factor}e{exponent}")
            if span / found <= most - 1:
                return found
    return float(f"1e{power + 2}")


def ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Return the multiples of a 1-2-5 step from `low` to `high`, at most `most` of them."""
    if not high > low:
        return [low]
    one = step(high - low, most)
    first = math.ceil(low / one - 1e-9)
    last = math.floor(high / one + 1e-9)
    return [float(f"{number_ * one:.12g}") for number_ in range(first, last + 1)]


class Axis(NamedTuple):
    """An axis of data from `low` to `high`, drawn from `start` to `end` on the drawing."""

    low: float
    high: float
    start: float
    end: float
    unit: Unit = PLAIN

    def at(self, value: float) -> float:
        """Return where a value stands; what lies outside stands at the end."""
        if not self.high > self.low:
            return (self.start + self.end) / 2
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return self.start + share * (self.end - self.start)

    def marks(self, most: int = TICKS) -> list[tuple[float, str]]:
        """Return the ticks: where each stands, and its number in the axis's unit."""
        size = self.unit.size
        found = ticks(self.low / size, self.high / size, most)
        return [(self.at(value * size), figure(value)) for value in found]


def figure(value: float) -> str:
    """Return a number as tables show it; one that would fill a line by its power of ten."""
    return number(value) if abs(value) < LONG else f"{value:.4g}"


def amount(value: float | None, timed: bool) -> str:
    """Return a value with its unit, if it is a time in seconds: `9.8 s`, `3.2 min`."""
    if value is None:
        return "-"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if not timed:
        return figure(value)
    unit = time_unit(abs(value)) if abs(value) < SHORT_S or abs(value) > 1 else Unit("s", 1.0)
    return f"{figure(float(f'{value / unit.size:.4g}'))} {unit.name}"
