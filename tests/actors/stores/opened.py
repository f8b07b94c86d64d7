"""Stores in the hands of their hosts."""

from __future__ import annotations

from typing import Any

from actors.stores.memory import MemoryStore, Undo, roll_back
from tests.contracts.store import ITEMS, OTHERS, Snapshot


class OpenedMemory:
    """A memory store with the undo journal that its host keeps."""

    def __init__(self) -> None:
        self.journal: list[Undo] = []
        self.store = MemoryStore(self.journal)

    def commit(self) -> None:
        self.journal.clear()

    def roll_back(self) -> None:
        roll_back(self.journal)

    def snapshot(self) -> Snapshot:
        return {name: table for name, table in self.store.snapshot().items() if table}

    def restore(self, snapshot: Snapshot) -> None:
        self.store.restore({name: dict(table) for name, table in snapshot.items()})


class OpenedDatabase:
    """A store in a database, with snapshots of the contract's two tables."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def commit(self) -> None:
        self.store.commit()

    def roll_back(self) -> None:
        self.store.roll_back()

    def snapshot(self) -> Snapshot:
        for spec in (ITEMS, OTHERS):
            self.store.table(spec)
        return self.store.snapshot()  # type: ignore[no-any-return]  # of any database

    def restore(self, snapshot: Snapshot) -> None:
        for spec in (ITEMS, OTHERS):
            table = self.store.table(spec)
            for key in self.snapshot().get(spec.name, {}):
                table.delete(key)
            for key, row in snapshot.get(spec.name, {}).items():
                assert isinstance(row, spec.row)
                table.put(key, row)
        self.commit()
