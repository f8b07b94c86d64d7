"""Statistics of one metric in one cell: values, standard errors, intervals.

Everything here is a pure function of a `Sample`, the same on every machine: sums are `math.fsum`,
which rounds once and therefore doesn't depend on order, and sums of whole numbers are exact.

*Percentiles* are nearest-rank: of n sorted values, pNN is the one of rank ceil(n * NN / 100), the
smallest value that at least NN % of the sample don't exceed. It is always a value that occurred,
and the median is p50. (A script that takes `sorted(values)[int(p * n)]` reads one rank higher when
p * n is whole, as with p95 of 2,000; that is a tenth of a standard error.)

*Standard errors* are those of independent replications. Where a replication has several values,
as with five runs each, the values of one are not independent: then its deviations are summed first,
and the spread of those sums over replications counts (the ratio estimator, cluster-robust).

- mean: sd / sqrt(n); sum: sqrt(replications) times the sd of a replication's sum, which for rows of
  0 and 1 is the binomial error; sd: by its influence function, with fourth moments, which a small
  sample of a heavy tail underrates (300 exponentials miss 3.3 of them in 1 % of all samples).
- percentiles: by order statistics. Of n values, n * p give or take z * sqrt(n * p * (1 - p)) lie
  below the true percentile, whatever the distribution is, so the values of those two ranks enclose
  it. That holds for whole numbers with many ties too, where the interval is one or a few values.
- count: how many values there are; its error is that of a sum over replications.
- min, max: what was seen, without an error.

With few replications an error is itself uncertain, so an interval of z errors is widened to
Student's quantile of the same probability: 3.3 becomes 3.47 at 60 replications and 4.8 at ten.
"""

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

NAMES: Final = ("mean", "median", "min", "max", "sum", "count", "sd")
Z_95: Final = 1.959964  # 95 % of a normal distribution lie within so many standard errors
REACH_CHANCE: Final = 1e-3  # how rarely a sample stays further below its bound than `reach` says

_PERCENTILE: Final = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)")


class Statistic(NamedTuple):
    """A statistic by name; `share` is 0.95 for p95, and None where there is no such thing."""

    name: str
    kind: str  # one of NAMES, or "percentile"
    share: Fraction | None = None


class Interval(NamedTuple):
    """Where the true value lies; an end that the sample can't bound is infinite."""

    low: float
    high: float


class Sample:
    """The values of a metric in one cell, in the order of replications.

    `counts` says how many values each replication has, also when it has none; None means one each.
    Values are finite. A sample is immutable: what is computed from it is kept.
    """

    __slots__ = ("_ordered", "_totals", "counts", "values")

    def __init__(self, values: Iterable[float], counts: Iterable[int] | None = None) -> None:
        self.values = array("d", values)
        self.counts = None if counts is None else array("L", counts)
        self._ordered: array[float] | None = None
        self._totals: array[float] | None = None
        if not all(map(math.isfinite, self.values)):
            raise ValueError("a sample holds finite values only: leave out what was not observed")
        if self.counts is not None and sum(self.counts) != len(self.values):
            raise ValueError(f"counts add up to {sum(self.counts)}, not to {len(self.values)}")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def replications(self) -> int:
        """How many replications there are, those without a value included."""
        return len(self.values) if self.counts is None else len(self.counts)

    @property
    def ordered(self) -> "array[float]":
        """The values, sorted once."""
        if self._ordered is None:
            self._ordered = array("d", sorted(self.values))
        return self._ordered

    @property
    def totals(self) -> "array[float]":
        """The sum of each replication's values."""
        if self._totals is None:
            self._totals = array("d", _grouped(self.values, self.counts))
        return self._totals

    @property
    def constant(self) -> bool:
        """Whether there is only one value, however often."""
        return not self.values or min(self.values) == max(self.values)

    @property
    def binary(self) -> bool:
        """Whether all values are 0 or 1."""
        return self.values.count(0.0) + self.values.count(1.0) == len(self.values)

    def mean(self) -> float:
        """The mean; of equal values exactly that value. Needs at least one value."""
        return self.values[0] if self.constant else math.fsum(self.values) / len(self.values)

    def sd(self) -> float:
        """The standard deviation, over n - 1; 0 when there is one value only."""
        if self.constant:
            return 0.0
        mean = self.mean()
        squares = math.fsum([(value - mean) ** 2 for value in self.values])
        return math.sqrt(squares / (len(self.values) - 1))

    def percentile(self, share: Fraction) -> float:
        """The nearest-rank percentile for a share above 0 and below 1."""
        return self.ordered[math.ceil(share * len(self.values)) - 1]


@lru_cache(maxsize=256)
def parse_statistic(name: str) -> Statistic:
    """Return the statistic called `name`: mean, median, min, max, sum, count, sd, p95, p99.9.

    Raises ValueError with the cure.
    """
    if name == "median":
        return Statistic(name, "percentile", Fraction(1, 2))
    if name in NAMES:
        return Statistic(name, name)
    match = _PERCENTILE.fullmatch(name)
    if match:
        share = Fraction(match[1]) / 100
        if share:
            return Statistic(name, "percentile", share)
    if name in {"p0", "p00", "p100"}:
        raise ValueError(f'"{name}" is not a percentile: write "{"max" if "1" in name else "min"}"')
    close = get_close_matches(name, (*NAMES, "p95"), 1)
    cure = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(NAMES)}, p95, p99.9"
    raise ValueError(f'there is no statistic "{name}": {cure}')


def value(sample: Sample, statistic: str) -> float:
    """Return the statistic of the sample. Only sum and count exist for a sample without values."""
    _, kind, share = parse_statistic(statistic)
    if share is not None:
        return sample.percentile(share)
    if kind == "mean":
        return sample.mean()
    if kind == "sd":
        return sample.sd()
    if kind == "sum":
        return math.fsum(sample.values)
    if kind == "count":
        return float(len(sample))
    return max(sample.values) if kind == "max" else min(sample.values)


def standard_error(sample: Sample, statistic: str) -> float | None:
    """Return the standard error of the statistic; None when one replication can't tell it.

    It is 0 for results that don't vary. A percentile of whole numbers, whose interval may be one
    value, has at least the error of rounding to them, step / sqrt(12): it is not known any better.
    """
    _, kind, share = parse_statistic(statistic)
    if kind in {"min", "max"}:
        return 0.0
    if kind == "count" and sample.counts is None:
        return 0.0
    if sample.replications < 2 or (not sample.values and kind not in {"sum", "count"}):
        return None
    if share is not None:
        return _percentile_error(sample, share)
    if kind in {"sum", "count"}:
        totals = sample.totals if kind == "sum" else sample.counts or ()
        return Sample(totals).sd() * math.sqrt(sample.replications)
    if sample.constant:
        return 0.0
    mean = sample.mean()
    deviations = [value - mean for value in sample.values]
    if kind == "sd":
        sd = sample.sd()
        deviations = [(deviation**2 - sd * sd) / (2 * sd) for deviation in deviations]
    return _error_of_mean(deviations, sample.counts)


def interval(sample: Sample, statistic: str, z: float) -> Interval | None:
    """Return where the true value lies, `z` standard errors to both sides; None when unknown.

    That of a percentile is not symmetric: it goes from one order statistic to another, and is
    infinite to a side where the sample is too small to have one. That of an sd is symmetric as a
    ratio.
    """
    share = parse_statistic(statistic).share
    if share is not None:
        return _percentile_interval(sample, share, z) if sample.replications > 1 else None
    error = standard_error(sample, statistic)
    if error is None:
        return None
    here = value(sample, statistic)
    half = error * student(z, sample.replications - 1) if error else 0.0
    if statistic == "sd" and half:
        # On the scale of ratios an sd is nearly normal; on its own it is skewed to the right.
        return Interval(here * math.exp(-half / here), here * math.exp(half / here))
    return Interval(here - half, here + half)


def reach(sample: Sample, statistic: str) -> float | None:
    """Return how far beyond max (below min) the bound of the support plausibly lies.

    Where a distribution ends with a positive density, the gaps between the topmost values, and the
    one from the maximum to the bound, are independent and exponential with one mean. Measured by
    the k topmost gaps, k = sqrt(n), the last one exceeds k * (REACH_CHANCE ** (-1 / k) - 1) times
    their mean with probability REACH_CHANCE. A density that falls to 0 at the end makes gaps grow
    towards it and is refused more often; a bound that is hit (a clamp) must be met exactly.
    Replications with several values count by their own extremes. None with fewer than two of them.
    """
    values = sample.values
    sign = 1.0 if statistic == "max" else -1.0
    if sample.counts is not None:
        values = array("d", _extremes(sample.values, sample.counts, sign))
    if len(values) < 2:
        return None
    ranked = sorted(sign * value for value in values)
    k = min(len(ranked) - 1, max(2, math.isqrt(len(ranked))))
    return (ranked[-1] - ranked[-k - 1]) * float(REACH_CHANCE ** (-1 / k) - 1)


def enough_values(share: Fraction, z: float) -> int:
    """Return how many values bound a percentile to both sides with `z` standard errors."""
    odds = float(max(share / (1 - share), (1 - share) / share))
    return math.ceil(z * z * odds) + 1


def student(z: float, freedom: int) -> float:
    """Return Student's t of the tail probability that a normal deviate `z` > 0 has.

    Exact for 1 and 2 degrees of freedom, else by Wallace (1959): up to z = 3.3 within 1 % from 9
    degrees on, and at most a tenth too wide below.
    """
    tail = math.erfc(z / math.sqrt(2)) / 2
    if freedom == 1:
        return 1 / math.tan(math.pi * tail)
    if freedom == 2:
        return (1 - 2 * tail) / math.sqrt(2 * tail * (1 - tail))
    scaled = z * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(scaled * scaled / freedom))


def _grouped(values: Sequence[float], counts: Sequence[int] | None) -> Sequence[float]:
    """Return the sum of each replication's values."""
    if counts is None:
        return values
    sums, start = [], 0
    for count in counts:
        sums.append(math.fsum(values[start : start + count]))
        start += count
    return sums


def _extremes(values: Sequence[float], counts: Sequence[int], sign: float) -> list[float]:
    found, start = [], 0
    for count in counts:
        if count:
            found.append(sign * max(sign * value for value in values[start : start + count]))
        start += count
    return found


def _error_of_mean(deviations: Sequence[float], counts: Sequence[int] | None) -> float:
    """Return the standard error of a mean from the deviations that add up to 0."""
    sums = _grouped(deviations, counts)
    spread = math.fsum([total * total for total in sums]) * len(sums) / (len(sums) - 1)
    return math.sqrt(spread) / len(deviations)


def _percentile_interval(sample: Sample, share: Fraction, z: float) -> Interval:
    if sample.constant:
        return Interval(sample.values[0], sample.values[0])
    count = len(sample)
    middle = float(share * count)
    half = z * math.sqrt(middle * float(1 - share))
    if sample.counts is not None:
        half *= math.sqrt(_design_effect(sample, share))
        half *= student(z, sample.replications - 1) / z
    low, high = math.ceil(middle - half), math.floor(middle + half) + 1
    return Interval(
        sample.ordered[low - 1] if low >= 1 else -math.inf,
        sample.ordered[high - 1] if high <= count else math.inf,
    )


def _design_effect(sample: Sample, share: Fraction) -> float:
    """Return how many times the variance of a share grows by several values a replication."""
    here = sample.percentile(share)
    below = [1.0 if value <= here else 0.0 for value in sample.values]
    part = math.fsum(below) / len(below)
    if part == 1.0:
        return 1.0
    error = _error_of_mean([one - part for one in below], sample.counts)
    return error * error * len(below) / (part * (1 - part))


def _percentile_error(sample: Sample, share: Fraction) -> float | None:
    if sample.constant:
        return 0.0
    here = sample.percentile(share)
    low, high = _percentile_interval(sample, share, Z_95)
    if math.isinf(low) and math.isinf(high):
        return None
    if math.isinf(low) or math.isinf(high):
        half = high - here if math.isinf(low) else here - low
    else:
        half = (high - low) / 2
    return half / Z_95 if half else _step(sample.ordered, here) / math.sqrt(12)


def _step(ordered: Sequence[float], here: float) -> float:
    """Return the distance from `here` to the nearest other value."""
    first, after = bisect_left(ordered, here), bisect_right(ordered, here)
    below = here - ordered[first - 1] if first else math.inf
    above = ordered[after] - here if after < len(ordered) else math.inf
    return min(below, above)
