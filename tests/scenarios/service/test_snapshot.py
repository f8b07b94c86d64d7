"""What stores hold at the start, as a log begins with it: all of it, or none and a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from actors.actor import TableSpec
from actors.recorded import STORE_LEFT_OUT, STORE_ROWS, RecordedStore
from actors.stores.memory import MemoryStore
from actors.stores.sqlite import SqliteStore
from actors.stores.sqlite import store as sqlite_store
from logs.keep import MemoryRecorder
from logs.read import record_of
from logs.record import EventRecord
from logs.write import lines_of
from scenarios.service.snapshot import write_stores


class Thing(msgspec.Struct, frozen=True):
    """A row that JSON holds, or not quite."""

    number: float
    text: str = "é\x00"


THINGS = TableSpec("things", Thing, number=("number",))
PAIRS = TableSpec("pairs", Thing)
ROWS = {f"k{number}": Thing(number / 4) for number in range(7)} | {"": Thing(float("inf"))}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "s.db")) as made:
        for key, row in ROWS.items():
            made.table(THINGS).put(key, row)
        made.table(PAIRS).put(("a", "b"), Thing(1))
        made.commit()
        yield made


def written(store: object, limit_bytes: int = 1 << 20) -> tuple[list[EventRecord], list[str]]:
    recorder = MemoryRecorder()
    said = list(write_stores({"me": store, "you": None}, recorder, lambda: None, limit_bytes))
    records = [record_of(line, "here") for line in lines_of(recorder.records).splitlines()]
    return records, said


@pytest.mark.parametrize("rows", [1, 4, 8, 100])
def test_all_that_a_store_holds_comes_back(
    store: SqliteStore, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "DUMP_ROWS", rows)
    records, said = written(store)
    assert said == []
    assert {(one.actor, one.event) for one in records} == {("me", STORE_ROWS)}
    again = RecordedStore([])
    for one in records:
        again.begin_with(one.fields["table"], one.fields["rows"])
    assert dict(again.table(THINGS)) == ROWS
    assert dict(again.table(PAIRS)) == {("a", "b"): Thing(1)}


def test_tables_that_nobody_opened_are_there_too(tmp_path: Path, store: SqliteStore) -> None:
    store.close()
    with closing(SqliteStore(tmp_path / "s.db")) as again:
        assert {one.fields["table"] for one in written(again)[0]} == {"things", "pairs"}


def test_what_is_too_much_is_left_out_and_said(store: SqliteStore) -> None:
    records, said = written(store, 100)
    assert [one.event for one in records][-1] == STORE_LEFT_OUT
    [line] = said
    assert "has more than a log may begin with (100 bytes" in line


def test_a_store_that_is_gone_at_the_end_has_nothing_to_tell() -> None:
    assert written(MemoryStore(None)) == ([], [])
