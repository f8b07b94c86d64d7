"""Simpler values: each is one that a file may have, and there is an end to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.chance import Durations
from actors.polls import parse_polls
from scenarios.shrink_values import is_time, lower, shorter_both, simpler, times_before
from transports.units import Duration, parse_duration, parse_offset, parse_size

TIMES = st.integers(1, 400_000_000_000).map(Duration)


@given(st.integers(-5, 1000), st.integers(0, 1000))
def test_lower_numbers_come_ever_closer(least: int, more: int) -> None:
    found = list(lower(least + more, least))
    assert found == sorted(set(found))
    if more:
        assert found[0] == least
        assert found[-1] == least + more - 1
    else:
        assert found == []


@given(TIMES, st.randoms(use_true_random=False))
def test_a_time_becomes_shorter_or_rounder_and_that_ends(
    time: Duration, pick: random.Random
) -> None:
    text, steps = str(time), 0
    while options := list(simpler(text)):
        assert text not in options
        assert all(parse_duration(one) <= 1.5 * parse_duration(text) for one in options)
        text = pick.choice(options)
        steps += 1
        assert steps < 300
    assert text == "0s"


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("47.3s", ["0s", "1s", "30s", "40s", "47s", "50s"]),
        ("1h17m", ["1h", "1h20m", "30m"]),
        ("-86403s", ["-1d"]),
        ("every 10s", ["every 1s", "every 5s"]),
        ("wait 20s then every 10s", ["wait 0s then every 10s", "wait 20s then every 5s"]),
        ("uniform(0s, 60s)", ["0s", "30s", "1m"]),
        ("exponential(mean=10s, max=300s)", ["0s", "5m"]),
        ("uniform(50000, 150000)", [50_000, 100_000, 150_000]),
        ("uniform(1KiB, 3KiB)", ["1KiB", "2KiB"]),
        ("100KiB", ["0B", "51200B"]),
        (12, [0, 6, 11]),
        (0.0312, [0.03]),
    ],
)
def test_some_of_what_is_tried(text: object, some: list[object]) -> None:
    found = list(simpler(text))
    shown = [
        one if not isinstance(one, str) or "B" not in one else parse_size(one) for one in found
    ]
    wanted = [
        one if not isinstance(one, str) or "B" not in one else parse_size(one) for one in some
    ]
    assert [one for one in wanted if one not in shown] == []


@pytest.mark.parametrize(
    "value", ["demo", "GraphRun", "server", "0s", True, 0, 0.5, None, "", "x(1)"]
)
def test_what_can_t_be_simpler_is_left(value: object) -> None:
    assert list(simpler(value)) == []


@pytest.mark.parametrize("text", ["every 47.3s", "backoff 2s x2 max 30s", "after 5s, 10s, 30s"])
def test_of_a_poll_plan_s_times_most_make_another_plan(text: str) -> None:
    plans = []
    for one in simpler(text):
        try:
            plans.append(parse_polls(one))
        except ValueError:  # "every 0s": whoever loads it says so
            continue
    assert len(plans) > 3


def test_offsets_and_distributions_stay_what_they_are() -> None:
    assert all(parse_offset(one) < 0 for one in simpler("-2d3h") if one != "-0s")
    assert all(Durations.parse(one).constant is not None for one in simpler("lognormal(60s, 0.8)"))


@given(TIMES, TIMES)
def test_two_times_become_shorter_by_the_same(one: Duration, other: Duration) -> None:
    for less, beside in shorter_both(str(one), str(other)):
        assert one - parse_duration(less) == other - parse_duration(beside) > 0


def test_what_is_a_time_and_what_comes_shortly_before() -> None:
    assert [is_time(one) for one in ("5s", "every 5s", 5, None, "+5s")] == [True, *[False] * 4]
    assert list(times_before("12s")) == ["12s", "7s", "2s"]
