"""One connection's open transaction: the turns in it, how it ends, and how it fails.

SQLite may roll a whole transaction back when a statement fails, the turns before it included, and
always does when a commit fails. So what was written is kept until it is committed: a full disk is
tried again from the start once the reserve is given back, and after any other failure nothing of
the transaction counts, whatever the host does with its last turn.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from actors.stores.failures import DamagedStoreError, StoreError, StoreFailedError
from actors.stores.sqlite.reserve import Reserve

Statement = tuple[str, tuple[Any, ...]]

# What SQLite says when there is no room: a quota and a disk that finds out late are not "full".
_MAYBE_FULL = frozenset(
    (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_CANTOPEN,
    )
)
# The last is for statements that don't fit the tables, and ours fit those that we have made.
_DAMAGE = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR))
_WORDS = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "the file or its folder may not be written",
    sqlite3.SQLITE_CANTOPEN: "the file or its folder can't be opened",
    sqlite3.SQLITE_BUSY: "another program is writing to the file, the sqlite3 command perhaps",
    sqlite3.SQLITE_LOCKED: "another program is writing to the file, the sqlite3 command perhaps",
    sqlite3.SQLITE_IOERR: "the disk can't be read or written",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_TOOBIG: "a row is larger than SQLite allows",
}
_PRIMARY = 0xFF  # the bits of a code that tell the kind of error; those above tell more


# What a statement may raise. The second is for a message of SQLite's with a damaged name in it.
SqliteError = sqlite3.Error | UnicodeDecodeError
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def code_of(error: SqliteError) -> int:
    """Return SQLite's extended code; 0 for an error that is the module's."""
    return getattr(error, "sqlite_errorcode", 0)


def may_be_full(error: SqliteError) -> bool:
    """Whether room on the disk may be what is missing."""
    return code_of(error) in _MAYBE_FULL


def in_words(path: Path, error: SqliteError) -> StoreError:
    """Return what SQLite says as a StoreFailedError, or a DamagedStoreError.

    Raises the error itself if it is a bug of ours.
    """
    primary = code_of(error) & _PRIMARY
    name = getattr(error, "sqlite_errorname", "")
    if primary in _DAMAGE:
        sentence = f"the file is damaged, or changed by another program ({name}: {error})"
        return DamagedStoreError(path, sentence)
    if primary:
        return StoreFailedError(path, f"{_WORDS.get(primary, 'SQLite refused')} ({name}: {error})")
    if isinstance(error, sqlite3.OperationalError | UnicodeDecodeError):
        return DamagedStoreError(path, "the file is damaged: a text in it is no Unicode")
    raise error


class Transaction:
    """What a store's tables read and write through. `writable` is False while writing fails."""

    def __init__(self, connection: sqlite3.Connection, path: Path, reserve: Reserve) -> None:
        self._connection = connection
        self.path = path
        self._reserve = reserve
        self._written: list[Statement] = []  # since the last commit, to be done again
        self._undone: list[tuple[int, Callable[[], None]]] = []
        self._turn: int | None = None  # where the turn begins in what was written
        self._saved = False  # whether the turn has written, and so has a savepoint
        self._failed: StoreError | None = None
        self.writable = reserve.take() and self._can_write()

    @property
    def wrote(self) -> bool:
        """Whether anything waits for a commit."""
        return bool(self._written)

    # Reading and writing

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows that a query finds. Raises StoreError."""
        if self._failed is not None:
            raise self._failed
        try:
            return self._connection.execute(sql, values).fetchall()
        except SQLITE_ERRORS as error:
            raise self._fail(error) from error

    def write(self, sql: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed. Raises StoreError."""
        if self._failed is not None:
            raise self._failed
        statement = (sql, values)
        try:
            count = self._run(statement)
        except SQLITE_ERRORS as error:
            if not (may_be_full(error) and self._reserve.release()):
                raise self._fail(error) from error
            try:
                self._write_again()
                count = self._run(statement)
            except SQLITE_ERRORS as still:
                raise self._fail(still) from still
        self._written.append(statement)
        return count

    def define(self, name: str, function: Callable[..., Any]) -> None:
        """Let statements call a function by this name, with however many values."""
        self._connection.create_function(name, -1, function, deterministic=True)

    def when_undone(self, call: Callable[[], None]) -> None:
        """Call this if what is written next is undone."""
        self._undone.append((len(self._written), call))

    def _run(self, statement: Statement) -> int:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")
        if self._turn is not None and not self._saved:
            self._connection.execute("SAVEPOINT turn")
            self._saved = True
        return self._connection.execute(*statement).rowcount

    def _write_again(self) -> None:
        """Begin anew, and do all that was done since the last commit."""
        self._drop()
        turn, self._turn, self._saved = self._turn, None, False
        for at, statement in enumerate(self._written):
            if at == turn:
                self._turn = turn
            self._run(statement)
        self._turn = turn

    def _drop(self) -> None:
        """Roll back all that is not committed, unless SQLite has done so."""
        with suppress(*SQLITE_ERRORS):  # it ends the transaction in any case
            self._connection.execute("ROLLBACK")

    def _fail(self, error: SqliteError) -> StoreError:
        """Give the whole transaction up; return why."""
        failed = in_words(self.path, error)
        self._drop()
        self._failed = failed
        self.writable = False
        return failed

    # Turns

    def begin_turn(self) -> None:
        """Begin a turn that may be rolled back by itself."""
        assert self._turn is None, "turns don't nest"
        self._turn, self._saved = len(self._written), False

    def end_turn(self) -> None:
        """End the turn; what it wrote waits for the commit."""
        if self._saved and self._failed is None:
            self._close_savepoint("RELEASE turn")
        self._turn, self._saved = None, False

    def roll_back(self) -> None:
        """Undo the open turn, or without one all that was written since the last commit."""
        mark = self._turn or 0
        if self._failed is None and mark == 0:
            self._drop()
        elif self._failed is None and self._saved:
            self._close_savepoint("ROLLBACK TO turn", "RELEASE turn")
        self._turn, self._saved = None, False
        self._forget(mark)
        if mark == 0:
            self._failed = None

    def _close_savepoint(self, *statements: str) -> None:
        """End the turn in SQLite too; a disk that fails at it is told at the commit."""
        try:
            for sql in statements:
                self._connection.execute(sql)
        except SQLITE_ERRORS as error:
            self._fail(error)

    @property
    def has_to_commit(self) -> bool:
        """False if a commit has nothing to do: to write, to tell or to mend."""
        sound = self._failed is None and self.writable and self._reserve.held
        return not sound or self._connection.in_transaction

    def commit(self) -> None:
        """Make what was written durable. Raises StoreError, and then none of it ever was."""
        self._turn, self._saved = None, False
        if self._failed is None and self._connection.in_transaction:
            self._commit()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._forget(0)
            raise failed
        wrote = bool(self._written)
        self._written.clear()
        self._undone.clear()
        if not (self.writable and self._reserve.held):
            self.writable = self._reserve.take() and (wrote or self._can_write())

    def _commit(self) -> None:
        """Commit, and once more with the reserve given back if the disk is full."""
        try:
            self._connection.execute("COMMIT")
        except SQLITE_ERRORS as error:
            if not (may_be_full(error) and self._reserve.release()):
                self._fail(error)
                return
            try:
                self._write_again()
                self._connection.execute("COMMIT")
            except SQLITE_ERRORS as still:
                self._fail(still)

    def _can_write(self) -> bool:
        """Whether a commit succeeds, tried with one that changes nothing."""
        try:
            [(version,)] = self._connection.execute("PRAGMA user_version")
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(f"PRAGMA user_version = {version}")
            self._connection.execute("COMMIT")
        except SQLITE_ERRORS:
            self._drop()
            return False
        return True

    def _forget(self, mark: int) -> None:
        """Forget what was written from here on; what became of it is told, the last first."""
        del self._written[mark:]
        while self._undone and self._undone[-1][0] >= mark:
            self._undone.pop()[1]()
