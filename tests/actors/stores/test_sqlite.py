"""The store in an SQLite file keeps the store's contract, and what is committed survives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.actors.stores.opened_sqlite import OpenedSqlite
from tests.contracts.store import StoreContract


class TestSqliteStore(StoreContract):
    """The suite on the SQLite store."""

    @pytest.fixture(autouse=True)
    def files(self, tmp_path: Path) -> Iterator[None]:
        self.paths = (tmp_path / f"{number}.db" for number in count())
        self.stores: list[OpenedSqlite] = []
        yield
        for opened in self.stores:
            opened.store.close()

    def open(self) -> OpenedSqlite:
        self.stores.append(OpenedSqlite(next(self.paths)))
        return self.stores[-1]
