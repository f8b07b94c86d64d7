"""Values drawn for a schema fit it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.graphs.samples import sample
from actors.graphs.schemas import problem_of
from actors.streams import HashedStream

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name", "children"],
        }
    },
}
SCHEMAS: list[Any] = [
    {},
    True,
    {"type": "null"},
    {"type": "boolean"},
    {"const": {"a": 1}},
    {"enum": ["low", "high", 3]},
    {"type": "integer", "minimum": -3, "maximum": 3},
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
    {"type": "integer", "multipleOf": 7, "minimum": 1},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "minimum": 5, "maximum": 5},
    {"type": "number", "minimum": 1e6},
    {"minimum": 3},
    {"type": "integer", "maximum": -5},
    {"type": "string", "minLength": 50, "maxLength": 60},
    {"type": "string", "maxLength": 0},
    {"type": ["string", "null"]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    {"type": "array", "maxItems": 1},
    {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False},
    {"minItems": 1, "type": "array"},
    {"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]},
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    },
    {"type": "object", "properties": {"x~y/z": {"$ref": "#/properties/b"}, "b": {"const": 1}}},
    {"properties": {"p": {"$ref": "#/$defs/a~1b"}}, "$defs": {"a/b": {"const": 5}}},
    TREE,
]  # fmt: skip


def draw(schema: Any, number: int = 0) -> Any:
    return sample(schema, HashedStream(b"test", str(number)))


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_a_sample_fits(schema: Any) -> None:
    for number in range(50):
        value = draw(schema, number)
        assert problem_of(schema, value) is None, value


def test_samples_differ_and_repeat() -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 5}
    assert draw(schema, 1) == draw(schema, 1)
    assert len({str(draw(schema, number)) for number in range(20)}) > 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "type",
        "enum",
        "const",
        "properties",
        "required",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "anyOf",
        "allOf",
        "$ref",
    ]
)


@settings(max_examples=200, deadline=None)
@given(schema=st.dictionaries(WORDS, JSON, max_size=4))
def test_only_a_schema_that_is_none_can_trouble_it(schema: dict[str, Any]) -> None:
    """The engine never asks with one: the synthetic model looks before it draws."""
    from actors.graphs.schemas import SchemaError

    try:
        problem_of(schema, None)
    except SchemaError:
        return
    draw(schema)


def test_endless_references_end() -> None:
    assert isinstance(draw({"$ref": "#"}), str)
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    value, depth = draw(endless), 0
    while isinstance(value, dict):
        value, depth = value["a"], depth + 1
    assert 10 < depth < 40


def test_what_a_schema_asks_for_beyond_reason_is_not_drawn() -> None:
    assert len(draw({"type": "array", "minItems": 10**12})) <= 10_003
    assert len(draw({"type": "string", "minLength": 10**12})) <= 10_100
    deep = {"type": "array", "minItems": 100, "items": {"$ref": "#"}}
    assert str(draw(deep)).count("[") < 10_001
    assert draw({"type": "integer", "minimum": 10**400}) >= 10**15
