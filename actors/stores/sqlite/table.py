"""One table: rows beside the fields that they are found by, and an SQL index for each of ours.

    CREATE TABLE "runs" (key TEXT PRIMARY KEY NOT NULL, row, by_due_us, by_open_on, by_queued_us)
    CREATE INDEX "runs.open" ON "runs" (by_open_on, by_queued_us, key) WHERE by_open_on IS NOT NULL

The columns have no type, so SQLite converts nothing: numbers and truth values compare as numbers,
texts by code points, bytes by bytes, as they do in Python.
"""

from __future__ import annotations

from typing import Any, Generic

import msgspec

from actors.actor import Key, Row, TableSpec
from actors.stores.failures import StoreError, UnreadableRowError
from actors.stores.rows import TableCodec, Value, read_key, write_key, write_value
from actors.stores.sqlite.transaction import Transaction

DEFINITIONS = "pullcord_tables"  # each table's name, and the indexes that it was built with
_NEW = '"pullcord_new"'  # a table while it is built anew


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class SqliteTable(Generic[Row]):
    """A table as `Table` promises it; any call may raise StoreError, and the turn has failed.

    Every read is a query, so no cache can differ from the disk.
    """

    def __init__(self, spec: TableSpec[Row], transaction: Transaction) -> None:
        self._spec = spec
        self._transaction = transaction
        self._codec = TableCodec(spec, transaction.path)
        self._ready = False
        self._searches: dict[tuple[str, int, tuple[str, ...], bool], str] = {}
        self._fields = sorted({field for fields in spec.indexes.values() for field in fields})
        _check_names(spec.name, self._fields)
        name, columns = quoted(spec.name), ["key", "row", *map(_column, self._fields)]
        values = f"({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns[1:])
        self._get = f"SELECT row FROM {name} WHERE key = ?"
        self._all = f"SELECT key, row FROM {name} ORDER BY key"
        self._put = f"INSERT INTO {name} {values} ON CONFLICT (key) DO UPDATE SET {changes}"
        self._insert = f"INSERT INTO {name} {values} ON CONFLICT (key) DO NOTHING"
        self._remove = f"DELETE FROM {name} WHERE key = ?"

    # Rows by key

    def get(self, key: Key) -> Row | None:
        """Return the row under `key`, None if there is none."""
        self._prepare()
        text = write_key(key)
        rows = self._transaction.read(self._get, (text,))
        return self._codec.decode(text, rows[0][0]) if rows else None

    def put(self, key: Key, row: Row) -> None:
        """Write the row, over any other."""
        self._prepare()
        self._transaction.write(self._put, self._entry(key, row))

    def insert_unique(self, key: Key, row: Row) -> bool:
        """Write the row and return True, or leave the one that stands there and return False."""
        self._prepare()
        return self._transaction.write(self._insert, self._entry(key, row)) == 1

    def delete(self, key: Key) -> None:
        """Remove the row if there is one."""
        self._prepare()
        self._transaction.write(self._remove, (write_key(key),))

    def rows(self) -> dict[Key, Row]:
        """Return every row by its key, in the order of the keys as they are written."""
        self._prepare()
        found = self._transaction.read(self._all)
        return {read_key(key): self._codec.decode(key, data) for key, data in found}

    def _entry(self, key: Key, row: Row) -> tuple[Value, ...]:
        fields = [write_value(getattr(row, field)) for field in self._fields]
        data = self._codec.encode(key, row)
        return (write_key(key), data, *fields)

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
        self._prepare()
        bounds = (("<=", up_to), (">", above))
        given = [(sign, value) for sign, value in bounds if value is not None]
        sql = self._search(index, len(prefix), tuple([sign for sign, _ in given]))
        values = (*self._bounds(index, prefix, [value for _, value in given]), limit)
        return [self._codec.decode(*found) for found in self._transaction.read(sql, values)]

    claim = scan  # one process: nobody else holds a row

    def count(self, index: str, prefix: tuple[Any, ...] = ()) -> int:
        """Return how many rows the scan would find without a limit."""
        self._prepare()
        sql = self._search(index, len(prefix), (), counted=True)
        [(count,)] = self._transaction.read(sql, self._bounds(index, prefix, []))
        assert isinstance(count, int), "what count(*) returns"
        return count

    def _columns(self, index: str) -> list[str]:
        return [*map(_column, self._spec.indexes[index]), "key"]

    def _search(self, index: str, width: int, signs: tuple[str, ...], counted: bool = False) -> str:
        """Return the query for rows whose first `width` fields are given, made once.

        `signs` compare the next field with its bounds.
        `IS` finds a None as it finds other values; `=` lets SQLite see that the first is none.
        """
        shape = (index, width, signs, counted)
        if shape not in self._searches:
            columns = self._columns(index)
            terms = [f"{name} {'IS' if at else '='} ?" for at, name in enumerate(columns[:width])]
            terms += [f"{columns[width]} {sign} ?" for sign in signs]
            condition = " AND ".join(terms or [f"{columns[0]} IS NOT NULL"])
            table = f"{quoted(self._spec.name)} INDEXED BY {self._index_name(index)}"
            order = ", ".join(columns[width:] or ["key"])
            self._searches[shape] = (
                f"SELECT count(*) FROM {table} WHERE {condition}"
                if counted
                else f"SELECT key, row FROM {table} WHERE {condition} ORDER BY {order} LIMIT ?"
            )
        return self._searches[shape]

    def _bounds(self, index: str, prefix: tuple[Any, ...], bounds: list[Any]) -> tuple[Value, ...]:
        """Return the values of a search; what follows the fields in an index is the key."""
        width = len(self._spec.indexes[index])
        write_bound = write_value if len(prefix) < width else write_key
        return (
            *map(write_value, prefix[:width]),
            *map(write_key, prefix[width:]),
            *map(write_bound, bounds),
        )

    def _index_name(self, index: str) -> str:
        return quoted(f"{self._spec.name}.{index}")

    # Its definition

    def _prepare(self) -> None:
        """Make the table if it is new, and build it anew if its indexes are others than before."""
        if self._ready:
            return
        wanted = msgspec.json.encode(dict(sorted(self._spec.indexes.items()))).decode()
        sql = f"SELECT name, indexes FROM {DEFINITIONS} WHERE name = ? COLLATE NOCASE"
        known = self._transaction.read(sql, (self._spec.name,))
        if known and known[0][0] != self._spec.name:
            raise ValueError(f"table {self._spec.name} is {known[0][0]} to SQLite; rename it")
        if not known or known[0][1] != wanted:
            self._transaction.when_undone(self._forget)
            self._build(anew=bool(known))
            sql = f"INSERT OR REPLACE INTO {DEFINITIONS} (name, indexes) VALUES (?, ?)"
            self._transaction.write(sql, (self._spec.name, wanted))
        self._ready = True

    def _forget(self) -> None:
        self._ready = False

    def _build(self, *, anew: bool) -> None:
        """Make the table, of the rows that it has had, and its indexes."""
        write = self._transaction.write
        name, columns = quoted(self._spec.name), [*map(_column, self._fields)]
        definition = ", ".join(["key TEXT PRIMARY KEY NOT NULL", "row", *columns])
        write(f"CREATE TABLE {_NEW if anew else name} ({definition})")
        if anew:
            self._fill(name)
            write(f"DROP TABLE {name}")
            write(f"ALTER TABLE {_NEW} RENAME TO {name}")
        for index in self._spec.indexes:
            fields = self._columns(index)
            write(
                f"CREATE INDEX {self._index_name(index)} ON {name} ({', '.join(fields)})"
                f" WHERE {fields[0]} IS NOT NULL"
            )

    def _fill(self, name: str) -> None:
        """Copy a table's rows into its new form, each with its fields read from the row itself."""
        unreadable: list[UnreadableRowError] = []

        def field(key: str, data: str | bytes, name: str) -> Value:
            try:
                return write_value(getattr(self._codec.decode(key, data), name))
            except UnreadableRowError as error:
                unreadable.append(error)
                raise

        function = quoted(f"pullcord_field_{self._spec.name}")
        self._transaction.define(f"pullcord_field_{self._spec.name}", field)
        fields = ["key", "row", *(f"{function}(key, row, ?)" for _ in self._fields)]
        try:
            self._transaction.write(
                f"INSERT INTO {_NEW} SELECT {', '.join(fields)} FROM {name}", tuple(self._fields)
            )
        except StoreError:
            if unreadable:
                raise unreadable[0] from None
            raise


def _check_names(name: str, fields: list[str]) -> None:
    """Raise ValueError for names that SQLite, for which case makes no difference, can't have."""
    if name.lower().startswith(("sqlite_", "pullcord_")):
        raise ValueError(f"a table may not be named {name}: SQLite's own and ours begin so")
    if len({field.lower() for field in fields}) < len(fields):
        raise ValueError(f"indexed fields of {name} differ by case alone: {', '.join(fields)}")


def _column(field: str) -> str:
    return quoted(f"by_{field}")
