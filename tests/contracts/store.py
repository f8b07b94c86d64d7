"""What every store promises an actor and its host: one suite, run on each implementation.

A store's own test subclasses `StoreContract`, says how a store is opened and what its host does at
a turn's end, and may add what is its own:

    class TestMemory(StoreContract):
        def open(self) -> Opened: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import pytest

from actors.actor import Key, Store, Table, TableSpec


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A row with every kind of indexed field: optional, repeated, numbered."""

    shelf: str | None
    order: int
    note: str = ""


ITEMS = TableSpec("items", Item, shelf=("shelf", "order"), order=("order",), note=("note",))
OTHERS = TableSpec("others", Item, shelf=("shelf",))

Snapshot = Mapping[str, Mapping[Key, msgspec.Struct]]


class Opened(Protocol):
    """A store in the hands of its host."""

    @property
    def store(self) -> Store:
        """What the actor sees."""

    def commit(self) -> None:
        """End the turn: what it wrote stays."""

    def roll_back(self) -> None:
        """End the turn: what it wrote never was."""

    def snapshot(self) -> Snapshot:
        """Every table that has rows, as it stands."""

    def restore(self, snapshot: Snapshot) -> None:
        """Be equal to a snapshot."""


def item(shelf: str | None, order: int, note: str = "") -> Item:
    return Item(shelf=shelf, order=order, note=note)


def filled(opened: Opened) -> Table[Item]:
    """A table with five committed rows on two shelves and one on none."""
    table = opened.store.table(ITEMS)
    for key, row in {
        "e": item("left", 3),
        "d": item("left", 1),
        "c": item("right", 2),
        "b": item("left", 1),
        "a": item(None, 0),
    }.items():
        table.put(key, row)
    opened.commit()
    return table


class StoreContract:
    """The suite. Rows are equal in value; whether they are the same object is a store's choice."""

    def open(self) -> Opened:
        """Return an empty store."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self) -> Opened:
        return self.open()

    # Rows by key

    def test_a_row_is_found_under_its_key_alone(self, opened: Opened) -> None:
        table = opened.store.table(ITEMS)
        assert table.get("a") is None
        table.put("a", item("left", 1))
        assert table.get("a") == item("left", 1), "a turn reads what it wrote"
        assert table.get("b") is None
        assert opened.store.table(OTHERS).get("a") is None, "tables are apart"

    def test_put_writes_over(self, opened: Opened) -> None:
        table = filled(opened)
        table.put("e", item("right", 9, "new"))
        assert table.get("e") == item("right", 9, "new")

    def test_a_key_may_be_a_tuple_of_texts(self, opened: Opened) -> None:
        table = opened.store.table(OTHERS)
        table.put(("agent", "key-1"), item("x", 1))
        table.put(("agent", "key-2"), item("x", 2))
        table.put(("agentkey", "-2"), item("x", 3))
        opened.commit()
        assert table.get(("agent", "key-2")) == item("x", 2)
        assert table.get(("agentkey", "-2")) == item("x", 3)
        assert table.count("shelf", ("x",)) == 3

    def test_the_same_table_is_returned_for_the_same_name(self, opened: Opened) -> None:
        filled(opened)
        assert opened.store.table(ITEMS).get("e") == item("left", 3)

    def test_delete_removes_and_may_find_nothing(self, opened: Opened) -> None:
        table = filled(opened)
        table.delete("e")
        table.delete("nobody")
        assert table.get("e") is None
        assert table.scan("shelf", ("left",), limit=9) == [item("left", 1), item("left", 1)]

    def test_insert_unique_never_writes_over(self, opened: Opened) -> None:
        table = filled(opened)
        assert not table.insert_unique("e", item("right", 9))
        assert table.get("e") == item("left", 3)
        assert table.insert_unique("f", item("right", 9))
        assert table.get("f") == item("right", 9)
        table.delete("f")
        assert table.insert_unique("f", item("right", 10)), "a deleted key is free again"

    # Scans

    def test_a_scan_has_the_order_of_fields_then_keys(self, opened: Opened) -> None:
        table = filled(opened)
        rows = table.scan("shelf", ("left",), limit=9)
        assert rows == [item("left", 1), item("left", 1), item("left", 3)]
        table.put("b", item("left", 1, "b"))
        table.put("d", item("left", 1, "d"))
        notes = [row.note for row in table.scan("shelf", ("left",), limit=9)]
        assert notes == ["b", "d", ""], "equal fields come in the order of their keys"

    def test_an_empty_prefix_scans_the_whole_index(self, opened: Opened) -> None:
        table = filled(opened)
        shelves = [row.shelf for row in table.scan("shelf", limit=9)]
        assert shelves == ["left", "left", "left", "right"]

    def test_a_row_without_its_first_field_is_in_no_such_index(self, opened: Opened) -> None:
        table = filled(opened)
        assert item(None, 0) not in table.scan("shelf", limit=9)
        assert table.scan("order", limit=1) == [item(None, 0)]
        table.put("e", item(None, 3))
        assert table.count("shelf", ("left",)) == 2, "a row may leave an index"
        table.put("e", item("left", 3))
        assert table.count("shelf", ("left",)) == 3, "and come back"

    def test_limit_and_up_to(self, opened: Opened) -> None:
        table = filled(opened)
        assert [row.order for row in table.scan("order", limit=3)] == [0, 1, 1]
        assert [row.order for row in table.scan("order", limit=9, up_to=2)] == [0, 1, 1, 2]
        assert [row.order for row in table.scan("order", limit=2, up_to=2)] == [0, 1]
        assert table.scan("order", limit=9, up_to=-1) == []
        assert table.scan("order", limit=0) == []
        left = table.scan("shelf", ("left",), limit=9, up_to=1)
        assert [row.order for row in left] == [1, 1], "up_to holds for the field after the prefix"

    def test_above_goes_on_where_a_listing_ended(self, opened: Opened) -> None:
        table = filled(opened)
        assert [row.order for row in table.scan("order", limit=9, above=1)] == [
            row.order for row in table.scan("order", limit=9) if row.order > 1
        ]
        assert [row.order for row in table.scan("order", limit=9, above=0, up_to=1)] == [1, 1]
        assert table.scan("order", limit=9, above=99) == []
        left = table.scan("shelf", ("left",), limit=9, above=1)
        assert [row.order for row in left] == [3], "above holds for the field after the prefix"
        rest = table.scan("shelf", ("left", 1), limit=9, above="b")
        assert [row.order for row in rest] == [1], "behind the fields comes the key"

    def test_a_scan_is_a_list_of_its_own(self, opened: Opened) -> None:
        table = filled(opened)
        rows = table.scan("shelf", ("left",), limit=9)
        for key in ("b", "d", "e"):
            table.delete(key)
        assert len(rows) == 3, "writing while one goes through a scan changes nothing of it"

    def test_a_scan_sees_the_turn_s_own_writes(self, opened: Opened) -> None:
        table = filled(opened)
        table.put("z", item("left", 0))
        table.delete("b")
        assert [row.order for row in table.scan("shelf", ("left",), limit=9)] == [0, 1, 3]

    def test_claim_is_a_scan_when_nobody_else_holds_a_row(self, opened: Opened) -> None:
        table = filled(opened)
        assert table.claim("shelf", ("left",), limit=2) == table.scan("shelf", ("left",), limit=2)
        assert table.claim("order", limit=9, up_to=1) == table.scan("order", limit=9, up_to=1)

    def test_count_is_a_scan_without_a_limit(self, opened: Opened) -> None:
        table = filled(opened)
        assert table.count("shelf", ("left",)) == 3
        assert table.count("shelf", ("left", 1)) == 2
        assert table.count("shelf", ("none",)) == 0
        assert table.count("shelf") == 4
        assert table.count("order") == 5
        assert opened.store.table(OTHERS).count("shelf", ("left",)) == 0

    def test_prefixes_are_whole_values(self, opened: Opened) -> None:
        table = filled(opened)
        table.put("f", item("left-hand", 1))
        assert table.count("shelf", ("left",)) == 3, "a longer text is another value"
        assert table.scan("shelf", ("lef",), limit=9) == []

    # Turns

    def test_a_rolled_back_turn_never_was(self, opened: Opened) -> None:
        table = filled(opened)
        before = opened.snapshot()
        scans = [table.scan("shelf", limit=9), table.scan("order", limit=9)]
        table.put("e", item("right", 9))
        table.put("e", item(None, 8))
        table.delete("b")
        table.insert_unique("n", item("left", 7))
        table.delete("n")
        table.insert_unique("n", item("left", 6))
        opened.store.table(OTHERS).put("x", item("left", 1))
        opened.roll_back()
        assert opened.snapshot() == before
        assert [table.scan("shelf", limit=9), table.scan("order", limit=9)] == scans
        assert opened.store.table(OTHERS).count("shelf") == 0

    def test_a_committed_turn_stays_when_the_next_is_rolled_back(self, opened: Opened) -> None:
        table = opened.store.table(ITEMS)
        table.put("a", item("left", 1))
        opened.commit()
        table.put("a", item("left", 2))
        opened.roll_back()
        assert table.get("a") == item("left", 1)
        opened.roll_back()
        assert table.get("a") == item("left", 1), "an empty turn rolls nothing back"

    # Snapshots

    def test_a_snapshot_is_not_changed_by_later_writes(self, opened: Opened) -> None:
        table = filled(opened)
        snapshot = opened.snapshot()
        table.put("e", item("right", 9))
        table.delete("a")
        opened.commit()
        assert snapshot["items"]["e"] == item("left", 3)
        assert set(snapshot["items"]) == set("abcde")

    def test_restore_is_as_it_was(self, opened: Opened) -> None:
        table = filled(opened)
        scan = table.scan("shelf", limit=9)
        snapshot = opened.snapshot()
        table.put("e", item("right", 9))
        table.delete("b")
        table.put("n", item("left", 7))
        opened.store.table(OTHERS).put("x", item("left", 1))
        opened.commit()
        opened.restore(snapshot)
        assert opened.store.table(ITEMS).scan("shelf", limit=9) == scan
        assert opened.store.table(OTHERS).count("shelf") == 0, "a table it doesn't name is empty"
        assert opened.snapshot() == snapshot
        opened.roll_back()
        assert opened.snapshot() == snapshot, "a restored store has no open turn"

    def test_a_new_store_can_be_restored(self, opened: Opened) -> None:
        filled(opened)
        fresh = self.open()
        fresh.restore(opened.snapshot())
        assert fresh.snapshot() == opened.snapshot(), "before anybody has opened a table"
        table = fresh.store.table(ITEMS)
        assert table.get("e") == item("left", 3)
        assert table.count("shelf") == 4

    def test_a_new_store_is_writable_and_empty(self, opened: Opened) -> None:
        assert opened.store.writable
        assert opened.snapshot() == {}


# The naive model: a dictionary of rows, a copy of it for each open turn


def model_scan(
    rows: Mapping[str, Item],
    index: str,
    prefix: tuple[Any, ...],
    limit: int | None = None,
    up_to: Any = None,
    above: Any = None,
) -> list[Item]:
    """What a scan must return, found by looking at everything."""
    fields = ITEMS.indexes[index]

    def entry(key: str) -> tuple[Any, ...]:
        return (*(getattr(rows[key], field) for field in fields), key)

    indexed = [key for key, row in rows.items() if getattr(row, fields[0]) is not None]
    keys = sorted(indexed, key=entry)
    found = [
        rows[key]
        for key in keys
        if entry(key)[: len(prefix)] == prefix
        and (up_to is None or entry(key)[len(prefix)] <= up_to)
        and (above is None or entry(key)[len(prefix)] > above)
    ]
    return found if limit is None else found[:limit]
