"""Spans in buckets: at most a bound counts within it, and whatever ends is counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.service.meter import BOUNDS_S, Meter, Spread


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
