"""Judging: true values pass, wrong ones fail, and little evidence is inconclusive."""

import math
from collections.abc import Callable
from random import Random

import pytest

from scenarios.expect import parse_expectation
from scenarios.judge import Judgement, judge
from scenarios.stats import Sample


def judged(text: str, **cells: Sample) -> list[Judgement]:
    """Judge `text` where each metric is looked up in the cells that are named after it."""

    def lookup(metric: str, _: str, subscript: str | None) -> list[tuple[str, Sample]]:
        found = [(name.partition("__")[::2], sample) for name, sample in cells.items()]
        return [
            (label, sample)
            for (name, label), sample in found
            if name == metric and subscript in {None, label}
        ]

    return list(judge(parse_expectation(text), lookup))


def verdict(text: str, sample: Sample) -> str:
    return judged(f"x.{text}", x=sample)[0].verdict


def failures(text: str, draw: Callable[[Random], Sample], seeds: int = 1000) -> int:
    return sum(verdict(text, draw(Random(seed))) == "fail" for seed in range(seeds))


def exponentials(random: Random) -> Sample:
    return Sample([random.expovariate(0.1) for _ in range(300)])


def polls(random: Random) -> Sample:
    """Give whole numbers: how often one polls every 2 s until an exponential of 20 s is over."""
    return Sample([math.ceil(random.expovariate(0.1)) for _ in range(300)])


def clusters(random: Random) -> Sample:
    counts = [random.randrange(1, 6) for _ in range(100)]
    levels = [random.gauss(10, 2) for _ in counts]
    pairs = zip(counts, levels, strict=True)
    return Sample([random.gauss(level, 1) for n, level in pairs for _ in range(n)], counts)


def rare(random: Random) -> Sample:
    return Sample([float(random.random() < 0.01) for _ in range(300)])


def common(random: Random) -> Sample:
    return Sample([float(random.random() < 0.25) for _ in range(300)])


def normals(random: Random) -> Sample:
    return Sample([random.gauss(10, 2) for _ in range(300)])


def few(random: Random) -> Sample:
    return Sample([random.gauss(10, 1) for _ in range(5)])


TRUE = [
    ("mean equals 10", exponentials),
    ("sum equals 3000", exponentials),
    ("sd equals 2", normals),
    (f"median equals {10 * math.log(2)}", exponentials),
    (f"p90 equals {10 * math.log(10)}", exponentials),
    (f"mean equals {1 / (1 - math.exp(-0.1))}", polls),
    ("p90 equals 24", polls),
    ("median equals 7", polls),
    ("mean equals 10", clusters),
    ("median equals 10", clusters),
    ("sum equals 75", common),
    ("mean equals 0.25", common),
    ("mean equals 10", few),
]


@pytest.mark.parametrize(("text", "draw"), TRUE)
def test_a_true_value_is_refused_once_in_a_thousand(
    text: str, draw: Callable[[Random], Sample]
) -> None:
    assert failures(text, draw) <= 5


@pytest.mark.parametrize(
    ("text", "draw"),
    [
        ("mean equals 15", exponentials),
        ("sum equals 4500", exponentials),
        ("sd equals 3", normals),
        ("median equals 11", exponentials),
        ("p90 equals 45", exponentials),
        ("p90 equals 14", exponentials),
        ("mean equals 14", polls),
        ("p90 equals 45", polls),
        ("p90 equals 15", polls),
        ("mean equals 12", clusters),
        ("median equals 12", clusters),
        ("sum equals 125", common),
        ("mean equals 0.08", rare),
        ("mean equals 0", common),
        ("mean equals 2", common),
        ("mean equals 40", few),
        ("mean agrees with 16", exponentials),
        ("p90 agrees with 70", polls),
        ("sum agrees with 140", common),
    ],
)
def test_a_wrong_value_is_refused(text: str, draw: Callable[[Random], Sample]) -> None:
    assert failures(text, draw, 100) >= 97


@pytest.mark.parametrize("draw", [exponentials, polls, clusters, common, few])
@pytest.mark.parametrize("statistic", ["mean", "median", "sum"])
def test_two_samples_of_one_thing_agree(statistic: str, draw: Callable[[Random], Sample]) -> None:
    failed = 0
    for seed in range(500):
        other = judged(f"x.{statistic} < 0", x=draw(Random(10_000 + seed)))[0].ours
        failed += verdict(f"{statistic} agrees with {other:.6f}", draw(Random(seed))) == "fail"
    assert failed <= 4


def test_a_rare_event_that_never_happened_refutes_nothing() -> None:
    nothing = Sample([0.0] * 100)
    assert verdict("sum equals 1", nothing) == "pass"
    assert verdict("mean equals 0.01", nothing) == "pass"
    assert verdict("mean equals 0.2", nothing) == "fail"


def test_the_published_count_meets_its_theory() -> None:
    sample = Sample([1.0] * 523 + [0.0] * 1477)
    assert verdict("sum equals 499.5", sample) == "pass"
    assert verdict("sum equals 430", sample) == "fail"
    assert verdict("sum agrees with 480", sample) == "pass"
    assert verdict("sum agrees with 420", sample) == "fail"


@pytest.mark.parametrize("sample", [Sample([46.7] * 5), Sample([46.7])])
def test_what_does_not_vary_must_be_exact(sample: Sample) -> None:
    assert verdict("mean equals 46.7", sample) == "pass"
    assert verdict("mean equals 46.70001", sample) == "fail"
    assert verdict("p95 equals 46.70001", sample) == "fail"
    assert verdict("mean agrees with 47", sample) == "pass"
    assert verdict("mean agrees with 46.8", sample) == "fail"


def test_one_replication_tells_nothing_about_chance() -> None:
    for sample in (Sample([5.0]), Sample([4.0, 5.0, 6.0], [3])):
        for form in ("mean < 20", "mean within 5 +/- 1", "p95 > 20"):
            judgement = judged(f"x.{form}", x=sample)[0]
            assert judgement.verdict == "inconclusive"
            assert judgement.needed == 2
        assert verdict("max < 20", sample) == "pass"
        assert verdict("max < 5", sample) == "fail"
    pair = judged("x.mean < y.mean", x=Sample([5.0]), y=Sample([9.0, 9.0]))[0]
    assert (pair.verdict, pair.needed) == ("inconclusive", 2)


@pytest.mark.parametrize(
    "form", ["equals 1", "agrees with 1", "within 1 +/- 1", "< 1", "> 1", "< y.mean", "> 2 * y.max"]
)
@pytest.mark.parametrize("statistic", ["mean", "p95", "max", "sum", "count"])
def test_no_data_is_inconclusive(statistic: str, form: str) -> None:
    for cells in ({}, {"x": Sample(())}, {"x": Sample(()), "y": Sample([1.0, 2.0])}):
        judgement = judged(f"x.{statistic} {form}", **cells)[0]
        assert judgement.verdict == "inconclusive"
        assert "no data" in judgement.detail
        assert judgement.ours is None
    assert (
        judged("y.mean < x.mean", x=Sample(()), y=Sample([1.0, 2.0]))[0].verdict == "inconclusive"
    )


def test_a_count_of_nothing_is_0_once_replications_looked() -> None:
    nothing = Sample((), [0] * 50)
    assert verdict("count equals 0", nothing) == "pass"
    assert verdict("sum equals 0", nothing) == "pass"
    assert verdict("count < 1", nothing) == "pass"
    assert verdict("mean equals 0", nothing) == "inconclusive"
    assert verdict("count equals 3", Sample([1.0, 2.0, 3.0])) == "pass"
    assert verdict("count equals 4", Sample([1.0, 2.0, 3.0])) == "fail"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean < 11", "pass"),
        ("mean < 10.01", "inconclusive"),
        ("mean < 9", "fail"),
        ("mean > 9", "pass"),
        ("mean > 9.99", "inconclusive"),
        ("mean >= 11", "fail"),
        ("mean <= 11", "pass"),
        ("mean within 10 +/- 1", "pass"),
        ("mean within 10 +/- 0.01", "inconclusive"),
        ("mean within 12 +/- 1", "fail"),
        ("mean within 10.9 +/- 1", "inconclusive"),
        ("p90 < 20", "pass"),
        ("p90 < 11", "fail"),
        ("max < 20", "pass"),
        ("min < 0", "fail"),
    ],
)
def test_evidence_is_inside_outside_or_across(text: str, expected: str) -> None:
    sample = Sample([10 + ((-1) ** n) * (1 + n % 3) for n in range(300)])
    judgement = judged(f"x.{text}", x=sample)[0]
    assert judgement.verdict == expected
    assert (judgement.needed is not None) == (expected == "inconclusive")


def test_ends_count_for_closed_forms_only() -> None:
    exact = Sample([5.0, 5.0])
    assert [verdict(f"mean {form} 5", exact) for form in ("<", "<=", ">", ">=")] == [
        "fail",
        "pass",
        "fail",
        "pass",
    ]
    assert verdict("mean within 4.9 +/- 0.1", exact) == "pass"


def test_what_is_needed_decides() -> None:
    first = judged("x.mean < 10.2", x=Sample([8.0, 12.0] * 50))[0]
    assert first.verdict == "inconclusive"
    assert first.needed == 400
    assert verdict("mean < 10.2", Sample([8.0, 12.0] * 200)) == "pass"
    assert judged("x.mean < 10", x=Sample([8.0, 12.0] * 50))[0].needed is None


def test_a_small_sample_can_not_bound_a_percentile() -> None:
    sample = Sample(range(100))
    judgement = judged("x.p95 equals 500", x=sample)[0]
    assert judgement.verdict == "inconclusive"
    assert judgement.needed == 210
    assert verdict("p95 equals 10", sample) == "fail"
    assert verdict("p95 equals 95", sample) == "pass"
    assert verdict("p99 < 1000", sample) == "inconclusive"
    assert verdict("p99 > 10", sample) == "pass"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max equals 20", "pass"),
        ("max equals 21", "fail"),
        ("max equals 19", "fail"),
        ("min equals 0", "pass"),
        ("min equals 1", "fail"),
        ("min equals -1", "fail"),
        ("max agrees with 20.0", "pass"),
        ("max agrees with 20.1", "fail"),
        ("max agrees with 20s", "pass"),
        ("max <= 30", "pass"),
    ],
)
def test_extremes_meet_their_support(text: str, expected: str) -> None:
    random = Random(5)
    assert verdict(text, Sample([random.random() * 20 for _ in range(2000)])) == expected


def test_a_bound_that_is_reached_is_exact() -> None:
    clamped = Sample([min(20.0, n / 50) for n in range(2000)])
    assert verdict("max equals 20", clamped) == "pass"
    assert verdict("max equals 20.01", clamped) == "fail"
    assert verdict("max equals 20", Sample([3.0])) == "inconclusive"


def test_maxima_round_like_printing_does() -> None:
    assert verdict("max agrees with 3.5", Sample([3.45])) == "pass"  # 3.45 is above its half
    assert verdict("max agrees with 0.2", Sample([0.25])) == "pass"  # and 0.25 is exactly on it
    assert verdict("max agrees with 250ms", Sample([0.2504])) == "pass"


def test_two_references_are_judged_by_their_difference() -> None:
    random = Random(7)
    cells = {
        "x__slow": Sample([random.gauss(20, 3) for _ in range(400)]),
        "x__fast": Sample([random.gauss(10, 3) for _ in range(400)]),
        "x__same": Sample([random.gauss(10, 3) for _ in range(400)]),
    }
    for text, expected in [
        ("x.mean[fast] < x.mean[slow]", "pass"),
        ("x.mean[fast] > x.mean[slow]", "fail"),
        ("x.mean[fast] < 0.6 * x.mean[slow]", "pass"),
        ("x.mean[fast] < 0.4 * x.mean[slow]", "fail"),
        ("x.mean[fast] < x.mean[same]", "inconclusive"),
        ("x.p90[fast] < x.p90[slow]", "pass"),
        ("x.max[fast] < x.max[slow]", "pass"),
    ]:
        judgement = judged(text, **cells)[0]
        assert judgement.verdict == expected, text
        assert judgement.cell.count(" : ") == 1


def test_the_interval_of_a_difference_adds_variances() -> None:
    one, other = Sample([1.0, 3.0] * 200), Sample([10.0, 14.0] * 200)
    found = judged("x.mean < y.mean", x__a=one, y__b=other)[0]
    half = 1.966 * math.hypot(1, 2) / 20
    assert found.low == pytest.approx(-10 - half, rel=1e-3)
    assert found.high == pytest.approx(-10 + half, rel=1e-3)
    together = judged("x.mean < y.mean", x__a=one, y__a=other)[0]
    assert together.high == pytest.approx(-10 + 1.966 * 3 / 20, rel=1e-3)


def test_every_cell_is_judged_on_its_own() -> None:
    cells = {"x__a": Sample([1.0, 1.0]), "x__b": Sample([2.0, 2.0]), "y__b": Sample([1.5, 1.5])}
    assert [(j.cell, j.verdict) for j in judged("x.mean equals 1", **cells)] == [
        ("a", "pass"),
        ("b", "fail"),
    ]
    assert [(j.cell, j.verdict) for j in judged("x.mean < y.mean", **cells)] == [
        ("a : b", "pass"),
        ("b", "fail"),
    ]
    cells["y__c"] = Sample([0.5, 0.5])
    assert [(j.cell, j.verdict) for j in judged("x.mean < y.mean", **cells)] == [
        ("a", "inconclusive"),
        ("b", "fail"),
    ]
    assert [j.cell for j in judged("x.mean[a] > y.mean", **cells)] == ["a : b", "a : c"]


def test_a_judgement_tells_what_it_rests_on() -> None:
    random = Random(1)
    sample = Sample([random.gauss(47, 10) for _ in range(2000)])
    judgement = judged("x.mean agrees with 47.1", x=sample)[0]
    assert judgement.verdict == "pass"
    assert judgement.target == "agrees with 47.1"
    assert judgement.error == pytest.approx(10 / math.sqrt(2000), rel=0.05)
    assert judgement.detail.endswith("a shift of more than 1.099 would be caught")
    shift = 3.3 * math.sqrt(2) * (judgement.error or 0) + 0.05
    assert (judgement.high or 0) - (judgement.ours or 0) == pytest.approx(shift, rel=2e-3)
