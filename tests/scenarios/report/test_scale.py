"""Axes have few ticks at round numbers, in a unit that people say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.scale import PLAIN, Axis, Unit, amount, step, ticks, time_unit

SPANS = st.floats(1e-6, 1e9)


@given(SPANS, st.integers(2, 12))
def test_a_step_is_one_two_or_five(span: float, most: int) -> None:
    one = step(span, most)
    lead = one / 10 ** math.floor(math.log10(one) + 1e-9)
    assert round(lead, 6) in (1, 2, 5, 10)
    assert span / one <= most - 1 + 1e-9
    assert span / one > (most - 1) / 2.6, "the smallest step that is large enough"


@given(st.floats(-1e6, 1e6), SPANS, st.integers(2, 12))
def test_ticks_are_few_and_inside(low: float, span: float, most: int) -> None:
    high = low + span
    if not high - low > abs(low) * 1e-9:
        return  # nearer than what twelve digits tell apart
    found = ticks(low, high, most)
    assert len(found) <= most
    slack = step(high - low, most) * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= one <= high + slack for one in found)
    assert found == sorted(set(found))


def test_ticks_of_no_span() -> None:
    assert ticks(3.0, 3.0) == [3.0]


@pytest.mark.parametrize(
    ("longest_s", "name"),
    [(0.0, "s"), (0.02, "ms"), (0.999, "ms"), (1.0, "s"), (599.0, "s"), (600.0, "min"),
     (35_999.0, "min"), (36_000.0, "h")],
)  # fmt: skip
def test_the_unit_fits_the_axis(longest_s: float, name: str) -> None:
    assert time_unit(longest_s).name == name


def test_marks_are_in_the_axis_unit() -> None:
    axis = Axis(0.0, 7200.0, 10.0, 130.0, Unit("min", 60.0))
    assert axis.marks() == [(10.0, "0"), (60.0, "50"), (110.0, "100")]
    assert Axis(0.0, 0.3, 0.0, 3.0, PLAIN).marks()[1][1] == "0.1"


@given(st.floats(allow_nan=False))
def test_everything_stands_on_the_axis(value: float) -> None:
    assert 10.0 <= Axis(-5.0, 5.0, 10.0, 90.0).at(value) <= 90.0


def test_an_axis_without_length_has_its_value_in_the_middle() -> None:
    assert Axis(2.0, 2.0, 0.0, 10.0).at(2.0) == 5.0


@pytest.mark.parametrize(
    ("value", "timed", "text"),
    [(None, True, "-"), (math.inf, True, "∞"), (-math.inf, False, "-∞"), (46.815, False, "46.81"),
     (0.0123, True, "12.3 ms"), (0.9932, True, "0.9932 s"), (9.8, True, "9.8 s"),
     (0.0, True, "0 s"), (-3.0, True, "-3 s"), (1200.0, True, "20 min"),
     (216120.0, True, "60.03 h"), (1e20, False, "1e+20")],
)  # fmt: skip
def test_amounts_have_their_unit(value: float | None, timed: bool, text: str) -> None:
    assert amount(value, timed) == text
