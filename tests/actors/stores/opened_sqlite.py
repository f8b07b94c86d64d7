"""A store in an SQLite file in the hands of its host."""

from __future__ import annotations

from pathlib import Path

from actors.stores.sqlite import SqliteStore
from actors.stores.sqlite.rows import read_key
from tests.contracts.store import ITEMS, OTHERS, Snapshot


class OpenedSqlite:
    """A store, with snapshots of the contract's two tables."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, synchronous=False)

    def commit(self) -> None:
        self.store.commit()

    def roll_back(self) -> None:
        self.store.roll_back()

    def snapshot(self) -> Snapshot:
        tables = {}
        for spec in (ITEMS, OTHERS):
            table = self.store.table(spec)
            table.get("")  # makes it, if it is new
            found = self.store._transaction.read(
                f"SELECT key, row FROM {spec.name}"  # noqa: S608  the contract's own name
            )
            tables[spec.name] = {read_key(key): table._decode(key, row) for key, row in found}
        return {name: rows for name, rows in tables.items() if rows}

    def restore(self, snapshot: Snapshot) -> None:
        for spec in (ITEMS, OTHERS):
            table = self.store.table(spec)
            for key in self.snapshot().get(spec.name, {}):
                table.delete(key)
            for key, row in snapshot.get(spec.name, {}).items():
                assert isinstance(row, spec.row)
                table.put(key, row)
        self.commit()
