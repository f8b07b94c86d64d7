"""Expectations as text: every form is read, and every mistake has a place and a cure."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.expect import ExpectationError, Form, Reference, parse_expectation


def reference(text: str) -> Reference:
    return parse_expectation(f"{text} equals 1").left


@pytest.mark.parametrize(
    ("text", "form", "numbers"),
    [
        ("calls.mean equals 46.7", "equals", [46.7]),
        ("calls.mean agrees with 47.1", "agrees with", [47.1]),
        ("calls.mean  agrees   with 47.1", "agrees with", [47.1]),
        ("wait.mean within 10s +/- 0.5s", "within", [10, 0.5]),
        ("wait.mean within 10+/-0.5", "within", [10, 0.5]),
        ("late.p95 < 20s", "<", [20]),
        ("late.p95<1m30s", "<", [90]),
        ("late.p95 <= 500ms", "<=", [0.5]),
        ("late.p95 > -3", ">", [-3]),
        ("late.p95 >= 1e-3", ">=", [0.001]),
        ("result.max <= 100KiB", "<=", [102_400]),
    ],
)
def test_a_number_on_the_right(text: str, form: Form, numbers: list[float]) -> None:
    expectation = parse_expectation(text)
    assert expectation.form == form
    assert [number.value for number in expectation.numbers] == numbers
    assert expectation.right is None
    assert expectation.references == (expectation.left,)


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("late.mean[hinted] < late.mean[every 2s]", 1),
        ("late.mean[hinted] < 0.5 * late.mean[every 2s]", 0.5),
        ("late.mean[hinted]<2*late.mean[every 2s]", 2),
    ],
)
def test_a_reference_on_the_right(text: str, factor: float) -> None:
    expectation = parse_expectation(text)
    assert expectation.factor == factor
    assert expectation.numbers == ()
    assert expectation.right == Reference("late", "mean", "every 2s", text.rindex("late"))
    assert expectation.references == (expectation.left, expectation.right)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("calls.mean", ("calls", "mean", None)),
        ("calls.p99.9", ("calls", "p99.9", None)),
        ("run.wait.p5[every 2s]", ("run.wait", "p5", "every 2s")),
        ("run.wait.p99.9 [ hinted ]", ("run.wait", "p99.9", "hinted")),
        (
            "late.max[agent.poll=every 2s, relay.poll=20s]",
            ("late", "max", "agent.poll=every 2s, relay.poll=20s"),
        ),
        (
            "a.sum[lognormal(median=60s, sigma=0.8)]",
            ("a", "sum", "lognormal(median=60s, sigma=0.8)"),
        ),
    ],
)
def test_references(text: str, parts: tuple[str, str, str | None]) -> None:
    found = reference(text)
    assert (found.metric, found.statistic, found.subscript) == parts
    assert reference(str(found)) == found


@pytest.mark.parametrize(
    ("number", "last_digit"),
    [
        ("47.1", 0.1),
        ("118", 1),
        ("1900", 1),
        ("2.50", 0.01),
        ("1e3", 1000),
        ("1.5e3", 100),
        ("9.8s", 0.1),
        ("500ms", 0.001),
        ("2m", 60),
        ("1h30m", 60),
        ("1.5KiB", 102.4),
    ],
)
def test_the_last_digit_is_what_was_printed(number: str, last_digit: float) -> None:
    found = parse_expectation(f"late.mean agrees with {number}").numbers[0]
    assert found.last_digit == pytest.approx(last_digit)
    assert found.text == number


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a.mean  equals  46.70", "equals 46.70"),
        ("a.mean within 10s+/-0.5s", "within 10s +/- 0.5s"),
        ("a.mean < 0.5*b.mean[x]", "< 0.5 * b.mean[x]"),
        ("a.mean < b.mean", "< b.mean"),
    ],
)
def test_the_target_is_the_right_side(text: str, target: str) -> None:
    assert parse_expectation(text).target == target


@pytest.mark.parametrize(
    ("text", "offset", "cure"),
    [
        ("", 0, "a statistic of a metric is expected"),
        ("46.7 equals calls.mean", 0, "a statistic of a metric is expected"),
        ("calls equals 46.7", 0, '"calls" lacks the statistic: write "calls.mean"'),
        ("calls.maen equals 46.7", 6, 'did you mean "mean"?'),
        ("calls.p100 equals 46.7", 6, 'write "max"'),
        ("calls.mean[every 2s equals 46.7", 10, 'the "[" is never closed'),
        ("calls.mean[] equals 46.7", 10, "leave them out"),
        ("calls.mean equal 46.7", 11, 'did you mean "equals"?'),
        ("calls.mean agres with 46.7", 11, 'did you mean "agrees with"?'),
        ("calls.mean agrees 46.7", 11, 'did you mean "agrees with"?'),
        ("calls.mean == 46.7", 11, 'did you mean "equals"?'),
        ("calls.mean => 46.7", 11, 'did you mean ">="?'),
        ("calls.mean", 10, "write one of equals, agrees with"),
        ("calls.mean about 46.7", 11, "write one of equals, agrees with"),
        ("calls.mean equals", 17, "a number is expected"),
        ("calls.mean equals late.mean", 18, "a number is expected"),
        ("calls.mean equals 46.7 and", 23, 'nothing may follow, but "and" does'),
        ("calls.mean equals 46,7", 20, 'nothing may follow, but ",7" does'),
        ("late.mean < 20sec", 12, 'write "20s"'),
        ("late.mean < 20 s", 15, 'nothing may follow, but "s" does'),
        ("late.mean within 10s", 20, "needs a tolerance"),
        ("late.mean within 10s +/- 0s", 25, "a tolerance is above 0"),
        ("late.mean < 0 * late.p95", 12, '"0" is not a factor'),
        ("late.mean < 2s  * late.p95", 12, '"2s" is not a factor'),
        ("late.mean < 2 * 3", 16, "a statistic of a metric is expected"),
        ("late.mean < late", 12, '"late" lacks the statistic'),
        ("late.mean < 1e999", 12, "out of range"),
        ("a" * 2000, 1000, "longer than 1000 characters"),
    ],
)
def test_a_mistake_has_a_place_and_a_cure(text: str, offset: int, cure: str) -> None:
    with pytest.raises(ExpectationError) as caught:
        parse_expectation(text)
    assert cure in str(caught.value)
    assert caught.value.offset == offset


@given(st.text("aelm.[]<>=*+-/0 1s2%e", max_size=40))
def test_any_text_is_read_or_refused_with_its_place(tail: str) -> None:
    text = f"late.mean {tail}"
    try:
        place = parse_expectation(text).left.offset
    except ExpectationError as error:
        place = error.offset
    assert 0 <= place <= len(text)


def test_the_page_of_languages_tells_the_truth() -> None:
    page = (Path(__file__).parents[2] / "docs" / "languages.md").read_text(encoding="utf-8")
    section = page.partition("## Expectations")[2]
    forms = {
        parse_expectation(text).form for text in re.findall(r"^    (.*)", section, re.MULTILINE)
    }
    assert forms == {"equals", "agrees with", "within", "<"}
