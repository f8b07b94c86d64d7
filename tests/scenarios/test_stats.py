"""Statistics against the standard library, and errors against what samples really do."""

import math
import pickle
import statistics
from collections.abc import Callable
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.stats import (
    Z_95,
    Sample,
    enough_values,
    interval,
    parse_statistic,
    reach,
    standard_error,
    student,
    value,
)

FLOATS = st.floats(-1e6, 1e6)


@given(st.lists(FLOATS, min_size=2, max_size=50))
def test_values_agree_with_the_standard_library(values: list[float]) -> None:
    sample = Sample(values)
    assert value(sample, "mean") == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert value(sample, "sd") == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert value(sample, "sum") == math.fsum(values)
    assert value(sample, "min") == min(values)
    assert value(sample, "max") == max(values)
    assert value(sample, "count") == len(values)
    assert value(sample, "median") == statistics.median_low(values)


@given(st.lists(FLOATS, min_size=1, max_size=50), st.permutations(range(50)))
def test_order_does_not_matter(values: list[float], order: list[int]) -> None:
    shuffled = [values[i] for i in order if i < len(values)]
    for name in ("mean", "sd", "sum", "p95"):
        assert value(Sample(shuffled), name) == value(Sample(values), name)


def test_percentiles_are_nearest_rank() -> None:
    sample = Sample(range(1, 2001))
    assert value(sample, "p95") == 1900
    assert value(sample, "p99.9") == 1998
    assert value(sample, "p0.1") == 2
    assert value(Sample(range(1, 101)), "p7") == 7  # in floats 0.07 * 100 is above 7
    assert value(Sample([3]), "p50") == 3


def test_sums_of_whole_numbers_are_exact() -> None:
    assert value(Sample([2**53 - 1, 1, -(2**53), 1]), "sum") == 1
    assert value(Sample([0.1] * 3), "mean") == 0.1
    assert standard_error(Sample([0.1] * 3), "mean") == 0


@pytest.mark.parametrize(
    ("name", "kind", "share"),
    [
        ("mean", "mean", None),
        ("median", "percentile", Fraction(1, 2)),
        ("p95", "percentile", Fraction(95, 100)),
        ("p99.9", "percentile", Fraction(999, 1000)),
        ("p5", "percentile", Fraction(5, 100)),
    ],
)
def test_statistics_have_names(name: str, kind: str, share: Fraction | None) -> None:
    assert parse_statistic(name) == (name, kind, share)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("maen", 'did you mean "mean"?'),
        ("p100", 'write "max"'),
        ("p0", 'write "min"'),
        ("p95.", 'did you mean "p95"?'),
        ("average", "there are mean, median"),
        ("", "there are mean"),
    ],
)
def test_a_wrong_statistic_says_the_cure(name: str, cure: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_statistic(name)
    assert cure in str(caught.value)


def test_a_sample_refuses_what_it_can_not_hold() -> None:
    with pytest.raises(ValueError, match="finite values only"):
        Sample([1.0, math.nan])
    with pytest.raises(ValueError, match="counts add up to 3, not to 2"):
        Sample([1.0, 2.0], [1, 2])


def test_a_sample_pickles() -> None:
    sample = Sample([3.0, 1.0, 2.0], [2, 1])
    assert list(sample.ordered) == [1, 2, 3]
    twin = pickle.loads(pickle.dumps(sample))  # noqa: S301  our own bytes
    assert list(twin.values) == [3, 1, 2]
    assert list(twin.totals) == [4, 2]


def spread(draw: Callable[[Random], Sample], name: str, seeds: int = 400) -> tuple[float, float]:
    """Return how much the statistic really varies, and the mean of its standard error."""
    samples = [draw(Random(seed)) for seed in range(seeds)]
    errors = [standard_error(sample, name) or 0.0 for sample in samples]
    return statistics.stdev(value(sample, name) for sample in samples), statistics.fmean(errors)


def lognormals(random: Random) -> Sample:
    return Sample([random.lognormvariate(1, 0.5) for _ in range(300)])


def clusters(random: Random) -> Sample:
    """Give 60 replications, each with its own level and 0 to 6 values around it."""
    counts = [random.randrange(7) for _ in range(60)]
    levels = [random.gauss(10, 2) for _ in counts]
    pairs = zip(counts, levels, strict=True)
    return Sample([random.gauss(level, 1) for n, level in pairs for _ in range(n)], counts)


def polls(random: Random) -> Sample:
    return Sample([math.ceil(random.expovariate(0.2)) for _ in range(300)])


@pytest.mark.parametrize("name", ["mean", "median", "p90", "sum", "sd"])
@pytest.mark.parametrize("draw", [lognormals, clusters, polls])
def test_the_standard_error_is_what_the_statistic_varies(
    draw: Callable[[Random], Sample], name: str
) -> None:
    real, told = spread(draw, name)
    assert told == pytest.approx(real, rel=0.15 if name in {"mean", "sum", "sd"} else 0.3)


def test_the_error_of_a_count_is_that_of_the_replications() -> None:
    real, told = spread(clusters, "count")
    assert told == pytest.approx(real, rel=0.1)
    assert standard_error(Sample([1.0, 2.0]), "count") == 0


def test_clusters_of_one_are_no_clusters() -> None:
    values = [Random(1).gauss(0, 1) for _ in range(100)]
    for name in ("mean", "sd", "sum", "p90"):
        single = standard_error(Sample(values, [1] * 100), name)
        assert single == pytest.approx(standard_error(Sample(values), name), rel=0.3)


def test_rows_of_0_and_1_have_the_binomial_error() -> None:
    sample = Sample([1.0] * 523 + [0.0] * 1477)
    expected = math.sqrt(2000 * 0.2615 * 0.7385)
    assert standard_error(sample, "sum") == pytest.approx(expected, rel=1e-3)


def test_ties_never_hide_the_error_of_a_percentile() -> None:
    sample = Sample([117.0] * 100 + [118.0] * 1900 + [119.0] * 20)
    assert interval(sample, "median", 3.3) == (118, 118)
    assert standard_error(sample, "median") == pytest.approx(1 / math.sqrt(12))
    assert standard_error(Sample([118.0] * 10), "median") == 0


@pytest.mark.parametrize("draw", [lognormals, polls])
def test_an_interval_of_a_percentile_encloses_the_truth(draw: Callable[[Random], Sample]) -> None:
    truth = value(
        Sample([v for seed in range(200) for v in draw(Random(seed + 9999)).values]), "p90"
    )
    inside = 0
    for seed in range(500):
        low, high = interval(draw(Random(seed)), "p90", Z_95) or (0, 0)
        inside += low <= truth <= high
    assert inside >= 0.93 * 500


def test_an_interval_is_open_where_the_sample_is_too_small() -> None:
    enough = enough_values(Fraction(95, 100), 3.3)
    few = interval(Sample(range(enough - 15)), "p95", 3.3)
    many = interval(Sample(range(enough + 5)), "p95", 3.3)
    assert few is not None
    assert many is not None
    assert math.isfinite(few.low)
    assert few.high == math.inf
    assert math.isfinite(many.high)
    assert standard_error(Sample([1.0, 2.0]), "median") is None


def test_one_replication_has_no_error() -> None:
    for sample in (Sample([5.0]), Sample([5.0, 6.0, 7.0], [3])):
        for name in ("mean", "sum", "p95", "sd"):
            assert standard_error(sample, name) is None
            assert interval(sample, name, Z_95) is None
        assert standard_error(sample, "max") == 0
    assert standard_error(Sample(()), "mean") is None


def test_nothing_in_many_replications_is_a_count_of_0() -> None:
    nothing = Sample((), [0] * 50)
    assert (value(nothing, "count"), standard_error(nothing, "count")) == (0, 0)
    assert (value(nothing, "sum"), standard_error(nothing, "sum")) == (0, 0)
    assert standard_error(nothing, "mean") is None


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 636.62), (2, 31.599), (9, 4.781), (19, 3.883), (59, 3.463), (10**6, 3.2905)],
)
def test_student_is_the_table(freedom: int, t: float) -> None:
    assert student(3.2905, freedom) == pytest.approx(t, rel=0.01)


@pytest.mark.parametrize("count", [5, 50, 400])
def test_a_true_bound_is_within_reach(count: int) -> None:
    beyond = {"min": 0, "max": 0}
    for seed in range(1000):
        random = Random(seed)
        sample = Sample([random.random() * 20 for _ in range(count)])
        beyond["max"] += 20 - value(sample, "max") > (reach(sample, "max") or 0)
        beyond["min"] += value(sample, "min") > (reach(sample, "min") or 0)
    assert max(beyond.values()) <= 5
    assert reach(Sample([1.0]), "max") is None


def test_reach_counts_replications_by_their_extremes() -> None:
    assert reach(Sample([1.0, 9.0, 2.0, 8.0], [2, 2]), "max") == reach(Sample([9.0, 8.0]), "max")
    assert reach(Sample([1.0, 9.0, 2.0, 8.0], [4, 0]), "max") is None


def test_reach_measures_the_gaps_at_its_own_end() -> None:
    sample = Sample(n * n / 100 for n in range(50))
    assert (reach(sample, "min") or 0) < 1 < (reach(sample, "max") or 0)
