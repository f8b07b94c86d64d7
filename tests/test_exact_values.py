"""Cross-checks of the exact values: limits, closed forms, refinement, the tables, a Monte Carlo."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import pytest

from tests.exact_law import (
    STRATEGIES,
    Figure,
    Model,
    duration_excess,
    duration_survival,
    integral,
    terminal_cdf,
    terminal_density,
    terminal_survival,
)
from tests.exact_mutations import SURE, shift, study
from tests.exact_values import (
    POLL_N,
    calls_cdf,
    calls_figures,
    cancel,
    chance_of_p95,
    completion_chars,
    duration_sum,
    exact_figures,
    exact_table,
    fan_out,
    idempotency,
    last_figure,
    late_cdf,
    late_figures,
    outbox,
    poll_times,
    result_size,
)

BASE = Model()
SURE_60 = replace(BASE, sigma=1e-9)  # every Graph takes 60 s
FIGURES = exact_figures(BASE)

# The issue's figures, as printed.
ISSUE = {
    "pickup_wait/wait.max": "20",
    "fan_out/first.median[1]": "70.3",
    "fan_out/first.median[3]": "70.3",
    "fan_out/first.median[5]": "70.3",
    "fan_out/last.median[1]": "70.3",
    "fan_out/last.median[3]": "227",
    "fan_out/last.median[5]": "389",
    "fan_out/last.p95[1]": "234",
    "poll_strategies/calls.mean[every 15s]": "6.68",
    "poll_strategies/late.mean[every 2s]": "1.0",
    "poll_strategies/late.mean[backoff 2s x2 max 30s]": "14.9",
    "poll_strategies/late.mean[wait 20s then every 10s]": "5.01",
    "cancel/running.count": "1398.5",
    "cancel/done.count": "102",
    "cancel/took.mean": "2.01",
    "cancel/took.p95": "3.35",
    "cancel/took.max": "3.5",
    "idempotency/calls.mean[new]": "285.7",
    "idempotency/queued.mean[same]": "200",
    "offline/completions.span": "100",
    "outbox/delivered[on]": "40",
}
# Printed by the issue as exact, and off in the last digits: they came from a sample.
ISSUE_SAMPLED = {
    "fan_out/last.p95[3]": ("511", "510"),
    "fan_out/last.p95[5]": ("749", "748"),
    "poll_strategies/calls.mean[every 2s]": ("46.7", "46.8"),
    "poll_strategies/calls.mean[every 5s]": ("19.1", "19.0"),
    "poll_strategies/calls.mean[every 30s]": ("3.57", "3.59"),
    "poll_strategies/calls.mean[backoff 2s x2 max 30s]": ("6.57", "6.58"),
    "poll_strategies/calls.mean[wait 20s then every 10s]": ("8.69", "8.76"),
    "poll_strategies/late.mean[every 5s]": ("2.49", "2.50"),
    "poll_strategies/late.mean[every 15s]": ("7.49", "7.50"),
    "poll_strategies/late.mean[every 30s]": ("14.98", "14.99"),
    "cancel/queued.count": ("499.5", "500.0"),
}
# The account's own figures, by scenario and statistic, in the order of the tables.
ACCOUNT = {
    "pickup_wait/wait": {"mean": ["9.8"], "median": ["9.8"], "p95": ["18.9"]},
    "fan_out/first": {"median": ["74", "73", "75"]},
    "fan_out/last": {"median": ["74", "233", "399"], "p95": ["254", "483", "776"]},
    "poll_strategies/calls": {
        "mean": ["47.1", "19.1", "6.7", "3.6", "6.6", "8.8"],
        "p95": ["118", "48", "16", "8", "11", "23"],
    },
    "poll_strategies/late": {
        "mean": ["1.0", "2.5", "7.5", "14.9", "14.8", "5.0"],
        "p95": ["1.9", "4.8", "14.2", "28.4", "28.4", "9.6"],
    },
    "cancel/queued": {"count": ["523"]},
    "cancel/running": {"count": ["1370"]},
    "cancel/done": {"count": ["107"]},
    "cancel/took": {"mean": ["2.0"], "p95": ["3.3"]},
}


@cache
def cached_study(scenario: str) -> dict[str, dict[str, float]]:
    """A scenario's study, made once."""
    return study(scenario)


def printed(value: float, like: str) -> str:
    """A value with as many decimals as another figure was printed with."""
    return f"{value:.{len(like.partition('.')[2])}f}"


def test_survival_is_the_lognormals() -> None:
    for x in (5.0, 20.0, 60.0, 300.0):
        law = NormalDist(math.log(60), 0.8)
        assert duration_survival(BASE, x) == pytest.approx(1 - law.cdf(math.log(x)), rel=1e-9)
    assert duration_survival(BASE, 4.999) == 1


def test_excess_is_the_integral_of_the_survival() -> None:
    for x in (0.0, 5.0, 61.5, 400.0):
        cuts = [x, *(c for c in (5.0, 50.0, 200.0, 1000.0, 20_000.0) if c > x)]
        by_hand = sum(
            integral(lambda y: duration_survival(BASE, y), a, b, 400) for a, b in pairwise(cuts)
        )
        assert duration_excess(BASE, x) == pytest.approx(by_hand, rel=1e-7)


def test_duration_mean_is_the_lognormals_plus_what_the_least_adds() -> None:
    plain = 60 * math.exp(0.32)
    assert plain < duration_excess(BASE, 0.0) < plain + 5 * 0.00096


def test_terminal_law_is_the_mean_over_the_phase() -> None:
    for t in (7.0, 26.0, 70.0, 250.0):
        cut = min(20.0, max(0.0, t - 5))
        by_hand = sum(
            integral(lambda y: duration_survival(BASE, y), a, b, 200)
            for a, b in ((t - cut, t), (t - 20, t - cut))
        )
        assert terminal_survival(BASE, t) == pytest.approx(by_hand / 20, rel=1e-9)
        slope = (terminal_cdf(BASE, t + 1e-4) - terminal_cdf(BASE, t - 1e-4)) / 2e-4
        assert terminal_density(BASE, t) == pytest.approx(slope, rel=1e-6)


def test_first_completion_has_the_closed_law() -> None:
    median, density = last_figure(BASE, 1, 0.5, 4.0)
    assert terminal_cdf(BASE, median) == pytest.approx(0.5, abs=1e-9)
    assert density == pytest.approx(terminal_density(BASE, median), rel=1e-12)


def test_lattice_keeps_mass_and_mean() -> None:
    masses = duration_sum(BASE, 2, 8.0, 9600.0)
    assert math.fsum(masses) == pytest.approx(1, abs=1e-8)
    mean = math.fsum(8.0 * j * mass for j, mass in enumerate(masses))
    assert mean == pytest.approx(2 * duration_excess(BASE, 0.0), rel=1e-6)


def test_fan_out_converges_as_the_lattice_is_refined() -> None:
    coarse, shipped, fine = (fan_out(BASE, step) for step in (8.0, 4.0, 2.0))
    for key, figure in fine.items():
        assert shipped[key].value == pytest.approx(figure.value, abs=2e-5)
        assert coarse[key].value == pytest.approx(figure.value, abs=2e-4)
        assert shipped[key].se == pytest.approx(figure.se, rel=1e-4)


def test_fan_out_without_spread_adds_up() -> None:
    # On whole steps 60 is a lattice point, so that nothing is smeared.
    figures = fan_out(SURE_60, 4.0)
    for count in (1, 3, 5):
        assert figures[f"last.median[{count}]"].value == pytest.approx(60 * count + 10, abs=1e-5)
        assert figures[f"last.p95[{count}]"].value == pytest.approx(60 * count + 19, abs=1e-5)


def test_calls_without_spread_are_counted_exactly() -> None:
    # T is uniform on (60, 80): ten polls of 2 s, each as likely as the next: 31 ... 40.
    figures = calls_figures(SURE_60, STRATEGIES["every 2s"])
    assert figures["calls.mean"].value == pytest.approx(float(Fraction(sum(range(31, 41)), 10)))
    assert figures["calls.mean"].se == pytest.approx(math.sqrt(Fraction(99, 12) / POLL_N))
    # The backoff's polls at 60 and 90 leave one: the fifth sees nothing, the sixth everything.
    figures = calls_figures(SURE_60, STRATEGIES["backoff 2s x2 max 30s"])
    assert figures["calls.mean"].value == pytest.approx(6)


def test_lateness_without_spread_is_uniform() -> None:
    for label, gap in (("every 2s", 2.0), ("every 5s", 5.0), ("wait 20s then every 10s", 10.0)):
        figures = late_figures(SURE_60, STRATEGIES[label])
        assert figures["late.mean"].value == pytest.approx(gap / 2, abs=1e-6)
        assert figures["late.p95"].value == pytest.approx(0.95 * gap, abs=1e-6)


@pytest.mark.parametrize("label", STRATEGIES)
def test_lateness_and_calls_balance(label: str) -> None:
    strategy = STRATEGIES[label]
    first, period = strategy
    late = FIGURES[f"poll_strategies/late.mean[{label}]"].value
    calls = FIGURES[f"poll_strategies/calls.mean[{label}]"].value
    # The last poll's time is the time of the first delays and a period for each further call;
    # calls that end among the first delays were credited with too little.
    times = poll_times(BASE, strategy)
    early = sum(
        (period - delay) * terminal_survival(BASE, times[i]) for i, delay in enumerate(first)
    )
    noticed = 10 + duration_excess(BASE, 0.0) + late
    assert period * calls - early == pytest.approx(noticed, rel=1e-7)
    gap = max(b - a for a, b in pairwise(times))
    assert late_cdf(BASE, times, gap) == pytest.approx(1, abs=2e-9)
    p95 = FIGURES[f"poll_strategies/late.p95[{label}]"]
    slope = late_cdf(BASE, times, p95.value + 1e-3) - late_cdf(BASE, times, p95.value - 1e-3)
    assert p95.se == pytest.approx(math.sqrt(0.95 * 0.05 / POLL_N) / slope * 2e-3, rel=1e-3)


def test_backoff_polls_the_30_s_grid_three_calls_later() -> None:
    flat, backoff = STRATEGIES["every 30s"], STRATEGIES["backoff 2s x2 max 30s"]
    assert calls_cdf(BASE, flat)[1:] == calls_cdf(BASE, backoff)[4:]


@pytest.mark.parametrize("label", STRATEGIES)
def test_chance_of_p95_is_a_law_around_the_value(label: str) -> None:
    chances = chance_of_p95(BASE, STRATEGIES[label])
    assert math.fsum(chances.values()) == pytest.approx(1, abs=3e-3)
    exact = FIGURES[f"poll_strategies/calls.p95[{label}]"]
    assert max(chances, key=lambda k: chances[k]) == exact.value
    mean = math.fsum(k * p for k, p in chances.items())
    spread = math.sqrt(math.fsum((k - mean) ** 2 * p for k, p in chances.items()))
    assert abs(mean - exact.value) < exact.se
    assert spread == pytest.approx(math.hypot(exact.se, 0.3), rel=0.25)


def test_cancel_adds_up() -> None:
    figures = {key.removeprefix("cancel/"): f.value for key, f in FIGURES.items()}
    done = integral(lambda c: terminal_cdf(BASE, c), 5, 25, 200)
    done += integral(lambda c: terminal_cdf(BASE, c), 25, 40, 200)
    assert figures["done.count"] == pytest.approx(2000 * done / 40, rel=1e-9)
    assert figures["queued.count"] == 500
    shares = ("completed", "cancelled.ended", "cancelled.stopped")
    assert math.fsum(figures[f"share.{name}"] for name in shares) == pytest.approx(1)


def test_cancel_of_long_graphs_is_a_fraction() -> None:
    # Nothing ends by itself: the time is 1/2 s and the way to the next multiple of 3 s, the age
    # has the trapezoid's density. Simpson's rule is exact for these cubics.
    figures = cancel(SURE_60)
    cuts = [Fraction(a) for a in sorted({*range(41), 20})]
    moments = [Fraction(0), Fraction(0), Fraction(0)]
    for a, b in pairwise(cuts):
        flag = (a // 3 + 1) * 3
        for age, weight in ((a, 1), ((a + b) / 2, 4), (b, 1)):
            mass = weight * (b - a) / 6 * min(Fraction(20), 40 - age) / 600
            for power in range(3):
                moments[power] += mass * (flag - age + Fraction(1, 2)) ** power
    assert moments[0] == 1
    mean, variance = moments[1], moments[2] - moments[1] ** 2
    assert figures["done.count"].value == pytest.approx(0, abs=1e-9)
    assert figures["took.mean"].value == pytest.approx(float(mean), rel=1e-6)
    assert figures["took.mean"].se == pytest.approx(math.sqrt(variance / 1500), rel=1e-5)
    assert figures["share.cancelled.stopped"].value == pytest.approx(1)


def test_idempotency_is_the_sum_of_geometric_calls() -> None:
    q = Fraction(3, 10)
    mean = sum(k * q ** (k - 1) * (1 - q) for k in range(1, 80))
    square = sum(k * k * q ** (k - 1) * (1 - q) for k in range(1, 80))
    figure = idempotency(BASE)["calls.mean[new]"]
    assert figure.value == pytest.approx(float(200 * mean))
    assert figure.se == pytest.approx(math.sqrt(200 * (square - mean**2) / 3))


@pytest.mark.parametrize(("poll_s", "delivered_s"), [(20, 40), (18, 36), (22, 44), (36, 36)])
def test_outbox_is_flushed_on_the_first_free_tick(poll_s: int, delivered_s: int) -> None:
    figure = outbox(replace(BASE, poll_s=float(poll_s)))["delivered[on]"]
    tick = next(t for t in range(poll_s, 1000, poll_s) if t > 25 + 10)
    assert figure == Figure(tick) == Figure(delivered_s)


def test_outbox_refuses_a_tie() -> None:
    with pytest.raises(ValueError, match="on a tick"):
        outbox(replace(BASE, poll_s=35.0))


def test_result_size_is_the_longest_that_fits() -> None:
    assert completion_chars("", "", 0, 0) == 87
    figures = result_size(BASE)
    texts = {"ascii": "a", "japanese": "あ", "emoji": "🙂", "quotes": '"', "control": "\x01"}
    for name, character in texts.items():
        count = round(figures[f"{name}.chars"].value) // (len(character.encode("utf-16-le")) // 2)
        assert completion_chars("x" * 36, character * count, 1200, 0.01) <= 100_000
        assert completion_chars("x" * 36, character * (count + 1), 1200, 0.01) > 100_000
        assert len((character * count).encode()) == figures[f"{name}.bytes"].value
    assert figures["ascii.chars"].value == 100_000 - 85 - 36 - 4 - 4


def test_result_size_of_the_account() -> None:
    # Its id and the digits beyond the first of tokens and cost are 14 characters: here 8 + 3 + 3.
    figures = result_size(BASE, execution_id="x" * 8, tokens=1200)
    assert figures["ascii.chars"].value == 99_899
    assert figures["japanese.chars"].value == 99_899
    assert figures["japanese.bytes"].value == 299_697


def test_table_agrees_with_the_issue() -> None:
    table = exact_table()
    assert {key: printed(table[key], text) for key, text in ISSUE.items()} == ISSUE
    for key, (sampled, exact) in ISSUE_SAMPLED.items():
        assert printed(table[key], sampled) == exact != sampled


def test_account_is_a_sample_of_the_model() -> None:
    for metric, statistics in ACCOUNT.items():
        for statistic, row in statistics.items():
            prefix = f"{metric}.{statistic}"
            ours = [f for key, f in FIGURES.items() if key.partition("[")[0] == prefix]
            for text, figure in zip(row, ours, strict=True):
                half = 0.5 * 10.0 ** -len(text.partition(".")[2])
                assert abs(float(text) - figure.value) <= 2.5 * figure.se + half, (prefix, text)


def test_every_figure_has_a_finite_value_and_error() -> None:
    assert len(FIGURES) == 65
    for figure in FIGURES.values():
        assert math.isfinite(figure.value)
        assert 0 <= figure.se < math.inf


def test_shift_counts_standard_errors() -> None:
    assert shift(Figure(1.0, 9.0), Figure(2.0, 0.5)) == 2
    assert shift(Figure(1.0), Figure(1.0)) == 0
    assert shift(Figure(2.0), Figure(1.0)) == -math.inf


@pytest.mark.parametrize(
    ("scenario", "change", "name"),
    [
        ("pickup_wait", "poll 18.0s", "wait.p95"),
        ("pickup_wait", "poll 22.0s", "wait.p95"),
        ("cancel", "control 2.5s", "took.p95"),
        ("cancel", "control 3.5s", "took.mean"),
        ("cancel", "stop 1.0s", "took.mean"),
        ("idempotency", "drop 0.2", "calls.mean[same]"),
        ("offline", "graph 24s", "completions.span"),
        ("outbox", "poll 18.0s", "delivered[on]"),
        ("result_size", "limit 99999", "ascii.chars"),
    ],
)
def test_change_is_surely_caught(scenario: str, change: str, name: str) -> None:
    assert abs(cached_study(scenario)[change][name]) > SURE


def test_outbox_hides_what_ends_before_the_same_tick() -> None:
    moved = {change: shifts["delivered[on]"] for change, shifts in cached_study("outbox").items()}
    assert [change for change, by in moved.items() if not by] == ["graph 24s", "time-out 5s"]


def simulate(n: int, seed: int) -> dict[str, list[float]]:
    """Samples of the model by the plainest script: no lattice, no closed form."""
    rng = random.Random(seed)
    samples: dict[str, list[float]] = defaultdict(list)
    for _ in range(n):
        pickup = rng.uniform(0, 20)
        durations = [max(5.0, 60 * math.exp(rng.gauss(0, 0.8))) for _ in range(5)]
        terminal = pickup + durations[0]
        for label, (first, period) in STRATEGIES.items():
            now, calls = 0.0, 0
            while now < terminal:
                now += first[calls] if calls < len(first) else period
                calls += 1
            samples[f"poll_strategies/calls[{label}]"].append(calls)
            samples[f"poll_strategies/late[{label}]"].append(now - terminal)
        for count in (1, 3, 5):
            samples[f"fan_out/last[{count}]"].append(pickup + sum(durations[:count]))
        asked = rng.uniform(0, 40)
        samples["cancel/queued"].append(asked < pickup)
        samples["cancel/running"].append(pickup < asked < terminal)
        if pickup < asked < terminal:
            flag = pickup
            while flag <= asked:
                flag += 3
            samples["cancel/took"].append(min(flag + 0.5, terminal) - asked)
            samples["cancel/share.completed"].append(terminal < flag)
            samples["cancel/share.cancelled.ended"].append(flag < terminal < flag + 0.5)
    return samples


def test_monte_carlo_agrees() -> None:
    n = 10_000
    samples = simulate(n, seed=7)
    checked = 0
    for key, figure in FIGURES.items():
        name, bracket, label = key.partition("[")
        metric, _, statistic = name.rpartition(".")
        values = samples.get(metric + bracket + label) or samples.get(name)
        if not values or statistic == "max":
            continue
        published = 500 if key.startswith("fan_out") else 2000
        if statistic == "count":
            sample = sum(values) / n * published
        elif statistic in {"median", "p95"}:
            rank = math.ceil({"median": 0.5, "p95": 0.95}[statistic] * len(values))
            sample = sorted(values)[rank - 1]
        else:
            sample = math.fsum(values) / len(values)
        lattice = 1 if "calls.p95" in key else 0
        assert abs(sample - figure.value) <= 4 * figure.se * math.sqrt(published / n) + lattice, key
        checked += 1
    assert checked == 36
