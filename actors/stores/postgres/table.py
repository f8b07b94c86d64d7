"""One table: rows beside the fields that they are found by, and an SQL index for each of ours.

    CREATE TABLE runs (key text COLLATE "C" PRIMARY KEY, row text, packed bytea,
                       by_due_us bigint, by_open_on text COLLATE "C", …)
    CREATE INDEX "runs.open" ON runs (by_open_on NULLS FIRST, by_queued_us NULLS FIRST, key)
                       WHERE by_open_on IS NOT NULL

A row is JSON in `row`, or msgpack in `packed` where JSON would lose something of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Generic

import msgspec

from actors.actor import Key, Row, TableSpec
from actors.stores.postgres.columns import Column, columns_of
from actors.stores.postgres.schema import Connection, Schema, quoted
from actors.stores.postgres.transaction import Transaction
from actors.stores.rows import TableCodec, read_key, write_key

_ROWS_AT_ONCE = 1_000  # that are built anew: enough for the way there to count little


class PostgresTable(Generic[Row]):
    """A table as `Table` promises it; any call may raise StoreError, and the turn has failed.

    Every read is a query, so no cache can differ from what other processes wrote.
    """

    def __init__(self, spec: TableSpec[Row], transaction: Transaction, schema: Schema) -> None:
        if spec.name.startswith("pullcord_"):
            raise ValueError(f"a table may not be named {spec.name}: ours begin so")
        self._spec = spec
        self._transaction = transaction
        self._schema = schema
        self._codec = TableCodec(spec, transaction.place)
        self._searches: dict[tuple[Any, ...], str] = {}
        fields = sorted({field for fields in spec.indexes.values() for field in fields})
        self._fields: dict[str, Column] = columns_of(spec.row, fields)
        columns = {_column(field): column.sql for field, column in self._fields.items()}
        definition = {"columns": columns, "indexes": dict(sorted(spec.indexes.items()))}
        self.built = msgspec.json.encode(definition).decode()
        self._name = name = schema.of(spec.name)
        self._columns = columns
        names = ["key", "row", "packed", *columns]
        values = f"({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
        changes = ", ".join(f"{column} = excluded.{column}" for column in names[1:])
        self._get = f"SELECT row, packed FROM {name} WHERE key = %s"
        self._all = f"SELECT key, row, packed FROM {name} ORDER BY key"
        self._put = f"INSERT INTO {name} {values} ON CONFLICT (key) DO UPDATE SET {changes}"
        self._insert = f"INSERT INTO {name} {values} ON CONFLICT (key) DO NOTHING"
        self._remove = f"DELETE FROM {name} WHERE key = %s"

    # Rows by key

    def get(self, key: Key) -> Row | None:
        """Return the row under `key`, None if there is none."""
        text = write_key(key)
        rows = self._transaction.read(self._get, (text,))
        return self._decode(text, *rows[0]) if rows else None

    def put(self, key: Key, row: Row) -> None:
        """Write the row, over any other."""
        self._transaction.write(self._put, self._entry(key, row))

    def insert_unique(self, key: Key, row: Row) -> bool:
        """Write the row and return True, or leave the one that stands there and return False."""
        return self._transaction.write(self._insert, self._entry(key, row)) == 1

    def delete(self, key: Key) -> None:
        """Remove the row if there is one."""
        self._transaction.write(self._remove, (write_key(key),))

    def rows(self) -> dict[Key, Row]:
        """Return every row by its key, in the order of the keys as they are written."""
        found = self._transaction.read(self._all)
        return {read_key(key): self._decode(key, *data) for key, *data in found}

    def _entry(self, key: Key, row: Row) -> tuple[Any, ...]:
        fields = [column.write(getattr(row, field)) for field, column in self._fields.items()]
        data = self._codec.encode(key, row)
        text, packed = (data, None) if isinstance(data, str) else (None, data)
        return (write_key(key), text, packed, *fields)

    def _decode(self, key: str, text: str | None, packed: bytes | None) -> Row:
        return self._codec.decode(key, text if packed is None else packed)  # type: ignore[arg-type]  # one of them is there

    # Rows by index

    def scan(
        self,
        index: str,
        prefix: tuple[Any, ...] = (),
        *,
        limit: int,
        up_to: Any = None,
        above: Any = None,
    ) -> list[Row]:
        """Return the first `limit` rows whose indexed fields start with `prefix`, in order."""
        return self._found(index, prefix, {"<=": up_to, ">": above}, limit, "")

    def claim(
        self, index: str, prefix: tuple[Any, ...] = (), *, limit: int, up_to: Any = None
    ) -> list[Row]:
        """Scan, leaving out rows that another process holds in an unfinished turn; hold these."""
        return self._found(index, prefix, {"<=": up_to}, limit, " FOR UPDATE SKIP LOCKED")

    def _found(
        self, index: str, prefix: tuple[Any, ...], bounds: Mapping[str, Any], limit: int, lock: str
    ) -> list[Row]:
        if prefix and prefix[0] is None:
            return []
        condition, order, values = self._search(index, prefix, bounds)
        sql = (
            f"SELECT key, row, packed FROM {self._name} WHERE {condition}"
            f" ORDER BY {order} LIMIT %s{lock}"
        )
        return [self._decode(*found) for found in self._transaction.read(sql, (*values, limit))]

    def count(self, index: str, prefix: tuple[Any, ...] = ()) -> int:
        """Return how many rows the scan would find without a limit."""
        if prefix and prefix[0] is None:
            return 0
        condition, _, values = self._search(index, prefix, {})
        sql = f"SELECT count(*) FROM {self._name} WHERE {condition}"
        [(count,)] = self._transaction.read(sql, tuple(values))
        return int(count)

    def _search(
        self, index: str, prefix: tuple[Any, ...], bounds: Mapping[str, Any]
    ) -> tuple[str, str, list[Any]]:
        """Return the condition and the order of a search, and its values.

        `bounds` compare the field behind the prefix, each by its sign; None is none.
        """
        fields = self._spec.indexes[index]
        names = [*map(_column, fields), "key"]
        terms, values = [], []
        given = [(at, "=", value) for at, value in enumerate(prefix)]
        given += [(len(prefix), sign, one) for sign, one in bounds.items() if one is not None]
        for at, sign, value in given:
            written = (
                self._fields[fields[at]].write(value) if at < len(fields) else write_key(value)
            )
            if written is None:
                terms.append(f"{names[at]} IS NULL")
                continue
            terms.append(f"{names[at]} {sign} %s")
            values.append(written)
        if not prefix:
            terms.append(f"{names[0]} IS NOT NULL")  # as the index says, so that it is used
        order = [f"{name} NULLS FIRST" if name != "key" else name for name in names[len(prefix) :]]
        return " AND ".join(terms), ", ".join(order or ["key"]), values

    # Its definition

    def build(self, connection: Connection, anew: bool) -> None:
        """Make the table, or give it other columns and indexes. Raises psycopg.Error."""
        name = self._name
        columns = [f"{column} {sql}" for column, sql in self._columns.items()]
        if anew:
            self._strip(connection)
            for column in columns:
                connection.execute(f"ALTER TABLE {name} ADD COLUMN {column}", ())
            self._fill(connection)
        else:
            fixed = ['key text COLLATE "C" PRIMARY KEY', "row text", "packed bytea"]
            connection.execute(f"CREATE TABLE {name} ({', '.join([*fixed, *columns])})", ())
        for index, fields in self._spec.indexes.items():
            first = _column(fields[0])
            parts = ", ".join([*(f"{_column(field)} NULLS FIRST" for field in fields), "key"])
            connection.execute(
                f"CREATE INDEX {self._index_name(index)} ON {name} ({parts})"
                f" WHERE {first} IS NOT NULL",
                (),
            )

    def _index_name(self, index: str) -> str:
        """Return a name for an index, which is one of the whole schema's."""
        name = f"{self._spec.name}.{index}"
        if len(name.encode()) > 63:
            name = blake2b(name.encode(), digest_size=16).hexdigest()
        return quoted(name)

    def _strip(self, connection: Connection) -> None:
        """Take off the columns that were copied from the rows, and so their indexes."""
        sql = (
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND attname LIKE 'by\\_%%'"
        )
        name = self._name.replace("%%", "%")
        for (column,) in connection.execute(sql, (name,)).fetchall():
            connection.execute(f"ALTER TABLE {self._name} DROP COLUMN {quoted(column)}", ())

    def _fill(self, connection: Connection) -> None:
        """Copy each row's fields out of the row itself."""
        if not self._columns:
            return
        changes = ", ".join(f"{column} = %s" for column in self._columns)
        sql = f"SELECT key, row, packed FROM {self._name} WHERE key {{}} %s ORDER BY key LIMIT %s"
        after, than = "", ">="
        while True:
            found = connection.execute(sql.format(than), (after, _ROWS_AT_ONCE)).fetchall()
            if not found:
                return
            rows = []
            for key, *data in found:
                entry = self._entry(read_key(key), self._decode(key, *data))
                rows.append((*entry[3:], key))
            with connection.cursor() as cursor:
                cursor.executemany(f"UPDATE {self._name} SET {changes} WHERE key = %s", rows)
            after, than = rows[-1][-1], ">"


def _column(field: str) -> str:
    return quoted(f"by_{field}")
