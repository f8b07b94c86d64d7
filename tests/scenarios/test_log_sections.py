"""Which sections a command means."""

from __future__ import annotations

from pathlib import Path

import pytest

from logs.read import LogError
from scenarios.log_sections import at_least, chosen, sections, the_one
from scenarios.problems import ScenarioError
from tests.logs.samples import Made, log_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A results folder with two cells, of two replications each."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for cell, name in enumerate(("a", "b")):
        (logs / f"{name}.jsonl").write_bytes(log_of("published/outbox", cell, 2))
    return tmp_path


def test_sections_are_chosen_by_cell_and_replication(folder: Path) -> None:
    assert len(chosen(folder)) == 4
    for cell in ("true", "relay.outbox=true", "box=t"):
        assert {entry.cell for entry in chosen(folder, cell)} == {"relay.outbox=true"}
    assert [entry.replication for entry in chosen(folder, None, 1)] == [1, 1]
    one = the_one(folder, "false", 1)
    [section] = sections([one])
    assert (section.header.cell, section.header.replication) == ("relay.outbox=false", 1)
    assert [s.where for s in sections(chosen(folder))] == [e.words for e in chosen(folder)]


def test_a_cell_s_own_value_is_meant_before_a_part_of_another_s(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(Made(cell="a=10").data() + Made(cell="a=1").data())
    assert [entry.cell for entry in chosen(path, "1")] == ["a=1"]
    assert [entry.cell for entry in chosen(path, "a=1")] == ["a=1"]
    assert [entry.cell for entry in chosen(path, "a=")] == ["a=10", "a=1"]


@pytest.mark.parametrize(
    ("cell", "replication", "told", "cure"),
    [
        ("tru", 9, "it has no replication 9", "it has 0 to 1"),
        ("trueish", None, 'no cell is called "trueish"', 'did you mean "true"?'),
        ("zebra", None, 'no cell is called "zebra"', 'it has "relay.outbox=true", "relay.'),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    folder: Path, cell: str, replication: int | None, told: str, cure: str
) -> None:
    with pytest.raises(LogError) as raised:
        chosen(folder, cell, replication)
    assert told in str(raised.value)
    assert cure in raised.value.cure


def test_one_section_must_be_chosen_where_there_are_more(folder: Path) -> None:
    with pytest.raises(LogError, match="it has 4 sections, and this is about one") as raised:
        the_one(folder, None, None)
    assert raised.value.cure == "say which one: --cell and --replication"
    with pytest.raises(LogError) as raised:
        the_one(folder, "true", None)
    assert raised.value.cure == "say which one: --replication"


def test_a_log_without_cells_and_one_that_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log_of("published/cancel"))
    with pytest.raises(LogError) as raised:
        chosen(path, "x")
    assert raised.value.cure == "its scenario has no cells: leave --cell out"
    path.write_bytes(b"")
    with pytest.raises(LogError, match="it is empty"):
        chosen(path)


def test_a_number_that_is_too_small_is_refused() -> None:
    at_least("--limit", None, 1)
    at_least("--limit", 1, 1)
    with pytest.raises(ScenarioError, match="--limit: must be at least 1, not 0"):
        at_least("--limit", 0, 1)
