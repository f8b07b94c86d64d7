"""Poll plans: the delays of each form, their canonical text, and errors with the cure."""

import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.polls import HINTED_ELSE, PollPlan, parse_polls
from transports.units import Duration


def seconds(plan: PollPlan, count: int, hint_us: int | None = None) -> list[float | None]:
    delays = [plan.delay_us(n, hint_us) for n in range(count)]
    return [None if delay is None else delay / 1e6 for delay in delays]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("never", [None] * 7),
        ("every 2s", [2] * 7),
        ("backoff 2s x2 max 30s", [2, 4, 8, 16, 30, 30, 30]),
        ("backoff 1s x1.5 max 3s", [1, 1.5, 2.25, 3, 3, 3, 3]),
        ("backoff 5s x2 max 5s", [5] * 7),
        ("wait 20s then every 10s", [20, 10, 10, 10, 10, 10, 10]),
        ("after 5s, 10s, 30s", [5, 10, 30, 30, 30, 30, 30]),
        ("after 0s, 10s", [0, 10, 10, 10, 10, 10, 10]),
        ("hinted", [20, 10, 10, 10, 10, 10, 10]),
        ("hinted else every 10s", [10] * 7),
        ("hinted else never", [None] * 7),
    ],
)
def test_the_delays_of_a_plan(text: str, expected: list[float | None]) -> None:
    plan = parse_polls(text)
    assert seconds(plan, 7) == expected
    assert str(plan) == text
    assert parse_polls(str(plan)) == plan
    assert hash(parse_polls(text)) == hash(plan)


def test_a_hint_counts_only_for_a_hinted_plan() -> None:
    assert seconds(parse_polls("hinted"), 2, 7_000_000) == [7, 7]
    assert seconds(parse_polls("hinted"), 2, 0) == [0, 0]
    assert seconds(parse_polls("hinted else never"), 1, 7_000_000) == [7]
    assert seconds(parse_polls("every 2s"), 2, 7_000_000) == [2, 2]
    assert seconds(parse_polls("never"), 1, 7_000_000) == [None]


def test_fractions_of_a_microsecond_never_add_up() -> None:
    plan = parse_polls("backoff 1us x1.1 max 1s")
    exact = [round(1.1**n) for n in range(100)]
    assert plan.delays_us[60:100] == tuple(exact[60:100])


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  every   60s ", "every 1m"),
        ("backoff 2s x2.50 max 30s", "backoff 2s x2.5 max 30s"),
        ("after 5s,10s", "after 5s, 10s"),
        (f"hinted else {HINTED_ELSE}", "hinted"),
    ],
)
def test_other_texts_become_canonical(text: str, canonical: str) -> None:
    assert str(parse_polls(text)) == canonical


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=20))
def test_any_list_of_delays_survives_its_text(delays_us: list[int]) -> None:
    plan = parse_polls("after " + ", ".join(str(Duration(us)) for us in delays_us))
    assert list(plan.delays_us) == delays_us
    assert parse_polls(plan.text) == plan


def test_it_pickles_and_compares() -> None:
    plan = parse_polls("backoff 2s x2 max 30s")
    twin = pickle.loads(pickle.dumps(plan))  # noqa: S301  our own bytes
    assert twin == plan
    assert twin.delays_us == plan.delays_us
    assert plan != parse_polls("every 2s")
    assert plan != plan.text
    assert repr(plan) == "PollPlan('backoff 2s x2 max 30s')"


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("evry 2s", 'did you mean "every 2s"?'),
        ("2s", "write never, every 2s, backoff 2s x2 max 30s"),
        ("", "write never, every 2s"),
        ("every 2", 'write "2s"'),
        ("every 0s", "the delay that repeats is 0s"),
        ("every", 'an example is "every 2s"'),
        ("never 2s", 'nothing may follow "never"'),
        ("backoff 2s x2", 'an example is "backoff 2s x2 max 30s"'),
        ("backoff 2s x1 max 30s", 'use "every"'),
        ("backoff 40s x2 max 30s", "longer than the maximum"),
        ("backoff 0s x2 max 30s", "the first delay is 0s"),
        ("backoff 1us x1.000001 max 30s", "more than 1000 steps"),
        ("wait 20s", 'needs "then every"'),
        ("wait 20s then every 0s", "the delay that repeats is 0s"),
        ("after 5s, 0s", "the delay that repeats is 0s"),
        ("after 5s,, 6s", "not a duration"),
        ("after " + ", ".join(["1s"] * 1001), "more than 1000 delays"),
        ("hinted every 2s", 'only "else"'),
        ("hinted else hinted", "can't be hinted itself"),
        ("hinted else evry 2s", 'did you mean "every 2s"?'),
    ],
)
def test_a_wrong_plan_says_the_cure(text: str, cure: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        parse_polls(text)
    assert cure in str(caught.value)
    assert "is not a poll plan" in str(caught.value)


def test_the_page_of_languages_tells_the_truth() -> None:
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text(encoding="utf-8")
    section = page.partition("## Poll plans")[2].partition("## Metrics")[0]
    texts = re.findall(r"^\| `(.*?)`", section, re.MULTILINE)
    assert [str(parse_polls(text)) for text in texts] == texts
    assert len(texts) == 7
