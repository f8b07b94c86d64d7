"""Judging: does a sample bear out an expectation? Pass, fail, or inconclusive.

What each form asks for, and of which statistic:

- `equals E`: E lies within 3.3 standard errors. Rows of 0 and 1 use the binomial error that theory
  itself would have, sqrt(p * (1 - p) / n) at p = E, since a sample without a single 1 shows none.
  A percentile passes when E lies between the order statistics that 3.3 errors reach, which is the
  binomial test of how many values lie below E, and is right for whole numbers and ties.
- `max equals E` takes E for the bound of the support: nothing lies beyond it, and the gap to it is
  one that happens once in a thousand times or more often (`scenarios.stats.reach`). A bound that
  a sample need not come near is written `max <= E`.
- `agrees with P`: P lies within 3.3 * sqrt(2) standard errors, plus half a unit of P's last digit;
  max and min are equal to P once rounded like P.
- the rest: the 95 % interval lies inside, outside or across. Max, min and count of one value each
  have no error, so they are compared as they are. For two references the intervals are combined by
  MOVER (Zou & Donner 2008), the usual root of summed squares where they are symmetric. Two
  statistics of one cell are not independent: there the ends are added, which is never too narrow.

Results that don't vary have no error: `equals` then allows one part in 1e9, for rounding. A single
replication shows no error at all: it is compared exactly like those, and never passes an interval.
No data is inconclusive.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, Literal

import msgspec

from scenarios.expect import Expectation, Number, Reference
from scenarios.stats import (
    Z_95,
    Interval,
    Sample,
    enough_values,
    interval,
    parse_statistic,
    reach,
    standard_error,
    value,
)

Verdict = Literal["pass", "fail", "inconclusive"]
Cells = Sequence[tuple[str, Sample]]
Lookup = Callable[[str, str, str | None], Cells]
"""Given metric, statistic and subscript (None: every cell), the labels and samples of the cells."""

Z_ALLOWED: Final = 3.3  # keeps the false alarms of about 45 checks under 5 %
ROUNDING: Final = 1e-9  # relative; what summing and dividing may add to an exact result
NEEDED_LIMIT: Final = 10**9  # a larger number of replications is none that would ever be run


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an expectation in one cell.

    `ours` is the statistic, `error` its standard error, `low` and `high` the interval that decided;
    None where there is none. `needed` is the number of replications that would probably decide an
    inconclusive one, None when no number would, or none can be told.
    """

    expectation: str
    cell: str
    verdict: Verdict
    target: str
    detail: str
    ours: float | None = None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    needed: int | None = None


class _Finding(msgspec.Struct, frozen=True):
    """A verdict with its reasons, before it is put into words for one cell."""

    verdict: Verdict
    sentence: str
    span: Interval | None = None
    needed: int | None = None


def judge(expectation: Expectation, lookup: Lookup) -> tuple[Judgement, ...]:
    """Judge an expectation in every cell that its left reference means; never empty.

    With two references, one cell on either side is compared with all of the other; several on both
    sides are paired by their labels.
    """
    left = _cells(expectation.left, lookup)
    if not left:
        return (_no_data(expectation, ""),)
    if expectation.right is None:
        return tuple(_judge_one(expectation, cell, sample) for cell, sample in left)
    right = _cells(expectation.right, lookup)
    if len(right) == 1:
        pairs = [(*one, *right[0]) for one in left]
    elif len(left) == 1:
        pairs = [(*left[0], *other) for other in right]
    else:
        others = dict(right)
        pairs = [(cell, sample, cell, others.get(cell, Sample(()))) for cell, sample in left]
    if not pairs:
        return (_no_data(expectation, left[0][0]),)
    return tuple(_judge_pair(expectation, *pair) for pair in pairs)


def _cells(reference: Reference, lookup: Lookup) -> Cells:
    return lookup(reference.metric, reference.statistic, reference.subscript)


def _judge_one(expectation: Expectation, cell: str, sample: Sample) -> Judgement:
    statistic = expectation.left.statistic
    if not _has_data(sample, statistic):
        return _no_data(expectation, cell)
    first = expectation.numbers[0]
    extreme = statistic in {"min", "max"}
    if expectation.form == "equals":
        finding = (_bound if extreme else _equals)(sample, statistic, first)
    elif expectation.form == "agrees with":
        finding = (_rounded if extreme else _agrees)(sample, statistic, first)
    else:
        finding = _evidence(sample, statistic, _accepted(expectation))
    return _judgement(expectation, cell, sample, finding)


def _has_data(sample: Sample, statistic: str) -> bool:
    """A sum or a count of nothing is 0 when replications looked for it; all else needs a value."""
    return bool(sample.values) or (statistic in {"sum", "count"} and sample.replications > 0)


def _no_data(expectation: Expectation, cell: str) -> Judgement:
    return Judgement(
        expectation=expectation.text,
        cell=cell,
        verdict="inconclusive",
        target=expectation.target,
        detail="there is no data: the metric has no value here",
    )


def _judgement(expectation: Expectation, cell: str, sample: Sample, finding: _Finding) -> Judgement:
    statistic = expectation.left.statistic
    return Judgement(
        expectation=expectation.text,
        cell=cell,
        verdict=finding.verdict,
        target=expectation.target,
        detail=finding.sentence,
        ours=value(sample, statistic),
        error=standard_error(sample, statistic),
        low=finding.span.low if finding.span else None,
        high=finding.span.high if finding.span else None,
        needed=finding.needed,
    )


def _equals(sample: Sample, statistic: str, expected: Number) -> _Finding:
    error = _theory_error(sample, statistic, expected.value)
    if error is not None:
        ours = value(sample, statistic)
        span: Interval | None = Interval(ours - Z_ALLOWED * error, ours + Z_ALLOWED * error)
    else:
        span = interval(sample, statistic, Z_ALLOWED)
    return _enclosed(sample, statistic, expected, span, slack=0.0)


def _agrees(sample: Sample, statistic: str, published: Number) -> _Finding:
    ours = value(sample, statistic)
    between = (ours + published.value) / 2  # the best guess of what both samples are from
    error = _theory_error(sample, statistic, between)
    z = Z_ALLOWED * math.sqrt(2)
    if error is not None:
        span: Interval | None = Interval(ours - z * error, ours + z * error)
    elif parse_statistic(statistic).share is not None:
        span = interval(sample, statistic, z)
    else:
        # Student's factor belongs to 3.3 errors; the other sample is as large as ours.
        span = _widened(interval(sample, statistic, Z_ALLOWED), ours, math.sqrt(2))
    return _enclosed(sample, statistic, published, span, slack=published.last_digit / 2)


def _theory_error(sample: Sample, statistic: str, expected: float) -> float | None:
    """Return the binomial standard error of rows of 0 and 1 under `expected`; None for others.

    An expectation that no such rows could have has no error, so that it must be met exactly.
    """
    if statistic == "mean":
        single = sample.counts is None or sample.constant
        rows, scale = (sample if single else None), 1
    elif statistic == "sum":
        rows, scale = Sample(sample.totals), sample.replications
    elif statistic == "count" and sample.counts is not None:
        rows, scale = Sample(sample.counts), sample.replications
    else:
        return None
    if rows is None or len(rows) < 2 or not rows.binary:
        return None
    p = expected / scale
    return scale * math.sqrt(p * (1 - p) / len(rows)) if 0 <= p <= 1 else 0.0


def _enclosed(
    sample: Sample, statistic: str, number: Number, span: Interval | None, slack: float
) -> _Finding:
    """Judge whether the span, `slack` wider on both sides, encloses the number."""
    ours = value(sample, statistic)
    slack = max(slack, ROUNDING * max(abs(ours), abs(number.value)))
    if span is None:
        same = abs(ours - number.value) <= slack
        cure = "" if same else "; a result of chance needs at least 2 replications"
        sentence = f"{_text(ours)} from one replication was compared as exact{cure}"
        return _Finding("pass" if same else "fail", sentence)
    wide = Interval(span.low - slack, span.high + slack)
    if not wide.low <= number.value <= wide.high:
        span_text = f"{_text(wide.low)} to {_text(wide.high)}"
        sentence = f"{number.text} lies outside {span_text}, what chance allows around ours"
        return _Finding("fail", sentence, wide)
    share = parse_statistic(statistic).share
    if share is not None and _speaks_not(sample, wide, number.value):
        needed = _replications(sample, enough_values(share, Z_ALLOWED) / len(sample))
        sentence = f"{_text(ours)}, but {len(sample)} values can't bound this percentile"
        return _Finding("inconclusive", sentence, wide, needed)
    sentence = f"{_text(ours)}; a shift of more than {_distance(wide, ours)} would be caught"
    return _Finding("pass", sentence, wide)


def _speaks_not(sample: Sample, span: Interval, number: float) -> bool:
    """Whether the number lies past all values, on a side where the sample has no bound."""
    above = number > sample.ordered[-1] and span.high == math.inf
    return above or (number < sample.ordered[0] and span.low == -math.inf)


def _bound(sample: Sample, statistic: str, bound: Number) -> _Finding:
    """Judge `max equals E`, where E bounds the support; `min` likewise."""
    ours = value(sample, statistic)
    slack = ROUNDING * max(abs(ours), abs(bound.value))
    gap = bound.value - ours if statistic == "max" else ours - bound.value
    if gap < -slack:
        return _Finding("fail", f"{_text(ours)} lies beyond the bound")
    if gap <= slack:
        return _Finding("pass", f"{_text(ours)} reaches the bound")
    allowed = reach(sample, statistic)
    if allowed is None:
        return _Finding("inconclusive", f"{_text(ours)} is too few values to tell a bound from")
    if gap > allowed:
        sentence = (
            f"{_text(ours)} stays {_text(gap)} away from the bound, and {_text(allowed)} would be "
            f'chance; write "{"<=" if statistic == "max" else ">="}" for a bound that isn\'t neared'
        )
        return _Finding("fail", sentence)
    sentence = f"{_text(ours)}; a bound more than {_text(allowed)} away would be caught"
    return _Finding("pass", sentence)


def _rounded(sample: Sample, statistic: str, published: Number) -> _Finding:
    """Judge `max agrees with P`: equal once both are rounded to P's last digit."""
    ours = value(sample, statistic)
    digit = Fraction(repr(published.last_digit))
    same = round(Fraction(ours) / digit) == round(Fraction(published.value) / digit)
    shown = _text(float(round(Fraction(ours) / digit) * digit))
    sentence = f"{_text(ours)} is {shown} when rounded like {published.text}"
    return _Finding("pass" if same else "fail", sentence)


class _Accepted(msgspec.Struct, frozen=True):
    """The values that an expectation accepts, from low to high; whether the ends belong to it."""

    low: float
    high: float
    closed: bool

    def verdict(self, span: Interval) -> Verdict:
        """Judge a span of plausible values: inside, outside, or across an end."""
        above = span.low > self.low or (self.closed and span.low == self.low)
        below = span.high < self.high or (self.closed and span.high == self.high)
        if (above or self.low == -math.inf) and (below or self.high == math.inf):
            return "pass"
        outside = span.high < self.low or span.low > self.high
        touches = not self.closed and (span.high == self.low or span.low == self.high)
        return "fail" if outside or touches else "inconclusive"

    def distance(self, here: float) -> float:
        """Return how far the nearer end is."""
        return min(abs(here - self.low), abs(here - self.high))


def _accepted(expectation: Expectation) -> _Accepted:
    if expectation.form == "within":
        middle, tolerance = (number.value for number in expectation.numbers)
        # 1.9 within 2 +/- 0.1 is meant to hold, whatever binary fractions make of it.
        tolerance += ROUNDING * max(abs(middle), tolerance)
        return _Accepted(middle - tolerance, middle + tolerance, True)
    # Of two sides the difference is judged, so the limit is 0.
    limit = expectation.numbers[0].value if expectation.numbers else 0.0
    closed = expectation.form in {"<=", ">="}
    if expectation.form in {"<", "<="}:
        return _Accepted(-math.inf, limit, closed)
    return _Accepted(limit, math.inf, closed)


def _evidence(sample: Sample, statistic: str, accepted: _Accepted) -> _Finding:
    span = interval(sample, statistic, Z_95)
    if span is None:
        return _Finding("inconclusive", "one replication has no interval: run at least 2", None, 2)
    ours = value(sample, statistic)
    return _weighed(sample, statistic, f"{_text(ours)}, 95 % interval", ours, span, accepted)


def _judge_pair(
    expectation: Expectation, cell: str, left: Sample, other_cell: str, right: Sample
) -> Judgement:
    """Judge `left < factor * right` by the interval of their difference."""
    assert expectation.right is not None
    statistic, other = expectation.left.statistic, expectation.right.statistic
    label = cell if cell == other_cell else f"{cell} : {other_cell}"
    if not (_has_data(left, statistic) and _has_data(right, other)):
        return _no_data(expectation, label)
    factor = expectation.factor
    spans = interval(left, statistic, Z_95), interval(right, other, Z_95)
    if spans[0] is None or spans[1] is None:
        sentence = "one replication has no interval: run at least 2"
        return _judgement(expectation, label, left, _Finding("inconclusive", sentence, None, 2))
    ours, theirs = value(left, statistic), factor * value(right, other)
    span = _difference(
        (ours, spans[0]),
        (theirs, Interval(factor * spans[1].low, factor * spans[1].high)),
        independent=cell != other_cell,
    )
    lead = f"{_text(ours)} and {_text(theirs)}, 95 % interval of the difference"
    larger = max((left, right), key=lambda sample: sample.replications)
    accepted = _accepted(expectation)
    finding = _weighed(larger, statistic, lead, ours - theirs, span, accepted)
    return _judgement(expectation, label, left, finding)


def _difference(
    left: tuple[float, Interval], right: tuple[float, Interval], *, independent: bool
) -> Interval:
    (ours, mine), (theirs, other) = left, right
    combine: Callable[[float, float], float] = math.hypot if independent else _sum
    middle = ours - theirs
    return Interval(
        middle - combine(ours - mine.low, other.high - theirs),
        middle + combine(mine.high - ours, theirs - other.low),
    )


def _sum(one: float, other: float) -> float:
    return one + other


def _weighed(
    sample: Sample, statistic: str, lead: str, middle: float, span: Interval, accepted: _Accepted
) -> _Finding:
    """Judge a span against what is accepted, and tell how many replications would decide."""
    verdict = accepted.verdict(span)
    where = {"pass": "inside", "fail": "outside", "inconclusive": "across the limit"}[verdict]
    sentence = f"{lead} {_text(span.low)} to {_text(span.high)}, {where}"
    needed = None
    if verdict == "inconclusive":
        half = max(middle - span.low, span.high - middle)
        share = parse_statistic(statistic).share
        if math.isfinite(half):
            distance = accepted.distance(middle)
            needed = _replications(sample, (half / distance) ** 2) if distance else None
        elif share is not None:
            needed = _replications(sample, enough_values(share, Z_95) / len(sample))
        sentence += f"; about {needed:,} replications would decide" if needed else ""
    return _Finding(verdict, sentence, span, needed)


def _replications(sample: Sample, times: float) -> int | None:
    """Return that many times the sample's replications, rounded up to two digits."""
    exact = sample.replications * times
    if not exact <= NEEDED_LIMIT:
        return None
    needed = max(sample.replications + 1, math.ceil(exact))
    step = int(10 ** max(0, len(str(needed)) - 2))
    return math.ceil(needed / step) * step


def _widened(span: Interval | None, middle: float, times: float) -> Interval | None:
    if span is None:
        return None
    low, high = middle - span.low, span.high - middle
    return Interval(middle - times * low, middle + times * high)


def _distance(span: Interval, middle: float) -> str:
    return _text(max(middle - span.low, span.high - middle))


def _text(number: float) -> str:
    return f"{number:.6g}"
