"""One store's open transaction: the turns in it, how it begins and ends, how it fails.

Transactions are serializable: what turns read and wrote is as if all processes had taken theirs one
after another, or it is a conflict and never was. What begins a transaction, and what parts its
turns, travels together with the next statement, so a turn waits for the database no oftener.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from actors.stores.failures import (
    DamagedStoreError,
    StoreConflictError,
    StoreError,
    StoreFailedError,
    UnusableStoreError,
)
from actors.stores.postgres.errors import in_words
from actors.stores.postgres.schema import Connection, Schema

STATEMENTS_KEPT = 512  # more than a server's tables and searches have, so each is parsed once
PAUSES_S = (0.1, 5.0)  # between two tries to connect: at first, and at most
CLOCK_LEAD_US = 1_000_000  # how far the mark is set ahead: one write a second, not one a turn

# Small tables would be read from end to end, which conflicts with whoever writes any row of them.
_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",  # whose rows would have to be sorted, all of them
    "lock_timeout": "10s",  # another process's turns take milliseconds
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",  # a process that stands still lets others go on
}


class Transaction:
    """What a store's tables read and write through. `writable` is False while writing fails."""

    def __init__(self, connect: Callable[[], Connection], schema: Schema) -> None:
        self.place = schema.place
        self._connect = connect
        self._schema = schema
        self._connection: Connection | None = None
        self._try_at_s, self._pause_s, self._cause = 0.0, PAUSES_S[0], ""
        self._begun = False  # whether the database has a transaction open
        self._before = False  # whether turns before the present one have a part in it
        self._in_turn = self._saved = False  # the turn has written, and so has a savepoint
        self._release = False  # whether the last turn's savepoint is still there
        self._failed: StoreError | None = None
        self._stamp_us, self._since_s = 0, 0.0
        self.writable = True
        settings = ", ".join(f"set_config('{k}', '{v}', true)" for k, v in _SETTINGS.items())
        self._lock = f"LOCK TABLE {schema.of('pullcord_form')} IN ACCESS SHARE MODE"
        self._head = (
            "SELECT f.number, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,"
            f" c.last_value, {settings}"
            f" FROM {schema.of('pullcord_form')} f, {schema.of('pullcord_clock')} c"
        )
        # Not undone with its transaction; whoever reads it conflicts with nobody.
        clock = schema.of("pullcord_clock")
        literal = clock.replace("'", "''")
        self._mark = f"SELECT setval('{literal}', greatest(last_value, %s)) FROM {clock}"

    # Reading and writing

    def read(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows that a query finds. Raises StoreError."""
        return self._run(sql, values, writes=False).fetchall()

    def write(self, sql: str, values: tuple[Any, ...] = ()) -> int:
        """Run a statement and return how many rows it changed. Raises StoreError."""
        return self._run(sql, values, writes=True).rowcount

    def stamp_us(self) -> int:
        """Return the database's wall time, never one before another that was told. StoreError."""
        if not self._begun:
            self._run("SELECT 1", (), writes=False)
        elapsed_us = int((time.monotonic() - self._since_s) * 1e6)
        return self._stamp_us + max(elapsed_us, 0)

    def _run(self, sql: str, values: tuple[Any, ...], *, writes: bool) -> psycopg.Cursor[Any]:
        if self._failed is not None:
            raise self._failed
        with self._failing():
            connection = self._connected()
            try:
                return self._send(connection, sql, values, writes=writes)
            except psycopg.OperationalError:
                if self._begun or not connection.closed:
                    raise
                # It was lost while nobody used it, and nothing of a turn along with it.
                self._forget_connection()
                return self._send(self._connected(), sql, values, writes=writes)

    def _send(
        self, connection: Connection, sql: str, values: tuple[Any, ...], *, writes: bool
    ) -> psycopg.Cursor[Any]:
        """Send a statement, and before it whatever has waited for one."""
        saves = writes and self._in_turn and not self._saved
        if self._begun and not saves:
            return connection.execute(sql, values, prepare=True)
        head: psycopg.Cursor[Any] | None = None
        with connection.pipeline():
            if not self._begun:
                connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
                connection.execute(self._lock, ())
                head = connection.execute(self._head, (), prepare=True)
            elif self._release:  # not before: turns that only read need not wait for it
                connection.execute("RELEASE SAVEPOINT turn")
            if saves:
                connection.execute("SAVEPOINT turn")
            cursor = connection.execute(sql, values, prepare=True)
        self._begun, self._release, self._saved = True, self._release and not saves, saves
        if head is not None:
            self._heed(connection, *head.fetchall()[0][:3])
        return cursor

    def _heed(self, connection: Connection, number: int, clock_us: int, mark_us: int) -> None:
        """Look at what began a transaction: the form of its tables, and the time."""
        if number != self._schema.number:
            self._schema.look(connection)
        now_s = time.monotonic()
        last_us = self._stamp_us + int((now_s - self._since_s) * 1e6) if self._stamp_us else 0
        # A clock that was set back is not heeded until it has come to where it was.
        behind = clock_us < mark_us - CLOCK_LEAD_US
        now_us = max(mark_us if behind else clock_us, last_us)
        if behind and now_us > mark_us:
            connection.execute(self._mark, (now_us,))
        elif now_us > mark_us - CLOCK_LEAD_US // 2 and not behind:
            connection.execute(self._mark, (now_us + CLOCK_LEAD_US,))
        self._stamp_us, self._since_s = now_us, now_s

    # Its connection

    def connected(self) -> Connection:
        """Return a connection that no turn is using, once. Raises StoreError."""
        try:
            return self._connect()
        except psycopg.Error as error:
            raise in_words(self.place, error) from error

    def _connected(self) -> Connection:
        """Return the connection, a new one if it was lost, though not before its time."""
        if self._connection is None:
            if time.monotonic() < self._try_at_s:
                raise StoreFailedError(self.place, self._cause)
            try:
                self._connection = self._connect()
            except psycopg.OperationalError as error:
                self._cause = f"can't be reached: {str(error).strip().splitlines()[-1]}"
                self._try_at_s = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, PAUSES_S[1])
                raise StoreFailedError(self.place, self._cause) from error
            self._pause_s = PAUSES_S[0]
        return self._connection

    def _forget_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def close(self) -> None:
        """Forget what is not committed."""
        self._forget_connection()
        self._end()

    # Failures

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Give the whole transaction up for whatever the database says."""
        try:
            yield
        except psycopg.Error as error:
            # For a bug of ours, which is raised as it is: all that was not committed is gone.
            self._failed = StoreFailedError(self.place, str(error))
            self._drop()
            raise self._give_up(self._told(error)) from error
        except StoreError as error:
            self._drop()
            raise self._give_up(error) from error.__cause__

    def _told(self, error: psycopg.Error) -> StoreError:
        """Return what an error means. A column that is gone may have gone by a newer version."""
        told = in_words(self.place, error)
        if isinstance(told, DamagedStoreError) and self._connection is not None:
            try:
                self._schema.look(self._connection)
            except UnusableStoreError as changed:
                return changed
            except psycopg.Error:  # then it is what it seems to be
                return told
        return told

    def _give_up(self, failed: StoreError) -> StoreError:
        if not isinstance(failed, StoreConflictError):
            self.writable = False
        self._failed = failed
        return failed

    def _drop(self) -> None:
        """Roll back all that is not committed; a connection that can't do that is given up."""
        connection = self._connection
        self._end()
        if connection is None:
            return
        try:
            connection.execute("ROLLBACK")
            # A statement of a pipeline that failed is taken for prepared, and may not be.
            connection.execute("DEALLOCATE ALL")
        except psycopg.Error:
            self._forget_connection()

    def _end(self) -> None:
        self._begun = self._saved = self._release = False

    # Turns

    def begin_turn(self) -> None:
        """Begin a turn that may be rolled back by itself."""
        assert not self._in_turn, "turns don't nest"
        self._in_turn, self._saved, self._before = True, False, self._begun or self._before

    def end_turn(self) -> None:
        """End the turn; what it wrote waits for the commit."""
        self._release = self._release or self._saved
        self._in_turn = self._saved = False

    def roll_back(self) -> None:
        """Undo the open turn, or without one all that was written since the last commit."""
        saved, alone = self._saved, not (self._in_turn and self._before)
        self._in_turn = self._saved = False
        if alone:
            if self._begun:
                self._drop()
            self._before, self._failed = False, None
        elif saved and self._failed is None:
            assert self._connection is not None, "it has a savepoint"
            with suppress(StoreError), self._failing():  # it is told at the commit
                self._connection.execute("ROLLBACK TO SAVEPOINT turn")
                self._release = True

    @property
    def has_to_commit(self) -> bool:
        """False if a commit has nothing to do: to end, to tell or to mend."""
        return self._begun or self._failed is not None or not self.writable

    def commit(self) -> None:
        """Make what was written durable. Raises StoreError, and then none of it ever was.

        But for a connection that is lost meanwhile: then nobody can know.
        """
        self._in_turn = self._saved = False
        if self._failed is None and self._begun:
            assert self._connection is not None, "a transaction is open"
            with suppress(StoreError), self._failing():
                self._connection.execute("COMMIT")
                self._end()
        failed, self._failed = self._failed, None
        self._before = False
        if failed is not None:
            raise failed
        if not self.writable:
            self.writable = self._can_write()

    def _can_write(self) -> bool:
        """Whether the database can be written, tried with what changes nothing."""
        try:
            self._connected().execute(self._mark, (0,))
        except (psycopg.Error, StoreFailedError):
            self._drop()
            return False
        return True
