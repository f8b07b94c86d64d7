"""The store of an actor in a process of its own: on disk, so that it survives a SIGKILL."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from actors.actor import Key, Row, TableSpec
from actors.stores.rows import RowCodec, read_key
from actors.stores.sqlite import SqliteStore
from actors.stores.sqlite.table import SqliteTable, quoted


class Used(msgspec.Struct, frozen=True):
    """How many ids the actor had made by its last commit: none may be made twice."""

    ids: int


_USED = TableSpec("used by the process", Used)  # a name that no actor gives
_KEY = "actor"


class DurableStore(SqliteStore):
    """An SQLite store that can tell all that it holds, as the one in memory can.

    It survives the process and not the machine: nobody looks at it after the replication.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, synchronous=False)
        self._specs: dict[str, TableSpec[Any]] = {}
        self._used = super().table(_USED)
        used = self._used.get(_KEY)
        self.ids = 0 if used is None else used.ids

    @property
    def wrote(self) -> bool:
        """Whether anything was written since the last commit."""
        return self._connection.in_transaction

    def table(self, spec: TableSpec[Row]) -> SqliteTable[Row]:
        """Return the table, made empty if it is new."""
        self._specs[spec.name] = spec
        return super().table(spec)

    def commit_with(self, ids: int) -> None:
        """Commit, and with it how many ids were made; StoreFailedError, and then none of it was."""
        if ids != self.ids:
            self._used.put(_KEY, Used(ids))
        self.commit()
        self.ids = ids

    def reset(self) -> None:
        """Keep everything: a new boot goes on with it, and each replication has its own file."""

    def snapshot(self) -> dict[str, dict[Key, msgspec.Struct]]:
        """Return every table that has committed rows, of those that were asked for."""
        tables = {}
        with closing(sqlite3.connect(self.path)) as connection:
            known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            for name, spec in sorted(self._specs.items()):
                if name not in known:
                    continue
                codec = RowCodec(spec.row)
                rows = connection.execute(f"SELECT key, row FROM {quoted(name)}")  # noqa: S608  the name is quoted
                found = {read_key(key): codec.decode(row) for key, row in rows}
                if found:
                    tables[name] = found
        return tables
