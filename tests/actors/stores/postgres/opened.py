"""A store in PostgreSQL in the hands of its host."""

from __future__ import annotations

from actors.stores.postgres import PostgresStore
from tests.contracts.store import ITEMS, OTHERS, Snapshot


class OpenedPostgres:
    """A store, with snapshots of the contract's two tables."""

    def __init__(self, address: str) -> None:
        self.store = PostgresStore(address)

    def commit(self) -> None:
        self.store.commit()

    def roll_back(self) -> None:
        self.store.roll_back()

    def snapshot(self) -> Snapshot:
        for spec in (ITEMS, OTHERS):
            self.store.table(spec)
        return self.store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        for spec in (ITEMS, OTHERS):
            table = self.store.table(spec)
            for key in self.snapshot().get(spec.name, {}):
                table.delete(key)
            for key, row in snapshot.get(spec.name, {}).items():
                assert isinstance(row, spec.row)
                table.put(key, row)
        self.commit()
