"""The page on faults has the tables that the faults themselves make."""

from __future__ import annotations

from pathlib import Path

from scenarios.spec import FAULTS
from tests.fault_page import page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "faults.md"


def test_the_page_has_the_tables_as_they_are_now() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for table in page().split("\n\n"):
        assert table.strip() in text, "put what `python -m tests.fault_page` prints into it"


def test_every_kind_has_its_row_and_every_key_stands_once() -> None:
    lines = page().splitlines()
    for name in FAULTS:
        assert sum(line.startswith(f"| `{name}` |") for line in lines) >= 1
    keys = [line.split(" | ")[:2] for line in lines if " | `" in line and "whole" in line]
    assert len(keys) == len({tuple(key) for key in keys})
