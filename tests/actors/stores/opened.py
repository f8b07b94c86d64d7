"""A memory store in the hands of its host."""

from __future__ import annotations

from actors.stores.memory import MemoryStore, Undo, roll_back
from tests.contracts.store import Snapshot


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
