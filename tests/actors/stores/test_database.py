"""A store in a database hands its turns to its transaction, and may be forbidden to be written."""

from __future__ import annotations

from typing import Any

from actors.stores.database import DatabaseStore


class Recorded:
    """A transaction that notes what it is asked for."""

    writable = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda: self.asked.append(name)


class Few:
    def __init__(self, rows: dict[str, str]) -> None:
        self._rows = rows

    def rows(self) -> dict[str, str]:
        return self._rows


class Store(DatabaseStore):
    def __init__(self) -> None:
        self._transaction = self.recorded = Recorded()
        self._tables = {"b": Few({"k": "v"}), "a": Few({"k": "w"}), "none": Few({})}


def test_turns_are_the_transaction_s() -> None:
    store = Store()
    store.begin_turn()
    store.end_turn()
    store.roll_back()
    store.commit()
    assert store.recorded.asked == ["begin_turn", "end_turn", "roll_back", "commit"]


def test_it_is_writable_if_its_database_and_its_host_say_so() -> None:
    store = Store()
    assert store.writable
    store.writable = False
    assert not store.writable
    store.writable = True
    store.recorded.writable = False
    assert not store.writable


def test_a_snapshot_has_the_tables_that_have_rows_by_name() -> None:
    found: Any = Store().snapshot()
    assert list(found.items()) == [("a", {"k": "w"}), ("b", {"k": "v"})]
