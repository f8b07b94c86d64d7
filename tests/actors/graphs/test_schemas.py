"""Whether an answer fits its schema, and what is said of one that does not."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs.schemas import (
    NEEDS_EXTRA,
    PROBLEM_LIMIT_CHARS,
    SchemaError,
    _validator,
    problem_of,
    read_answer,
    shortened,
)

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_what_fits_has_no_problem() -> None:
    assert problem_of(NUMBER, {"n": 1}) is None
    assert read_answer(NUMBER, {"n": 1}) == ({"n": 1}, None)


def test_a_problem_says_where_and_what() -> None:
    assert problem_of(NUMBER, {"n": "x"}) == '[\'n\']: "x" is not of type "integer"'
    assert problem_of(NUMBER, {}) == '"n" is a required property'
    nested = {"type": "array", "items": NUMBER}
    assert problem_of(nested, [{"n": 1}, {"n": 2.5}]) == "[1]['n']: 2.5 is not of type \"integer\""


def test_a_long_problem_is_cut() -> None:
    problem = problem_of({"enum": ["a" * 2_000]}, "b" * 2_000)
    assert problem is not None
    assert len(problem) == PROBLEM_LIMIT_CHARS


def test_a_long_value_leaves_room_for_the_reason() -> None:
    problem = problem_of(NUMBER, {"n": "x" * 5_000 + "end"})
    assert problem is not None
    assert problem.startswith("['n']: \"xxx")
    assert problem.endswith('xxxend" is not of type "integer"')
    assert len(problem) < PROBLEM_LIMIT_CHARS
    long_names = {"additionalProperties": {"type": "null"}}
    problem = problem_of(long_names, {"k" * 5_000: ["v" * 5_000]})
    assert problem is not None
    assert problem.endswith('v"] is not of type "null"')
    assert len(problem) < PROBLEM_LIMIT_CHARS


@given(st.text(max_size=300), st.integers(1, 200))
def test_what_is_shortened_keeps_both_ends(text: str, limit_chars: int) -> None:
    short = shortened(text, limit_chars)
    assert len(short) == min(len(text), limit_chars)
    before, _, after = (text, "", "") if short == text else short.partition("…")
    assert text.startswith(before)
    assert text.endswith(after)


def test_a_value_of_any_kind_is_told() -> None:
    assert problem_of({"type": "string"}, 2**70) == f'{2**70} is not of type "string"'
    assert problem_of({"maxLength": 1}, "\0é") == '"\\u0000é" is longer than 1 character'
    assert problem_of({"not": {}}, "x") == '{} is not allowed for "x"'


def test_a_text_is_read_as_json_where_the_schema_wants_no_text() -> None:
    assert read_answer(NUMBER, '{"n": 3}') == ({"n": 3}, None)
    assert read_answer({"type": "string"}, '{"n": 3}') == ('{"n": 3}', None)
    assert read_answer(NUMBER, "three") == ("three", '"three" is not of type "object"')
    assert read_answer(NUMBER, '{"n": "x"}') == (
        {"n": "x"},
        '[\'n\']: "x" is not of type "integer"',
    )
    assert read_answer(NUMBER, "[" * 100_000)[1] is not None


@pytest.mark.parametrize(
    "schema",
    [
        5,
        {"type": "wonder"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "(?=lookahead)"},
        {"pattern": "(unclosed"},
    ],
)
def test_a_schema_that_can_not_be_used_is_told_in_one_line(schema: Any) -> None:
    with pytest.raises(SchemaError) as caught:
        problem_of(schema, "x")
    assert str(caught.value).startswith("the schema can't be used: ")
    assert "\n" not in str(caught.value)
    assert "\0" not in str(caught.value)


def test_what_is_wrong_with_a_schema_is_shown() -> None:
    with pytest.raises(SchemaError, match='can\'t be used: "wonder" is not valid under any'):
        problem_of({"type": "wonder"}, "x")


def test_a_pattern_takes_linear_time() -> None:
    assert problem_of({"pattern": "(a+)+$"}, "a" * 50_000 + "!") is not None


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _validator.cache_clear()
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(SchemaError, match=r"pip install 'pullcord\[graphs\]'"):
        problem_of({"type": "null"}, None)
    assert "pip install" in NEEDS_EXTRA
