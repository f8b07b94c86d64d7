"""The store of a deployed actor: one SQLite file, which survives a kill at any moment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from actors.actor import Key, Row, TableSpec
from actors.stores.database import DatabaseStore
from actors.stores.failures import DamagedStoreError, StoreError, UnusableStoreError
from actors.stores.rows import read_key
from actors.stores.sqlite.lock import Lock
from actors.stores.sqlite.reserve import Reserve
from actors.stores.sqlite.table import DEFINITIONS, SqliteTable, quoted
from actors.stores.sqlite.transaction import SQLITE_ERRORS, Transaction, in_words, may_be_full

APPLICATION_ID = 0x70756C6C  # "pull", in a file's header: `file` and SQLite show it

# What turns a database of version n into one of version n + 1, from an empty file on. Once they
# have been released, steps are only added.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (f"CREATE TABLE {DEFINITIONS} (name TEXT PRIMARY KEY NOT NULL, indexes TEXT NOT NULL)",),
)

STATEMENTS_KEPT = 512  # more than a server's tables and searches have, so each is parsed once
LOG_LIMIT_BYTES = 16 << 20  # the log is cut back to this once it is copied; 4 MiB is usual
DUMP_ROWS = 256  # read at once: a row has up to 600,000 characters
BUSY_TIMEOUT_S = 5.0  # how long another program, the sqlite3 command say, may hold a write lock


class Latest(msgspec.Struct, frozen=True):
    """How late it was, by the wall, when something was committed last."""

    stamp_us: int


CLOCK = TableSpec("clock", Latest)  # its host's, and no table of an actor's
LATEST = "latest"


class SqliteStore(DatabaseStore):
    """Tables in the file `path`, which is made if there is none; its folder must exist.

    One process at a time, one turn at a time, whichever thread runs it. A commit is on the disk
    when it returns; without `synchronous` it survives the process, though not the machine.

    Raises UnusableStoreError if the file is in use, of a newer version, not a store of ours, or
    out of reach, and DamagedStoreError if it is damaged. After a write that failed it is writable
    again once a commit has succeeded and its reserve is there.
    """

    _transaction: Transaction

    def __init__(self, path: Path, *, synchronous: bool = True) -> None:
        self.path = path.resolve()
        self._tables: dict[str, SqliteTable[Any]] = {}
        self._lock = Lock(self.path)
        reserve = Reserve(self.path)
        try:
            self._connection = _opened_with(reserve, self.path, synchronous)
        except BaseException:
            self._lock.release()
            raise
        self._transaction = Transaction(self._connection, self.path, reserve)
        self._clock = SqliteTable(CLOCK, self._transaction)  # in no snapshot
        self._latest_us: Callable[[], int] | None = None

    def table(self, spec: TableSpec[Row]) -> SqliteTable[Row]:
        """Return the table, made empty if it is new."""
        try:
            return self._tables[spec.name]
        except KeyError:
            table = self._tables[spec.name] = SqliteTable(spec, self._transaction)
            return table

    def dump(self) -> Iterator[tuple[str, list[tuple[Key, str | bytes]]]]:
        """Yield all rows as they are kept, JSON or msgpack, with their table's name, in parts.

        Also those of tables that nobody has opened, but not what is its host's. Raises StoreError.
        """
        names = self._transaction.read(f"SELECT name FROM {DEFINITIONS} ORDER BY name")  # noqa: S608  our own
        for name in [name for (name,) in names if name != CLOCK.name]:
            table, last, above = quoted(name), "", ">="  # no key is below the empty text
            while above:
                sql = f"SELECT key, row FROM {table} WHERE key {above} ? ORDER BY key LIMIT ?"  # noqa: S608  quoted
                found = self._transaction.read(sql, (last, DUMP_ROWS))
                if found:
                    yield name, [(read_key(key), data) for key, data in found]
                    last = found[-1][0]
                above = ">" if len(found) == DUMP_ROWS else ""

    def keep_stamps(self, latest_us: Callable[[], int]) -> int:
        """Keep with each commit what this tells; return what was kept last, 0 for nothing.

        A host whose clock was set back meanwhile goes on from there. Raises StoreError.
        """
        self._latest_us = latest_us
        kept = self._clock.get(LATEST)
        return 0 if kept is None else kept.stamp_us

    def commit(self) -> None:
        """Make what was written durable, and with it how late it is; as `DatabaseStore` says."""
        if self._latest_us is not None and self._transaction.wrote:
            with suppress(StoreError):  # the commit tells it, and why
                self._clock.put(LATEST, Latest(self._latest_us()))
        super().commit()

    def close(self) -> None:
        """Forget what is not committed, and let others open the file."""
        self._connection.close()
        self._lock.release()


def _opened_with(reserve: Reserve, path: Path, synchronous: bool) -> sqlite3.Connection:
    """Return a connection, opened with the reserve given back if need be. Raises StoreError."""
    try:
        try:
            return _opened(path, synchronous)
        except SQLITE_ERRORS as error:
            if not (may_be_full(error) and reserve.release()):
                raise
            return _opened(path, synchronous)
    except SQLITE_ERRORS as error:
        told = in_words(path, error)
        if isinstance(told, DamagedStoreError):
            raise told from error
        raise UnusableStoreError(path, told.sentence) from error


def _opened(path: Path, synchronous: bool) -> sqlite3.Connection:
    """Return a connection to a sound database of the present version. Raises sqlite3.Error."""
    wal = path.with_name(f"{path.name}-wal")
    if _holds_something(wal) and not _holds_something(path):  # SQLite would remove the log
        raise DamagedStoreError(path, f"the file is gone, but what was committed last is in {wal}")
    try:  # SQLite would be content to read, and would let others read too
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise UnusableStoreError(path, f"can't be written: {error.strerror}") from error
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,  # nothing begins or commits by itself
        check_same_thread=False,
        cached_statements=STATEMENTS_KEPT,
    )
    try:
        check(connection, path)
        _set_up(connection, path, synchronous)
        _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _set_up(connection: sqlite3.Connection, path: Path, synchronous: bool) -> None:
    """Choose how commits reach the disk. Raises UnusableStoreError where a log can't be kept."""
    [(mode,)] = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise UnusableStoreError(path, "this file system can't hold it; use a local disk")
    connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous else 'NORMAL'}")
    connection.execute(f"PRAGMA fullfsync = {int(synchronous)}")  # macOS: to the medium
    connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}")
    connection.execute("PRAGMA temp_store = MEMORY")  # a full /tmp fails no turn


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError for a file that is not ours, too new, or damaged."""
    [(application,)] = connection.execute("PRAGMA application_id")
    [(version,)] = connection.execute("PRAGMA user_version")
    [(objects,)] = connection.execute("SELECT count(*) FROM sqlite_master")
    if application != APPLICATION_ID and (application or version or objects):
        raise UnusableStoreError(path, "this is some other program's database; name another file")
    if version > len(MIGRATIONS):
        raise UnusableStoreError(
            path,
            f"a newer pullcord wrote it, in version {version} of its form, and this one reads up"
            f" to {len(MIGRATIONS)}; update pullcord, or name another file",
        )
    [(verdict,)] = connection.execute("PRAGMA quick_check(1)")
    if verdict != "ok":
        raise DamagedStoreError(path, f"the file is damaged: {verdict}")


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the present version, all of it or nothing."""
    [(version,)] = connection.execute("PRAGMA user_version")
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def set_aside(path: Path) -> Path:
    """Rename a database and what belongs to it, never over another, and return its new name.

    Raises UnusableStoreError if somebody has it open, there is none, or it can't be renamed.
    """
    path = path.resolve()
    lock = Lock(path)
    try:
        names = (path.with_name(f"{path.name}.{number}") for number in count(1))
        aside = next(new for new in names if not any(map(Path.exists, _files(new))))
        present = [
            both for both in zip(_files(path), _files(aside), strict=True) if both[0].exists()
        ]
        for old, new in present:
            old.rename(new)
    except OSError as error:
        raise UnusableStoreError(path, f"can't be set aside: {error.strerror}") from error
    finally:
        lock.release()
    if not present:
        raise UnusableStoreError(path, "there is nothing to set aside")
    return aside


def _files(path: Path) -> list[Path]:
    """Return a database's files, itself first: what is left behind is never taken for whole."""
    return [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]
