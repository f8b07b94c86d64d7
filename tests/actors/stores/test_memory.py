"""The store in memory keeps the store's contract, and a naive model agrees with it."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.stores.memory import CATCH_UP, roll_back
from tests.actors.stores.opened import OpenedMemory
from tests.contracts.store import ITEMS, OTHERS, Item, Snapshot, StoreContract, item, model_scan


class TestMemoryStore(StoreContract):
    """The suite on the memory store."""

    def open(self) -> OpenedMemory:
        return OpenedMemory()


def test_reset_forgets_everything_and_the_store_goes_on_as_new() -> None:
    opened = OpenedMemory()
    table = opened.store.table(ITEMS)
    table.put("a", item("left", 1))
    table.put("b", item("left", 2))
    assert table.count("shelf", ("left",)) == 2
    opened.commit()
    opened.store.writable = False
    opened.store.reset()
    assert opened.snapshot() == {}
    assert opened.store.writable
    assert table.scan("shelf", limit=9) == []
    table.put("a", item("right", 3))
    assert table.scan("shelf", limit=9) == [item("right", 3)], "no entry of before is left"
    assert opened.store.table(ITEMS) is table


def test_the_tables_that_were_opened_are_known_by_name() -> None:
    opened = OpenedMemory()
    assert dict(opened.store.tables) == {}
    table = opened.store.table(ITEMS)
    assert opened.store.tables[ITEMS.name] is table


def test_reset_forgets_a_table_that_became_empty_by_deletion() -> None:
    opened = OpenedMemory()
    table = opened.store.table(ITEMS)
    table.put("a", item("left", 1))
    assert table.count("shelf") == 1
    table.delete("a")
    opened.commit()
    opened.store.reset()
    table.put("b", item("left", 5))
    assert table.scan("shelf", limit=9) == [item("left", 5)]
    assert table.count("order") == 1


def test_an_index_that_nobody_scans_catches_up_however_late() -> None:
    opened = OpenedMemory()
    table = opened.store.table(ITEMS)
    for number in range(2 * CATCH_UP + 7):
        table.put(str(number % 40), item("left", number))
        if number % 3 == 0:
            assert table.scan("order", limit=1)[0].order == max(0, number - 39)
    table.put("1", item(None, 1))
    assert table.count("shelf", ("left",)) == 39
    assert table.scan("order", limit=1) == [item(None, 1)]


SHELVES = st.sampled_from(["left", "right", None])
ROWS = st.builds(item, SHELVES, st.integers(0, 3), st.sampled_from(["", "x"]))
KEYS = st.sampled_from("abcdef")
INDEXES = st.sampled_from(sorted(ITEMS.indexes))


class Against(RuleBasedStateMachine):
    """The memory store beside a dictionary, through turns that commit or don't, and snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = OpenedMemory()
        self.table = self.opened.store.table(ITEMS)
        self.rows: dict[str, Item] = {}
        self.committed: dict[str, Item] = {}
        self.snapshots: list[tuple[Snapshot, dict[str, Item]]] = []

    @rule(key=KEYS, row=ROWS)
    def put(self, key: str, row: Item) -> None:
        self.table.put(key, row)
        self.rows[key] = row

    @rule(key=KEYS, row=ROWS)
    def insert_unique(self, key: str, row: Item) -> None:
        new = key not in self.rows
        assert self.table.insert_unique(key, row) is new
        if new:
            self.rows[key] = row

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        self.table.delete(key)
        self.rows.pop(key, None)

    @rule(count=st.integers(CATCH_UP - 2, CATCH_UP + 2), key=KEYS, row=ROWS)
    def put_again_and_again(self, count: int, key: str, row: Item) -> None:
        for number in range(count):
            self.table.put(key, item(row.shelf, number))
        self.table.put(key, row)
        self.rows[key] = row

    @rule(index=INDEXES, data=st.data(), limit=st.integers(0, 7))
    def scan(self, index: str, data: st.DataObject, limit: int) -> None:
        prefix, up_to = data.draw(prefixes(index))
        above = data.draw(st.sampled_from([None, up_to]))
        want = model_scan(self.rows, index, prefix, limit, above=above)
        assert self.table.scan(index, prefix, limit=limit, above=above) == want
        want = model_scan(self.rows, index, prefix, limit, up_to)
        assert self.table.scan(index, prefix, limit=limit, up_to=up_to) == want
        assert self.table.claim(index, prefix, limit=limit, up_to=up_to) == want

    @rule(index=INDEXES, data=st.data())
    def count(self, index: str, data: st.DataObject) -> None:
        prefix, _ = data.draw(prefixes(index))
        assert self.table.count(index, prefix) == len(model_scan(self.rows, index, prefix))

    @rule()
    def commit(self) -> None:
        self.opened.commit()
        self.committed = dict(self.rows)

    @rule()
    def roll_back(self) -> None:
        self.opened.roll_back()
        self.rows = dict(self.committed)

    @rule()
    def snapshot(self) -> None:
        self.commit()
        self.snapshots.append((self.opened.store.snapshot(), dict(self.rows)))

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        self.commit()  # a host restores between two turns
        if self.snapshots:
            snapshot, rows = data.draw(st.sampled_from(self.snapshots))
            self.opened.restore(snapshot)
            self.rows, self.committed = dict(rows), dict(rows)

    @rule()
    def reset(self) -> None:
        self.opened.commit()
        self.opened.store.reset()
        self.rows, self.committed = {}, {}

    @invariant()
    def rows_are_the_models(self) -> None:
        assert {key: self.table.get(key) for key in "abcdef"} == {
            key: self.rows.get(key) for key in "abcdef"
        }


@st.composite
def prefixes(draw: st.DrawFn, index: str) -> tuple[tuple[Any, ...], Any]:
    """A prefix of an index's fields, whole or not, and a bound on the field behind it."""
    values: dict[str, st.SearchStrategy[Any]] = {
        "shelf": st.sampled_from(["left", "right"]),
        "order": st.integers(0, 3),
        "note": st.sampled_from(["", "x"]),
    }
    fields = ITEMS.indexes[index]
    length = draw(st.integers(0, len(fields)))
    prefix = tuple(draw(values[field]) for field in fields[:length])
    bound = draw(st.none() | values[fields[length]]) if length < len(fields) else None
    return prefix, bound


TestAgainstModel = Against.TestCase
TestAgainstModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_the_rows_of_two_tables_share_one_journal() -> None:
    opened = OpenedMemory()
    first, second = opened.store.table(ITEMS), opened.store.table(OTHERS)
    first.put("a", item("left", 1))
    second.put("a", item("right", 1))
    roll_back(opened.journal)
    assert (first.get("a"), second.get("a"), opened.journal) == (None, None, [])
