"""A disk that is full when a test says."""

from __future__ import annotations

import pytest

from actors.stores.sqlite import SqliteStore

NO_LIMIT_PAGES = 1 << 30


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
