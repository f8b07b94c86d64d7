"""Tables in SQLite keep the store's contract, and a naive model agrees with them."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors.actor import TableSpec
from actors.stores.sqlite import SqliteStore, StoreFailedError, UnreadableRowError
from tests.actors.stores.opened import OpenedDatabase
from tests.actors.stores.rows import (
    KINDS,
    Found,
    Short,
    Strict,
)
from tests.actors.stores.sqlite.opened import Disk
from tests.contracts.database import DatabaseContract
from tests.contracts.store import ITEMS, OTHERS, Item, StoreContract, item, model_scan
from tests.contracts.store_machine import INDEXES, KEYS, ROWS, Rows, prefixes


class TestSqliteStore(StoreContract):
    """The suite on the SQLite store."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> Iterator[None]:
        self.paths = (tmp_path / f"{number}.db" for number in count())
        self.stores: list[OpenedDatabase] = []
        yield
        for opened in self.stores:
            opened.store.close()

    def open(self) -> OpenedDatabase:
        self.stores.append(OpenedDatabase(SqliteStore(next(self.paths), synchronous=False)))
        return self.stores[-1]


# Against a model: turns that share commits, are rolled back, fail; a disk that is full


class Against(RuleBasedStateMachine):
    """The store beside dictionaries: what is committed, what ended turns wrote, what is now."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.committed: Rows = {}
        self.ended: Rows = {}
        self.rows: Rows = {}
        self.wrote = False  # whether ended turns have written
        self.in_turn = False
        self.open()

    def open(self) -> None:
        self.store = SqliteStore(Path(self.folder.name, "store.db"), synchronous=False)
        self.disk = Disk(self.store, self.patch)
        self.table = self.store.table(ITEMS)
        self.table.get("")  # makes it
        self.store.commit()
        self.turn_wrote = False

    def teardown(self) -> None:
        self.store.close()
        self.patch.undo()
        self.folder.cleanup()

    def failed(self) -> None:
        """A host gives up its turn and then hears at the commit that all of them have failed."""
        assert self.disk.full, "only a full disk fails a turn"
        assert not self.store.writable
        self.store.roll_back()
        if self.in_turn and self.wrote:
            with pytest.raises(StoreFailedError, match="the disk is full; free some space"):
                self.store.commit()
        self.everything_is_committed(self.committed)

    def everything_is_committed(self, rows: Rows) -> None:
        self.rows, self.ended, self.committed = dict(rows), dict(rows), dict(rows)
        self.wrote = self.turn_wrote = self.in_turn = False

    @rule(key=st.sampled_from(KEYS), row=ROWS, unique=st.booleans())
    def write(self, key: Any, row: Item, unique: bool) -> None:
        new = not unique or key not in self.rows
        try:
            if unique:
                assert self.table.insert_unique(key, row) is new
            else:
                self.table.put(key, row)
        except StoreFailedError:
            self.failed()
        else:
            self.turn_wrote = True
            self.rows |= {key: row} if new else {}

    @rule(key=st.sampled_from(KEYS))
    def delete(self, key: Any) -> None:
        try:
            self.table.delete(key)
        except StoreFailedError:
            self.failed()
        else:
            self.turn_wrote = True
            self.rows.pop(key, None)

    @precondition(lambda self: not self.in_turn)
    @rule()
    def begin_turn(self) -> None:
        self.store.begin_turn()
        self.wrote = self.wrote or self.turn_wrote
        self.in_turn, self.turn_wrote = True, False
        self.ended = dict(self.rows)

    @precondition(lambda self: self.in_turn)
    @rule()
    def end_turn(self) -> None:
        self.store.end_turn()
        self.wrote = self.wrote or self.turn_wrote
        self.in_turn, self.turn_wrote = False, False
        self.ended = dict(self.rows)

    @rule()
    def roll_back(self) -> None:
        self.store.roll_back()
        if self.in_turn:
            self.rows, self.in_turn, self.turn_wrote = dict(self.ended), False, False
        else:
            self.everything_is_committed(self.committed)

    @rule()
    def commit(self) -> None:
        self.store.commit()
        self.everything_is_committed(self.rows)
        assert self.store.writable is self.store._transaction._reserve.held

    @rule()
    def open_again(self) -> None:
        self.disk.free()
        self.store.close()
        self.open()
        self.everything_is_committed(self.committed)

    @rule()
    def fill_disk(self) -> None:
        self.disk.fill()

    @rule()
    def free_disk(self) -> None:
        self.disk.free()

    @rule(index=INDEXES, data=st.data(), limit=st.integers(0, 7))
    def scan(self, index: str, data: st.DataObject, limit: int) -> None:
        prefix, up_to = data.draw(prefixes(index))
        above = data.draw(st.sampled_from([None, up_to]))
        want = model_scan(self.rows, index, prefix, limit, above=above)
        assert self.table.scan(index, prefix, limit=limit, above=above) == want
        want = model_scan(self.rows, index, prefix, limit, up_to)
        assert self.table.scan(index, prefix, limit=limit, up_to=up_to) == want
        assert self.table.claim(index, prefix, limit=limit, up_to=up_to) == want
        assert self.table.count(index, prefix) == len(model_scan(self.rows, index, prefix))

    @invariant()
    def rows_are_the_models(self) -> None:
        found = {key: row for key in KEYS if (row := self.table.get(key)) is not None}
        assert found == self.rows


TestAgainstModel = Against.TestCase
TestAgainstModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


# Every kind of indexed field, in the order of the store in memory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.db", synchronous=False)) as store:
        yield store


class TestSqliteTables(DatabaseContract):
    """The suite of databases on it."""

    @pytest.fixture
    def store(self, store: SqliteStore) -> SqliteStore:
        return store


def test_a_search_reads_no_more_rows_than_it_returns(store: SqliteStore) -> None:
    table = store.table(ITEMS)
    for number in range(50):
        table.put(str(number), item("left", number))
    table.scan("shelf", ("left",), limit=3, up_to=40)
    table.count("shelf", ("left",))
    table.scan("order", limit=3)
    assert table._searches
    for sql in table._searches.values():
        plan = store._connection.execute(
            f"EXPLAIN QUERY PLAN {sql}", ("left", 40, 3)[: sql.count("?")]
        )
        assert all("SEARCH" in step[3] or "SCAN" in step[3] for step in plan)
        assert "TEMP B-TREE" not in "".join(step[3] for step in plan), "it is not sorted"


def test_what_can_t_be_an_indexed_value_is_refused(store: SqliteStore) -> None:
    class Tagged(msgspec.Struct, frozen=True):
        tags: tuple[str, ...]

    table = store.table(TableSpec("tagged", Tagged, tags=("tags",)))
    with pytest.raises(TypeError, match="an indexed field holds a tuple; it may be a text"):
        table.put("a", Tagged(("x",)))
    assert table.count("tags") == 0
    with pytest.raises(TypeError, match="an indexed field holds NaN; it may be a text"):
        store.table(KINDS).put("a", Found(number=math.nan))


# Names


@pytest.mark.parametrize("name", ["order", "my notes", 'a"b', "日本", "x.y", "select", "a'b;--"])
def test_a_table_and_an_index_may_have_any_name(tmp_path: Path, name: str) -> None:
    for fields in [("order",), ("order", "note")]:  # the second time it is built anew
        with opened(tmp_path / "store.db") as store:
            table = store.table(TableSpec(name, Item, **{name: fields}))
            table.insert_unique("a", item(None, 2))
            store.commit()
            assert table.scan(name, limit=9) == [item(None, 2)]


@pytest.mark.parametrize("name", ["sqlite_notes", "pullcord_tables", "SQLITE_x"])
def test_names_of_sqlite_and_of_ours_are_refused(store: SqliteStore, name: str) -> None:
    with pytest.raises(ValueError, match=f"a table may not be named {name}"):
        store.table(TableSpec(name, Item))


def test_names_that_differ_by_case_alone_are_refused(store: SqliteStore) -> None:
    class Both(msgspec.Struct, frozen=True):
        at: int
        At: int

    store.table(TableSpec("notes", Item)).put("a", item(None, 1))
    with pytest.raises(ValueError, match="table Notes is notes to SQLite"):
        store.table(TableSpec("Notes", Item)).get("a")
    with pytest.raises(ValueError, match="indexed fields of both differ by case alone: At, at"):
        store.table(TableSpec("both", Both, one=("at",), other=("At",)))


# A table whose definition changes


def opened(path: Path) -> closing[SqliteStore]:
    return closing(SqliteStore(path, synchronous=False))


def written(path: Path) -> None:
    with opened(path) as store:
        table = store.table(ITEMS)
        table.put("a", item("left", 3))
        table.put(("b", "c"), item(None, 1))
        store.commit()


def test_an_index_that_is_new_is_built_from_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    spec = TableSpec("items", Short, colour=("colour", "order"), shelf=("shelf",))
    for _ in range(2):
        with opened(path) as store:
            table = store.table(spec)
            assert table.scan("colour", ("grey",), limit=9) == [Short(1), Short(3, "left")]
            assert table.scan("shelf", limit=9) == [Short(3, "left")]
            assert table.get(("b", "c")) == Short(1)
            store.commit()
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL ORDER BY name"
        assert connection.execute(sql).fetchall() == [("items.colour",), ("items.shelf",)]
        columns = [column[1] for column in connection.execute("PRAGMA table_info(items)")]
        assert columns == ["key", "row", "by_colour", "by_order", "by_shelf"]


def test_building_is_part_of_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    spec = TableSpec("items", Short, colour=("colour",))
    with opened(path) as store:
        table = store.table(spec)
        assert table.count("colour") == 2
        store.roll_back()
        assert table.count("colour") == 2, "it is built again"
        store.roll_back()
    with opened(path) as store:
        assert store.table(ITEMS).scan("order", limit=9) == [item(None, 1), item("left", 3)]
        assert store._transaction._written == [], "and was as before"


CAUSE = (
    r"store\.db: the row \('b', 'c'\) of items is of another version of the program, or damaged:"
    " Expected `str`, got `null`"
)


def test_a_row_that_no_longer_decodes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    with opened(path) as store:
        table = store.table(TableSpec("items", Strict, **ITEMS.indexes))
        assert table.get("a") == Strict("left", 3)
        for read in (lambda: table.get(("b", "c")), lambda: table.scan("order", limit=9)):
            with pytest.raises(UnreadableRowError, match=CAUSE):
                read()
        table.put(("b", "c"), Strict("left", 1))
        store.commit()
        assert table.count("shelf") == 2, "it can be written over"


def test_a_row_that_no_longer_decodes_fails_the_building_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    with opened(path) as store:
        with pytest.raises(UnreadableRowError, match=CAUSE):
            store.table(TableSpec("items", Strict, shelf=("shelf", "order"))).get("a")
        store.roll_back()
    with opened(path) as store:
        assert store.table(ITEMS).count("order") == 2, "nothing of it has changed"


def test_a_row_that_could_never_be_read_is_refused(store: SqliteStore) -> None:
    table = store.table(ITEMS)
    careless: Any = None
    row = item("left", 1, note=careless)
    with pytest.raises(ValueError, match="the row 'a' of items can't be kept: Expected `str`"):
        table.put("a", row)
    with pytest.raises(ValueError, match=r"the row 'a' of items can't be kept: .*surrogates"):
        table.put("a", item("left", 1, "\ud800"))
    assert table.get("a") is None


def test_a_table_that_was_made_in_a_turn_that_is_undone_is_made_again(store: SqliteStore) -> None:
    for name in ("first", "second"):
        store.begin_turn()
        store.table(TableSpec(name, Item)).put("a", item(None, 1))
        store.end_turn()
    store.begin_turn()
    others = store.table(OTHERS)
    others.put("a", item("left", 1))
    store.roll_back()
    assert others.get("a") is None
    others.put("a", item("left", 2))
    store.commit()
    assert others.get("a") == item("left", 2)
    assert store.table(TableSpec("first", Item)).get("a") == item(None, 1)
