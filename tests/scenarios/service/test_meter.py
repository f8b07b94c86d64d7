"""Spans in buckets: at most a bound counts within it, and whatever ends is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.stores.sqlite import SqliteStore
from scenarios.service.meter import BOUNDS_S, Meter, Spread
from tests.scenarios.service.test_world import Process


@given(st.lists(st.floats(0, 100)))
def test_each_bound_counts_what_is_at_most_that_long(spans_s: list[float]) -> None:
    spread = Spread()
    for span_s in spans_s:
        spread.add(span_s)
    wanted = [sum(span_s <= bound for span_s in spans_s) for bound in BOUNDS_S]
    assert [count for _, count in spread.cumulated()] == [*wanted, len(spans_s)]
    assert spread.sum_s == pytest.approx(sum(spans_s))


def test_what_fails_is_measured_too() -> None:
    meter = Meter()
    with pytest.raises(RuntimeError), meter.commits.measured():
        raise RuntimeError
    assert meter.commits.cumulated()[-1] == ("+Inf", 1)
    assert meter.turns.cumulated()[-1] == ("+Inf", 0)


def test_a_world_measures_its_turns_and_its_commits(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "here.db")
    process = Process("one", "two", until=2, store=store)
    process.serve()
    store.close()
    meter = process.world.meter
    (_, turns), (_, commits) = meter.turns.cumulated()[-1], meter.commits.cumulated()[-1]
    assert turns == 3  # its start is one
    assert 2 <= commits <= turns
    assert meter.turns.sum_s > 0
    assert meter.commits.sum_s > 0
