"""What has W3C's form is a traceparent, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.traceparent import accepted, made, parent_of, trace_of

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_specification_s_example() -> None:
    assert accepted(GOOD) is GOOD
    assert trace_of(GOOD) == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert parent_of(GOOD) == "00f067aa0ba902b7"
    assert (trace_of(""), parent_of("")) == ("", "")


@pytest.mark.parametrize(
    "value",
    [
        "",
        None,
        0,
        1.5,
        True,
        b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        [GOOD],
        {"traceparent": GOOD},
        GOOD.upper(),
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        GOOD[:-1] + "\n",
        " " + GOOD[:-1],
        GOOD.replace("-", "_"),
        GOOD.replace("4", "g"),
        GOOD.replace("4", "４"),  # a digit, but no ASCII one
        GOOD.replace("00-4", "01-4"),
        GOOD.replace("00-4", "ff-4"),
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-" + "0" * 16 + "-01",
        GOOD * 20_000,
    ],
)
def test_anything_else_is_none(value: Any) -> None:
    assert accepted(value) == ""


@given(at=st.integers(0, 54), character=st.characters())
def test_one_character_decides(at: int, character: str) -> None:
    text = GOOD[:at] + character + GOOD[at + 1 :]
    fits = character == GOOD[at] if GOOD[at] == "-" or at < 3 else character in "0123456789abcdef"
    assert accepted(text) == (text if fits else "")


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=6, max_size=6))
def test_what_is_made_has_the_form_whatever_chance_says(drawn: list[float]) -> None:
    numbers = iter(drawn)
    text = made(lambda: next(numbers))
    assert accepted(text) == text
    assert next(numbers, None) is None


def test_other_chance_makes_another_trace() -> None:
    low, high = made(lambda: 0.0), made(lambda: 1 - 2**-53)
    assert low == "00-" + "00000001".ljust(32, "0") + "-0000000100000000-01"
    assert high == "00-" + "f" * 32 + "-" + "f" * 16 + "-01"
