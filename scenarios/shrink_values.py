"""Simpler values: what a number, a duration or a distribution in a scenario file may become.

Candidates come the simplest first. A value never grows but to become rounder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from actors.chance import Distribution, Durations, Numbers, Sizes
from transports.units import (
    DURATION_LIMIT_US,
    SIZE_LIMIT_BYTES,
    Duration,
    Size,
    parse_duration,
    parse_size,
)

# Where to look for a constant in the place of a distribution: its ends and its middle first.
QUANTILES = (0.0, 0.5, 1.0, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875, 0.95)
_S, _M, _H, _D = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
ROUND_US = (
    *(0, 1_000, 10_000, 100_000, _S, 2 * _S, 5 * _S, 10 * _S, 20 * _S, 30 * _S),
    *(_M, 2 * _M, 5 * _M, 10 * _M, 20 * _M, 30 * _M, _H, 2 * _H, 6 * _H, 12 * _H),
    *(_D, 7 * _D, 30 * _D),
)
_AMOUNT = re.compile(r"(?<![\w.])(?:[0-9]+(?:\.[0-9]+)?(?:d|h|ms|us|m|s))+(?!\w)")
_NUMBER = re.compile(r"[0-9.]+")
_CALL = re.compile(r"\s*[a-z]+\s*\(.*\)\s*", re.DOTALL)


def simpler(value: Any) -> Iterator[Any]:
    """Yield simpler values in the place of one in a scenario file, the simplest first."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from lower(value)
    elif isinstance(value, float):
        yield from _rounder(value)
    elif isinstance(value, str):
        yield from _simpler_text(value)


def is_time(value: Any) -> bool:
    """Whether a value is a single duration."""
    return isinstance(value, str) and _parsed(parse_duration, value) is not None


def times_before(text: str) -> Iterator[str]:
    """Yield a time and some shortly before it, for what takes a while until then."""
    us = int(parse_duration(text))
    yield from (str(Duration(us - later)) for later in range(0, 45 * _S, 5 * _S) if later <= us)


def shorter_both(one: str, other: str) -> Iterator[tuple[str, str]]:
    """Yield two times less as much as makes the first a round one, the shortest first."""
    us, other_us = int(parse_duration(one)), int(parse_duration(other))
    for round_us in ROUND_US:
        less_us = us - round_us
        if 0 < less_us <= other_us:
            yield str(Duration(round_us)), str(Duration(other_us - less_us))


def lower(value: int, least: int = 0) -> Iterator[int]:
    """Yield smaller whole numbers: the least, then ever closer to the value, at last one less."""
    distance = value - least
    while distance > 0:
        yield value - distance
        distance //= 2


def _rounder(value: float) -> Iterator[float]:
    for digits in (1, 2, 3):
        rounded = float(f"{value:.{digits}g}")
        if len(repr(rounded)) < len(repr(value)):
            yield rounded


def _simpler_text(text: str) -> Iterator[Any]:
    if _CALL.fullmatch(text):
        yield from _constants(text)
        return
    size = _parsed(parse_size, text)
    if size is not None:
        yield from (str(Size(one)) for one in _shorter(int(size), 1, SIZE_LIMIT_BYTES))
        return
    # A duration, an offset with its sign, or a poll plan that has some.
    for match in _AMOUNT.finditer(text):
        amount = _parsed(parse_duration, match.group())
        for one in () if amount is None else _shorter_times(int(amount)):
            yield f"{text[: match.start()]}{Duration(one)}{text[match.end() :]}"


def _constants(text: str) -> Iterator[Any]:
    """Yield constants in the place of a distribution."""
    kinds: tuple[type[Distribution], ...] = (Durations, Sizes, Numbers)
    for kind in kinds:
        chance = _parsed(kind.parse, text)
        if chance is not None:
            break
    else:
        return
    for u in QUANTILES:
        amount = chance.quantile(u)
        if kind is Numbers:
            if abs(amount) < SIZE_LIMIT_BYTES:
                yield int(amount) if amount == int(amount) else amount
        elif amount < kind.ceiling:
            yield kind.write(amount)


def _shorter_times(us: int) -> Iterator[int]:
    """Yield shorter times and rounder ones; none is less round, so no two take turns for ever."""
    order = _digits(us), us
    return (one for one in _near_times(us) if (_digits(one), one) < order)


def _near_times(us: int) -> Iterator[int]:
    yield from (one for one in ROUND_US if one < us)
    for step in (_D, _H, 10 * _M, _M, 10 * _S, 5 * _S, _S, 100_000, 10_000, 1_000):
        if 4 * step <= us:  # a step that is large against it would change it too much
            down = us // step * step
            yield down
            yield down + step
    yield from _shorter(us, _S, DURATION_LIMIT_US)


def _digits(us: int) -> int:
    """Return how many digits a duration's text takes, less the noughts behind them."""
    return sum(len(part.replace(".", "").strip("0")) for part in _NUMBER.findall(str(Duration(us))))


def _shorter(amount: int, unit: int, limit: int) -> Iterator[int]:
    """Yield halves and less of an amount, in whole units, as far as it has some."""
    if amount <= limit:
        yield from (one * unit for one in lower(amount // unit) if one * unit < amount)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None
