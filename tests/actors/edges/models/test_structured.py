"""A schema's question and answer: what is put into an object comes out again."""

from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.structured import MEMBER, object_schema, question_of, value_of
from actors.text import clean_value
from tests.actors.edges.models.stub_server import ask

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)
OBJECT: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "integer"}}}


def test_a_question_is_the_prompt_and_what_was_wrong_with_the_last_answer() -> None:
    assert question_of(ask("why?")) == "why?"
    told = question_of(ask("why?", problem="it is no number"))
    assert told.startswith("why?\n\nYour last answer did not fit")
    assert "it is no number" in told


def test_a_model_that_takes_no_schema_is_told_it() -> None:
    told = question_of(ask("why?", schema=OBJECT), with_schema=True)
    assert msgspec.json.encode(OBJECT).decode() in told


@given(JSON)
def test_any_value_comes_out_of_the_object_that_a_server_wants(value: Any) -> None:
    schema = {"const": value}
    answer = {MEMBER: value}
    assert object_schema(schema)["type"] == "object"
    jsonschema_rs.validate(object_schema(schema), answer)
    text = msgspec.json.encode(answer).decode()
    assert value_of(ask(schema=schema), text, wrapped=True) == clean_value(value)


def test_an_object_is_left_as_it_is_even_if_it_looks_like_the_outer_one() -> None:
    assert object_schema(OBJECT) is OBJECT
    assert value_of(ask(schema=OBJECT), '{"value": 3}', wrapped=True) == {"value": 3}


def test_references_are_found_from_the_top() -> None:
    schema = {
        "type": "array",
        "items": {"$ref": "#/$defs/word"},
        "$defs": {"word": {"type": "string"}},
    }
    outer = object_schema(schema)
    jsonschema_rs.validate(outer, {MEMBER: ["a"]})
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(outer, {MEMBER: [3]})


@pytest.mark.parametrize("text", ["```json\n[1]\n```", "\n```\n[1]\n```\n", " [1] "])
def test_a_fence_is_forgiven(text: str) -> None:
    assert value_of(ask(schema={"type": "array"}), text, wrapped=False) == [1]


DEEP = "[" * 65 + "]" * 65  # deeper than a message may be


@pytest.mark.parametrize("text", ["sorry, no", "{", "[" * 100_000, "", DEEP, "1e400"])
def test_what_is_no_json_is_given_as_it_is(text: str) -> None:
    assert value_of(ask(schema=OBJECT), text, wrapped=True) == text


def test_without_a_schema_an_answer_is_its_text() -> None:
    assert value_of(ask(), "[1]", wrapped=True) == "[1]"
