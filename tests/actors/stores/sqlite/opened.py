"""A store in an SQLite file in the hands of its host, and a disk that is full when a test says."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.stores.sqlite import SqliteStore
from tests.contracts.store import ITEMS, OTHERS, Snapshot

NO_LIMIT_PAGES = 1 << 30


class OpenedSqlite:
    """A store, with snapshots of the contract's two tables."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, synchronous=False)

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


class Disk:
    """The room that a store has: SQLite itself refuses to use a page more.

    The reserve is a file as ever; giving it back lets the database have some pages again.
    """

    def __init__(self, store: SqliteStore, patch: pytest.MonkeyPatch) -> None:
        self._connection = store._connection
        self._release = store._transaction._reserve.release
        self._take = store._transaction._reserve.take
        self.full = False
        self.reserve_pages = 50
        patch.setattr(store._transaction._reserve, "release", self.release)
        patch.setattr(store._transaction._reserve, "take", self.take)

    def fill(self) -> None:
        """Let there be no page left."""
        self.full = True
        self._limit(0)

    def free(self) -> None:
        """Let there be room again."""
        self.full = False
        self._limit(NO_LIMIT_PAGES)

    def release(self) -> bool:
        released = self._release()
        if released:
            [(count,)] = self._connection.execute("PRAGMA page_count")
            self._limit(count + self.reserve_pages)
        return released

    def take(self) -> bool:
        return not self.full and self._take()

    def _limit(self, pages: int) -> None:
        """Allow so many pages, or those that are in use if they are more."""
        self._connection.execute(f"PRAGMA max_page_count = {max(1, pages)}").fetchall()
