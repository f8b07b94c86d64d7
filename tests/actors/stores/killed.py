"""Stores whose process is killed as it stands, whose connection is cut, and which go on."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from actors.stores.database import DatabaseStore
from actors.stores.memory import MemoryStore, Undo, roll_back
from actors.stores.postgres import PostgresStore
from actors.stores.sqlite import SqliteStore
from tests.postgresql import address, connect


class KilledMemory:
    """A store in memory: what a turn has not committed is in its journal."""

    groups = fails = False

    def __init__(self) -> None:
        self.journal: list[Undo] = []
        self.store = MemoryStore(self.journal)

    def begin_turn(self) -> None:
        raise AssertionError("its turns share nothing")

    end_turn = begin_turn

    def roll_back(self) -> None:
        roll_back(self.journal)

    @property
    def has_to_commit(self) -> bool:
        return bool(self.journal)

    def commit(self) -> None:
        self.journal.clear()

    def kill(self) -> None:
        self.roll_back()
        rows = self.store.snapshot()
        self.store = MemoryStore(self.journal)
        self.store.restore(rows)

    def fail(self) -> bool:
        return False

    def close(self) -> None:
        self.journal.clear()


class KilledDatabase:
    """A store in a database."""

    store: DatabaseStore

    def begin_turn(self) -> None:
        self.store.begin_turn()

    def end_turn(self) -> None:
        self.store.end_turn()

    def roll_back(self) -> None:
        self.store.roll_back()

    @property
    def has_to_commit(self) -> bool:
        return self.store.has_to_commit

    def commit(self) -> None:
        self.store.commit()


class KilledSqlite(KilledDatabase):
    """A store in a file. A killed process leaves its files as they are: here, a copy of them."""

    groups, fails = True, False
    store: SqliteStore

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.boots = 0
        self.store = self.opened()

    def opened(self) -> SqliteStore:
        return SqliteStore(self.folder / f"{self.boots}.db", synchronous=False)

    def kill(self) -> None:
        old, self.boots = self.folder / f"{self.boots}.db", self.boots + 1
        for end in ("", "-wal"):
            here = old.with_name(old.name + end)
            if here.exists():
                shutil.copy(here, self.folder / f"{self.boots}.db{end}")
        self.store.close()
        self.store = self.opened()

    def fail(self) -> bool:
        return False

    def close(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


class KilledPostgres(KilledDatabase):
    """A store in a database. A killed process is a connection that ends in the middle."""

    groups, fails = True, True
    store: PostgresStore

    def __init__(self) -> None:
        self.address = address()
        self.store = PostgresStore(self.address)

    def kill(self) -> None:
        self.store.close()
        self.store = PostgresStore(self.address)

    def fail(self) -> bool:
        """Have somebody end the connection; without a transaction nobody would notice."""
        transaction = self.store._transaction
        if not transaction._begun:
            return False
        assert transaction._connection is not None
        with connect() as other:
            pid = transaction._connection.info.backend_pid
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        return True

    def close(self) -> None:
        self.store.close()
        with connect() as other:
            other.execute(f"DROP SCHEMA {self.store._address.schema} CASCADE")
