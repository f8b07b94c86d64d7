"""Spans, moments and other people's texts, in the words of the owner's pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.service.http.words import (
    S,
    ago,
    counted,
    machine_moment,
    moment,
    plain,
    plain_lines,
    span,
)

DAY_S = 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "under 1 s"),
        (0.999, "under 1 s"),
        (-5, "under 1 s"),
        (1, "1 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (7500, "2 h 5 min"),
        (DAY_S, "1 day"),
        (DAY_S + 60, "1 day"),
        (3 * DAY_S + 4 * 3600 + 59, "3 days 4 h"),
    ],
)
def test_a_span_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert span(round(seconds * S)) == text


@given(st.integers(0, 10**17))
def test_a_span_is_never_more_than_it_is(us: int) -> None:
    sizes = {"day": DAY_S, "days": DAY_S, "h": 3600, "min": 60, "s": 1}
    words = span(us).removeprefix("under ").split()
    told_s = sum(int(n) * sizes[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    assert told_s * S <= max(us, S)
    assert us - told_s * S < max(us / 20, 3600 * S)


def test_what_never_was_is_never() -> None:
    assert ago(None) == "never"
    assert ago(5 * S) == "5 s ago"
    assert ago(S - 1) == "just now"


def test_moments_are_in_utc_for_people_and_for_machines() -> None:
    at_us = 1_772_366_405 * S + 999_999
    assert moment(at_us) == "2026-03-01 12:00:05 UTC"
    assert machine_moment(at_us) == "2026-03-01T12:00:05Z"


@pytest.mark.parametrize("at_us", [-1, 253_402_300_800 * S, 1 << 80])
def test_what_no_calendar_has_is_no_date(at_us: int) -> None:
    assert moment(at_us) == "not a date"
    assert machine_moment(at_us) == ""


@given(st.text(), st.integers(1, 50))
def test_a_shown_text_is_one_bounded_harmless_line(text: str, limit_chars: int) -> None:
    shown = plain(text, limit_chars)
    assert "\n" not in shown
    assert not {"\u202e", "\u2066", "\x1b", "\0"} & set(shown)
    assert len(shown) <= limit_chars + 40


def test_a_cut_text_tells_how_much_is_missing() -> None:
    assert plain("A" * 12_000, 10) == "AAAAAAAAAA… (11,990 more characters)"
    assert plain("A" * 10, 10) == "A" * 10


def test_lines_are_kept_where_there_may_be_several() -> None:
    assert plain_lines("a\n\tb\x1b", 100) == "a\n    b\u241b"


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "run") for n in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
