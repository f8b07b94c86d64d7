"""A script's `meta` is read without running it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.graphs.meta import MetaError, read_script

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXTS, LITERALS, max_size=4), st.sampled_from([None, 2]))
def test_any_json_is_a_literal(meta: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(meta, indent=indent, ensure_ascii=False)
    script = read_script(f"export const meta = {text};\nreturn 1")
    assert script.meta == meta
    assert script.source == f"       const meta = {text};\nreturn 1"


def test_javascript_ways_of_writing_it() -> None:
    source = """#!/usr/bin/env pullcord
    // a Graph
    'use strict';
    /* of mine */ export  const
      meta = {name: 'it\\'s', "desc": `two
lines $5`, $phases_1: [{title: "\\x41\\u0042\\u{1F642}\\n"},], n: -1.5e3, /* , */ no: null, // }
      yes: true,}
    return meta"""
    script = read_script(source)
    assert script.meta == {
        "name": "it's",
        "desc": "two\nlines $5",
        "$phases_1": [{"title": "AB\U0001f642\n"}],
        "n": -1500,
        "no": None,
        "yes": True,
    }
    assert len(script.source) == len(source)
    assert script.source.count("\n") == source.count("\n")
    assert "export" not in script.source


@pytest.mark.parametrize(
    "source", ["return 1", "", "const meta = {a: f()};", "// export const meta = {\nreturn 1"]
)
def test_a_script_without_meta_is_left_alone(source: str) -> None:
    script = read_script(source)
    assert (script.source, script.meta) == (source, {})


@pytest.mark.parametrize(
    ("literal", "column", "words"),
    [
        ("{a: f()}", 25, "must be a literal"),
        ("{a: 1 + 1}", 27, "a comma or } is missing"),
        ("{a: `${x}`}", 25, "must be a literal"),
        ("{...x}", 22, "a key must be a name or a string"),
        ("{[x]: 1}", 22, "a key must be a name or a string"),
        ("{a}", 23, "a colon is missing"),
        ("{get a() { return 1 }}", 26, "a colon is missing"),
        ("[1]", 21, "must be an object"),
        ("{a: 1", 26, "a comma or } is missing"),
        ("{a: 'open", 25, "must be a literal"),
        ("{a: 012}", 25, "must be a literal"),
        ("{a: '\\u{110000}'}", 25, "no character"),
        ("{} + x", 23, "must be a literal"),
        ("{a: " + "[" * 30, 45, "nested more than 20"),
    ],
)
def test_what_is_no_literal_is_refused_at_its_place(literal: str, column: int, words: str) -> None:
    with pytest.raises(MetaError, match=words) as caught:
        read_script(f"\nexport const meta = {literal}")
    assert (caught.value.line, caught.value.column) == (2, column)


@given(st.text(alphabet="{}[]:,'\"`\\$/*a1 \n-.", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        script = read_script("export const meta = " + text)
    except MetaError as error:
        place = (error.line, error.column)
    else:
        place = (1, 1)
        assert isinstance(script.meta, dict)
    assert place >= (1, 1)
