"""Whose tables a schema has and of which form: made, checked, migrated, and built anew.

    pullcord_form    one row: the version of this form, and a number that each change of a table's
                     indexes raises
    pullcord_tables  each table's name, and the indexes and columns that it was built with
    pullcord_clock   a sequence: no process has told a later time, in microseconds

Every transaction begins by locking `pullcord_form` against changes, and by reading the number. So a
table is built anew between transactions, and a process of an older pullcord learns of it before it
could write a row that the new indexes lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg

from actors.stores.failures import UnusableStoreError

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST = 140_000  # numeric has infinities since then, and it is the oldest that is still mended

# What turns a schema of version n into one of version n + 1, from an empty one on. Once they have
# been released, steps are only added. `{}` is the schema.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE {}.pullcord_form (version integer NOT NULL, number bigint NOT NULL)",
        "INSERT INTO {}.pullcord_form VALUES (0, 0)",
        'CREATE TABLE {}.pullcord_tables (name text COLLATE "C" PRIMARY KEY, built text NOT NULL)',
        "CREATE SEQUENCE {}.pullcord_clock",
    ),
)

_NAME_LIMIT_BYTES = 63  # PostgreSQL cuts longer ones off without a word


def quoted(name: str) -> str:
    """Return a name as SQL with values writes it; ValueError for one that can't be a name."""
    if not 0 < len(name.encode()) <= _NAME_LIMIT_BYTES or "\x00" in name:
        raise ValueError(
            f"{name!r} is no name to PostgreSQL: 1 to {_NAME_LIMIT_BYTES} bytes, no NUL"
        )
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


class Schema:
    """One schema of a database, whoever is connected to it."""

    def __init__(self, name: str, place: str) -> None:
        self.place = place
        self._name = name
        self._quoted = quoted(name)
        self.number = 0  # of its form, as of the last look at all tables of this process
        self._built: dict[str, str] = {}  # what this process wants each of its tables to be

    def of(self, name: str) -> str:
        """Return a table's name in SQL."""
        return f"{self._quoted}.{quoted(name)}"

    # Whose it is

    def set_up(self, connection: Connection) -> None:
        """Make the schema if it is new, and bring it to the present version.

        Raises UnusableStoreError for one that is somebody else's, or of a newer version.
        """
        if connection.info.server_version < OLDEST:
            version = connection.info.server_version // 10_000
            self._refuse(f"PostgreSQL {version} is too old; it must be {OLDEST // 10_000} or later")
        [(encoding,)] = connection.execute("SHOW server_encoding").fetchall()
        if encoding != "UTF8":
            self._refuse(f"the database is in {encoding}; make one with ENCODING 'UTF8'")
        if self._version(connection) != len(MIGRATIONS):
            with self._alone(connection):
                self._migrate(connection)

    def _refuse(self, sentence: str) -> None:
        raise UnusableStoreError(self.place, sentence)

    def _version(self, connection: Connection) -> int:
        """Return the version of its form; 0 for a schema that is not there, or empty."""
        sql = (
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s"
        )
        names = {name for (name,) in connection.execute(sql, (self._name,)).fetchall()}
        if "pullcord_form" not in names:
            if names:
                self._refuse("this schema is some other program's; name another one")
            return 0
        found = connection.execute(f"SELECT version FROM {self.of('pullcord_form')}", ()).fetchall()
        if len(found) != 1:
            self._refuse("its pullcord_form is not as pullcord made it; name another schema")
        [(version,)] = found
        if version > len(MIGRATIONS):
            self._refuse(
                f"a newer pullcord wrote it, in version {version} of its form, and this one reads"
                f" up to {len(MIGRATIONS)}; update pullcord, or name another schema"
            )
        return int(version)

    def _migrate(self, connection: Connection) -> None:
        sql = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
        if not connection.execute(sql, (self._name,)).fetchall():
            connection.execute(f"CREATE SCHEMA {self._quoted}", ())
        for statements in MIGRATIONS[self._version(connection) :]:
            for statement in statements:
                connection.execute(statement.format(self._quoted), ())
        sql = f"UPDATE {self.of('pullcord_form')} SET version = %s"
        connection.execute(sql, (len(MIGRATIONS),))

    @contextmanager
    def _alone(self, connection: Connection) -> Iterator[None]:
        """Be the only process that changes tables, in one transaction."""
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '10s'")
            sql = "SELECT pg_advisory_xact_lock(hashtext('pullcord'), hashtext(%s))"
            connection.execute(sql, (self._name,))
            yield

    # Its tables

    def prepare(
        self,
        connection: Connection,
        name: str,
        built: str,
        build: Callable[[Connection, bool], None],
    ) -> None:
        """Make a table if it is new, and build it anew if it was built otherwise, by `build`.

        `build(connection, anew)` does it. Raises psycopg.Error, or UnusableStoreError if another
        process has changed a table of this one meanwhile.
        """
        wanted = self._built | {name: built}
        with self._alone(connection):
            found = self._found(connection)
            if name not in found:
                build(connection, False)
            elif found[name] != built:
                # From here on nobody is in a transaction, and who begins one sees the new number.
                form = self.of("pullcord_form")
                connection.execute(f"LOCK TABLE {form} IN ACCESS EXCLUSIVE MODE", ())
                build(connection, True)
                connection.execute(f"UPDATE {form} SET number = number + 1", ())
            sql = (
                f"INSERT INTO {self.of('pullcord_tables')} VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET built = excluded.built"
            )
            if found.get(name) != built:
                connection.execute(sql, (name, built))
            self.look(connection, wanted)
        self._built = wanted

    def look(self, connection: Connection, wanted: Mapping[str, str] | None = None) -> None:
        """Look at all tables of this process again; UnusableStoreError if one was changed."""
        found = self._found(connection)
        for name, built in (self._built if wanted is None else wanted).items():
            if found.get(name) != built:
                self._refuse(
                    f"another version of pullcord has changed the table {name}; end this process,"
                    " and start it in that version"
                )
        sql = f"SELECT number FROM {self.of('pullcord_form')}"
        [(self.number,)] = connection.execute(sql, ()).fetchall()

    def _found(self, connection: Connection) -> dict[str, str]:
        sql = f"SELECT name, built FROM {self.of('pullcord_tables')}"
        return dict(connection.execute(sql, ()).fetchall())
