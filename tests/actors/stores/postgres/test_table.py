"""Tables in PostgreSQL keep the store's contract."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from actors.actor import TableSpec
from actors.stores.failures import UnreadableRowError, UnusableStoreError
from actors.stores.postgres import PostgresStore
from tests.actors.stores.opened import OpenedDatabase
from tests.actors.stores.rows import (
    KINDS,
    Anything,
    Found,
    Short,
    Strict,
)
from tests.contracts.database import DatabaseContract
from tests.contracts.store import ITEMS, OTHERS, Item, StoreContract, item
from tests.postgresql import address


class TestPostgresStore(StoreContract):
    """The suite on the PostgreSQL store."""

    @pytest.fixture(autouse=True)
    def stores(self) -> Iterator[None]:
        self.opened_stores: list[OpenedDatabase] = []
        yield
        for opened in self.opened_stores:
            opened.store.close()

    def open(self) -> OpenedDatabase:
        self.opened_stores.append(OpenedDatabase(PostgresStore(address())))
        return self.opened_stores[-1]


# Every kind of indexed field, in the order of the store in memory


@pytest.fixture(scope="module")
def store() -> Iterator[PostgresStore]:
    with closing(PostgresStore(address())) as store:
        yield store


class TestPostgresTables(DatabaseContract):
    """The suite of databases on it."""

    @pytest.fixture
    def store(self, store: PostgresStore) -> PostgresStore:
        store.roll_back()
        return store


def test_every_search_uses_its_index(store: PostgresStore) -> None:
    store.roll_back()
    table = store.table(ITEMS)
    for number in range(50):
        table.put(str(number), item("left", number))
    searches: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        (("left",), {}),
        (("left",), {"<=": 40}),
        (("left",), {"<=": 40, ">": 3}),
        (("left", 3), {}),
    ]
    for prefix, bounds in searches:
        condition, order, values = table._search("shelf", prefix, bounds)
        sql = f"EXPLAIN SELECT key FROM {table._name} WHERE {condition} ORDER BY {order} LIMIT 3"
        plan = "".join(line for (line,) in store._transaction.read(sql, tuple(values)))
        assert 'using "items.shelf"' in plan
        assert "Sort" not in plan


def test_a_row_that_json_would_change_is_kept_as_it_is(store: PostgresStore) -> None:
    table = store.table(TableSpec("anything", Anything))
    table.put("a", Anything(b"\x00\xff"))
    table.put("b", Anything("\x00 and \u2028"))
    assert table.get("a") == Anything(b"\x00\xff")
    assert table.get("b") == Anything("\x00 and \u2028")


def test_what_can_t_be_an_indexed_value_is_refused(store: PostgresStore) -> None:
    class Tagged(msgspec.Struct, frozen=True):
        tags: tuple[str, ...]

    store.roll_back()
    with pytest.raises(TypeError, match="the indexed field tags of Tagged is declared tuple"):
        store.table(TableSpec("tagged", Tagged, tags=("tags",)))
    table = store.table(KINDS)
    with pytest.raises(TypeError, match="an indexed field holds NaN; it may be a text"):
        table.put("a", Found(number=math.nan))
    with pytest.raises(TypeError, match="an indexed field holds a int, which it does not declare"):
        table.count("text", (1,))
    with pytest.raises(ValueError, match="the row 'a' of kinds can't be kept: "):
        table.put("a", Found(text="\ud800"))
    assert table.get("a") is None, "and the turn goes on"


@pytest.mark.parametrize("name", ["order", "my notes", 'a"b', "日本" * 10, "50%", "x.y", "a'b;--"])
def test_a_table_and_an_index_may_have_any_name(name: str) -> None:
    where = address()
    for fields in [("order",), ("order", "note")]:  # the second time it is built anew
        with closing(PostgresStore(where)) as store:
            table = store.table(TableSpec(name, Item, **{name: fields}))
            table.insert_unique("a", item(None, 2))
            store.commit()
            assert table.scan(name, limit=9) == [item(None, 2)]


@pytest.mark.parametrize("name", ["pullcord_x", "x" * 64, "", "a\x00"])
def test_names_that_can_t_be_are_refused(store: PostgresStore, name: str) -> None:
    with pytest.raises(ValueError, match=r"a table may not be named|is no name to PostgreSQL"):
        store.table(TableSpec(name, Item))


# A table whose definition changes


def test_an_index_that_is_new_is_built_from_the_rows() -> None:
    where = address()
    with closing(PostgresStore(where)) as store:
        table = store.table(ITEMS)
        table.put("", item("left", 3))
        table.put(("b", "c"), item(None, 1))
        for number in range(2_500):  # more than are read at once
            table.put(f"n{number}", item("right", number))
        store.commit()
    spec = TableSpec("items", Short, colour=("colour", "order"), shelf=("shelf",))
    for _ in range(2):
        with closing(PostgresStore(where)) as store:
            short = store.table(spec)
            assert short.scan("colour", ("grey",), limit=2) == [Short(0, "right"), Short(1)]
            assert short.count("colour") == 2_502
            assert short.scan("shelf", limit=1) == [Short(3, "left")]


def test_a_process_of_an_older_version_is_told_before_it_writes_a_row() -> None:
    where = address()
    with closing(PostgresStore(where)) as old, closing(PostgresStore(where)) as new:
        table = old.table(ITEMS)
        table.put("a", item("left", 3))
        old.commit()
        new.table(TableSpec("items", Short, colour=("colour",)))
        with pytest.raises(UnusableStoreError, match="has changed the table items; end this proc"):
            table.put("b", item("left", 4))


def test_a_process_of_the_same_version_goes_on() -> None:
    where = address()
    with closing(PostgresStore(where)) as store:
        store.table(ITEMS).put("a", item("left", 3))
        store.commit()
    spec = TableSpec("items", Short, colour=("colour",))
    with closing(PostgresStore(where)) as bystander, closing(PostgresStore(where)) as one:
        others = bystander.table(OTHERS)
        one.table(spec)
        with closing(PostgresStore(where)) as other:
            assert other.table(spec).count("colour") == one.table(spec).count("colour") == 1
        others.put("a", item("left", 1))
        bystander.commit()
        assert others.count("shelf") == 1


def test_a_row_that_no_longer_decodes_is_named() -> None:
    where = address()
    with closing(PostgresStore(where)) as store:
        store.table(ITEMS).put(("b", "c"), item(None, 1))
        store.commit()
    with closing(PostgresStore(where)) as store:
        with pytest.raises(UnreadableRowError, match=r"the row \('b', 'c'\) of items is of anoth"):
            store.table(TableSpec("items", Strict, shelf=("shelf", "order")))
        table = store.table(TableSpec("items", Strict, **ITEMS.indexes))
        with pytest.raises(UnreadableRowError, match=r"the row \('b', 'c'\) of items is of anoth"):
            table.get(("b", "c"))
