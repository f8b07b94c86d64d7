"""The store of a server whose database is PostgreSQL: several processes may have it open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from actors.actor import Row, TableSpec
from actors.stores.database import DatabaseStore
from actors.stores.failures import UnusableStoreError
from actors.stores.postgres.address import read_address
from actors.stores.postgres.errors import in_words
from actors.stores.postgres.schema import Connection, Schema
from actors.stores.postgres.table import PostgresTable
from actors.stores.postgres.transaction import STATEMENTS_KEPT, Transaction


class PostgresStore(DatabaseStore):
    """Tables in one schema of a database: `postgresql://user@host/database?schema=name`.

    One turn at a time, whichever thread runs it; any number of stores and processes beside it. A
    turn that another process was faster than raises StoreConflictError, and may be taken again. A
    connection that is lost is made again, later and later.

    Raises UnusableStoreError if the database can't be reached or used, or the schema is of a newer
    version, or not ours.
    """

    _transaction: Transaction

    def __init__(self, address: str) -> None:
        self._address = read_address(address)
        self._tables: dict[str, PostgresTable[Any]] = {}
        try:
            self._schema = Schema(self._address.schema, self.place)
        except ValueError as error:
            raise UnusableStoreError(self.place, f"its schema can't be: {error}") from None
        self._transaction = Transaction(self._connect, self._schema)
        try:
            with self._connect() as connection:
                self._schema.set_up(connection)
                self._schema.look(connection)
        except psycopg.Error as error:
            said = str(error).strip().partition("\n")[0].removeprefix("connection failed: ")
            sentence = f"can't be reached: {said}" if not error.sqlstate else self._words(error)
            raise UnusableStoreError(self.place, sentence) from error

    def _words(self, error: psycopg.Error) -> str:
        return in_words(self.place, error).sentence

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._address.conninfo, autocommit=True)
        connection.prepared_max = STATEMENTS_KEPT
        return connection

    @property
    def place(self) -> str:
        """The database's address, without a password."""
        return self._address.place

    def table(self, spec: TableSpec[Row]) -> PostgresTable[Row]:
        """Return the table, made empty if it is new, or built anew if its indexes are others.

        Neither is part of the turn. Raises StoreError.
        """
        if spec.name in self._tables:
            return self._tables[spec.name]
        table = PostgresTable(spec, self._transaction, self._schema)
        with self._transaction.connected() as connection:
            try:
                self._schema.prepare(connection, spec.name, table.built, table.build)
            except psycopg.Error as error:
                raise in_words(self.place, error) from error
        self._tables[spec.name] = table
        return table

    def pinned(self) -> Iterable[object]:
        """Return the tables that actors hold: they are no actor's state."""
        return list(self._tables.values())

    def stamp_us(self) -> int:
        """Return the database's wall time since 1970: one clock for all processes.

        It never goes back in one process, whatever is done to that clock; from one process to
        another by less than a second. Raises StoreError.
        """
        return self._transaction.stamp_us()

    def close(self) -> None:
        """Forget what is not committed."""
        self._transaction.close()
