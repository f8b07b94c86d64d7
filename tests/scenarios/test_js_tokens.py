"""Tokens of scripts: found where they are, whatever the script is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.js_tokens import tokens_of

SCRIPTS = st.text(st.sampled_from(list("ab1 \n'\"`${}()[]/\\,.;=>?*#&|")), max_size=40)


def texts(script: str) -> list[str]:
    return [token.text for token in tokens_of(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a.b?.c(1.5e3)", ["a", ".", "b", "?.", "c", "(", "1.5e3", ")"]),
        ("// x\na /* y\n z */ b", ["a", "b"]),
        ("#!/usr/bin/env pullcord\na", ["a"]),
        (r"'it\'s' + \"x\"".replace("\\\"", '"'), [r"'it\'s'", "+", '"x"']),
        ("a / b / c", ["a", "/", "b", "/", "c"]),
        ("x = /[/]\\/'/g.test(s)", ["x", "=", "/[/]\\/'/g", ".", "test", "(", "s", ")"]),
        ("return /x/", ["return", "/x/"]),
        ("f(1) / 2 / 3", ["f", "(", "1", ")", "/", "2", "/", "3"]),
        ("(a) => a ?? b", ["(", "a", ")", "=>", "a", "??", "b"]),
        ("`a${b}c`", ["`", "a", "(", "b", ")", "c", "`"]),
        (
            "`a${`b${c}`}d` + e",
            ["`", "a", "(", "`", "b", "(", "c", ")", "", "`", ")", "d", "`", "+", "e"],
        ),
        ("`${{a: 1}}`", ["`", "", "(", "{", "a", ":", "1", "}", ")", "", "`"]),
        (r"`\`$ \${x}`", ["`", r"\`$ \${x}", "`"]),
        ("größe = 1", ["größe", "=", "1"]),
        ("'open", ["'", "open"]),
    ],
)  # fmt: skip
def test_tokens(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


@given(SCRIPTS)
def test_any_text_has_tokens_in_their_places(script: str) -> None:
    end = 0
    for token in tokens_of(script):
        assert token.at >= end
        end = token.end
        inner = token.kind == "mark" and token.text in "()"
        assert script.startswith(token.text, token.at) or (inner and script[token.at] in "$}")


@given(st.recursive(st.just("`x`"), lambda inner: inner.map(lambda one: "`a${f(" + one + ")}b`")))
def test_brackets_are_balanced_in_templates(script: str) -> None:
    found = texts(script)
    assert found.count("(") == found.count(")") == script.count("${") + script.count("f(")
    assert found.count("`") == script.count("`")
