"""JSON for people has a field a line, and ends with its line."""

from __future__ import annotations

from scenarios.json_text import indented


def test_each_field_has_a_line() -> None:
    assert indented({"a": [1, "é"], "b": {}}) == (
        '{\n  "a": [\n    1,\n    "é"\n  ],\n  "b": {}\n}\n'
    )
