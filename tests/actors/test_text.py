"""The choke point for text: what is counted is what JavaScript counts, and the bound is exact."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actors.messages import Completion
from actors.text import (
    DEPTH_LIMIT,
    ERROR_LIMIT_CHARS,
    RESULT_LIMIT_CHARS,
    bounded,
    clean_text,
    clean_value,
    completion_chars,
    cut,
    units,
)

# A naive JSON.stringify, by ECMA-262


ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def js_text(text: str) -> str:
    letters = (ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    return f'"{"".join(letters)}"'


def js_number(value: float) -> str:
    """Number::toString: the shortest digits, plain from 1e-6 to below 1e21."""
    if value == 0:
        return "0"
    sign, digit_list, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_list))
    point = len(digits) + exponent  # digits before the point
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        text = f"{mantissa}e{point - 1:+d}"
    return ("-" if sign else "") + text


def js(value: Any) -> str:
    """JSON.stringify(value)."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return js_text(value)
    if isinstance(value, int | float):
        return js_number(value) if math.isfinite(value) else "null"
    if isinstance(value, list):
        return f"[{','.join(map(js, value))}]"
    return "{" + ",".join(f"{js_text(key)}:{js(each)}" for key, each in value.items()) + "}"


def js_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def posted(done: Completion) -> str:
    """What the account's relay posts of a completion that fits."""
    keys = ("execution_id", "status", "result", "total_tokens", "reported_cost")
    fields = {key: getattr(done, key) for key in keys}
    return js(fields if done.error is None else fields | {"error": done.error})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1200.0, "1200"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (123456789012345680.0, "123456789012345680"),
        (5e-324, "5e-324"),
    ],
)
def test_the_model_writes_numbers_as_javascript_does(value: float, text: str) -> None:
    assert js_number(value) == text
    assert float(text) == value


@given(st.text())
def test_the_model_reads_back_as_json(text: str) -> None:
    assert json.loads(js(text)) == text


# Lengths

LETTERS = st.sampled_from(
    ["x", '"', "\\", "/", "\n", "\b", "\x01", "\x1f", "\x7f", "é", "あ", "🙂", "\u2028", "\uffff"]
)
TEXTS = st.text(LETTERS, max_size=40) | st.text(max_size=20)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
RESULTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(TEXTS)
def test_units_are_utf_16_code_units(text: str) -> None:
    assert units(text) == js_length(text) == sum(1 + (ord(c) > 0xFFFF) for c in text)


@settings(max_examples=300)
@given(
    st.text(max_size=40),
    RESULTS,
    st.integers(0, 2**53),
    st.floats(0, 1e25),
    st.none() | TEXTS,
)
@example("e", 1.0, 1200, 0.0, None)
@example("e", [1e21, 1e-7, -0.0, 1e20, 123456789012345680.0], 0, 1e22, None)
def test_a_completion_is_as_long_as_what_javascript_would_post(
    execution_id: str, result: Any, tokens: int, cost: float, error: str | None
) -> None:
    done = Completion(
        execution_id=execution_id,
        status="completed",
        result=result,
        total_tokens=tokens,
        reported_cost=cost,
        error=error,
    )
    assert completion_chars(done) == js_length(posted(done))


# The bound

ACCOUNT_ENVELOPE_CHARS = 87  # all but the id, the result and all digits but one of each number


def completion(result: str, *, execution_id: str = "e" * 12, tokens: int = 1200) -> Completion:
    return Completion(
        execution_id=execution_id,
        status="completed",
        result=result,
        total_tokens=tokens,
        reported_cost=0.0,
    )


def test_the_account_s_longest_result_fits_and_one_more_does_not() -> None:
    """An id and further digits of 14 characters leave 99,899, in ASCII as in Japanese."""
    for execution_id, tokens in (("e" * 14, 5), ("e" * 11, 1200), ("", 10**14)):
        for letter in "xあ":
            fits = completion(letter * 99_899, execution_id=execution_id, tokens=tokens)
            assert completion_chars(fits) == RESULT_LIMIT_CHARS
            assert bounded(fits) is fits
            over = completion(letter * 99_900, execution_id=execution_id, tokens=tokens)
            assert bounded(over).result_truncated
    assert len(("あ" * 99_899).encode()) == 299_697


@given(st.text("abcdef0123456789-", max_size=40), st.integers(0, 10**9))
def test_what_is_left_for_a_result_follows_the_account_s_sum(
    execution_id: str, tokens: int
) -> None:
    digits = len(str(tokens)) - 1
    room = RESULT_LIMIT_CHARS - ACCOUNT_ENVELOPE_CHARS - len(execution_id) - digits
    fits = completion("x" * room, execution_id=execution_id, tokens=tokens)
    assert not bounded(fits).result_truncated
    over = completion("x" * (room + 1), execution_id=execution_id, tokens=tokens)
    assert bounded(over).result_truncated


@pytest.mark.parametrize(
    ("letter", "cost"),
    [("x", 1), ("あ", 1), ("🙂", 2), ('"', 2), ("\\", 2), ("\n", 2), ("\x01", 6)],
)
def test_each_letter_costs_what_javascript_writes_for_it(letter: str, cost: int) -> None:
    room = RESULT_LIMIT_CHARS - ACCOUNT_ENVELOPE_CHARS - 12 - 3
    most = room // cost
    assert not bounded(completion(letter * most)).result_truncated
    assert bounded(completion(letter * (most + 1))).result_truncated


def test_the_cut_is_all_or_nothing() -> None:
    done = msgspec.structs.replace(completion("x" * 100_000), reported_cost=0.5)
    assert bounded(done) == Completion(
        execution_id="e" * 12, status="completed", result_truncated=True
    )


def test_the_bound_holds_for_a_result_of_any_kind() -> None:
    big = [["x" * 30] * 1000 for _ in range(4)]
    done = msgspec.structs.replace(completion(""), result={"rows": big})
    assert bounded(done).result_truncated
    small = msgspec.structs.replace(done, result={"rows": big[:2]})
    assert bounded(small) is small


@settings(max_examples=100)
@given(LETTERS, st.integers(0, 100_000), st.none() | TEXTS)
@example("x", 99_899, "e" * ERROR_LIMIT_CHARS)
@example("\x01", 16_400, None)
def test_bounded_is_what_the_model_allows(letter: str, count: int, error: str | None) -> None:
    clean = None if error is None else clean_text(error)
    done = msgspec.structs.replace(completion(letter * count), error=clean)
    fits = js_length(posted(done)) <= RESULT_LIMIT_CHARS
    assert bounded(done) == (
        done
        if fits
        else Completion(
            execution_id=done.execution_id, status=done.status, error=clean, result_truncated=True
        )
    )


# Errors


def test_errors_are_cut_to_2000_units() -> None:
    failed = Completion(execution_id="e", status="failed", error="x" * 2_000)
    assert bounded(failed) is failed
    assert bounded(msgspec.structs.replace(failed, error="x" * 2_001)) == failed
    emoji = bounded(msgspec.structs.replace(failed, error="x" + "🙂" * 1_000))
    assert emoji.error == "x" + "🙂" * 999, "never half a character"


@given(TEXTS, st.integers(0, 50))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert text.startswith(short)
    assert units(short) <= limit
    longer = text[: len(short) + 1]
    assert short == text or units(longer) > limit


# Cleaning


def test_nul_and_lone_surrogates_become_the_replacement_character() -> None:
    assert clean_text("a\0b") == "a\ufffdb"
    assert clean_text("a\ud83d") == "a\ufffd"
    assert clean_text("\udc00é") == "\ufffdé"
    assert clean_text("\udc00\ud83d") == "\ufffd\ufffd"


def test_two_halves_become_their_character() -> None:
    assert clean_text("\ud83d\ude42") == "🙂"


@given(st.text(max_size=30))
def test_clean_text_is_kept_as_it_is(text: str) -> None:
    clean = clean_text(text)
    assert clean_text(clean) == clean
    assert clean == text.replace("\0", "\ufffd")
    assert units(clean) == js_length(clean)


@given(st.lists(st.integers(0, 0x10FFFF).map(chr), max_size=30).map("".join))
def test_any_text_can_be_encoded_once_it_is_clean(text: str) -> None:
    assert msgspec.json.decode(msgspec.json.encode(clean_text(text))) == clean_text(text)
    assert "\0" not in clean_text(text)


def test_values_are_cleaned_all_through() -> None:
    dirty = {"a\0": [1, 2.5, math.nan, math.inf, -math.inf, True, None, ("\ud83d", {"k": "\0"})]}
    assert clean_value(dirty) == {
        "a\ufffd": [1, 2.5, None, None, None, True, None, ["\ufffd", {"k": "\ufffd"}]]
    }
    assert clean_value({1: "x"}) == {"1": "x"}


def nested(levels: int) -> Any:
    value: Any = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def test_depth_is_limited_with_a_sentence() -> None:
    assert clean_value(nested(DEPTH_LIMIT)) == nested(DEPTH_LIMIT)
    for levels in (DEPTH_LIMIT + 1, 100_000):
        with pytest.raises(ValueError, match="64 levels deep"):
            clean_value(nested(levels))


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object()])
def test_what_json_has_no_form_for_is_named(value: object) -> None:
    with pytest.raises(ValueError, match=f"can't hold a {type(value).__name__}"):
        clean_value([value])


@given(RESULTS)
def test_a_clean_value_is_kept_as_it_is(value: Any) -> None:
    clean = clean_value(value)
    assert clean_value(clean) == clean
    assert json.loads(msgspec.json.encode(clean)) == clean


def test_what_comes_from_outside_is_cleaned_before_it_is_bounded() -> None:
    dirty = msgspec.structs.replace(completion("a\ud83db\0"), error="\udc00", reported_cost=1.0)
    assert bounded(dirty) == msgspec.structs.replace(dirty, result="a\ufffdb\ufffd", error="\ufffd")
    nan = msgspec.structs.replace(completion(""), result={"x": float("nan")})
    assert bounded(nan).result == {"x": None}
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    refused = bounded(msgspec.structs.replace(completion(""), result=deep))
    assert (refused.status, refused.result) == ("failed", None)
    assert refused.error == "result rejected: a result may be nested 64 levels deep"
