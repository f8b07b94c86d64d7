"""A store in memory: dictionaries with an undo journal."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import msgspec

from actors.actor import Key, Row, TableSpec

Undo = tuple["MemoryTable", Key, Any]

SMALL_ROWS = 4  # up to here a scan looks at every row: 2 % of a replication
CATCH_UP = 256  # changes kept for indexes that nobody scans, before they are brought up to date


class _Index:
    """One index: entries of (fields..., key), sorted, as of the table's first `at` changes."""

    __slots__ = ("_get", "_single", "at", "entries")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.at = 0
        self.entries: list[tuple[Any, ...]] | None = None
        self._get = attrgetter(*names)
        self._single = len(names) == 1

    def entry(self, key: Key, row: Any) -> tuple[Any, ...] | None:
        """Return a row's entry, None if it has none."""
        fields = (self._get(row),) if self._single else self._get(row)
        return None if fields[0] is None else (*fields, key)

    def of(self, rows: dict[Key, Any]) -> list[tuple[Any, ...]]:
        """Return the entries of all rows, in order."""
        get: Callable[[Any], Any] = self._get
        entries: list[tuple[Any, ...]]
        if self._single:
            entries = [(field, key) for key, row in rows.items() if (field := get(row)) is not None]
        else:
            entries = [
                (*fields, key) for key, row in rows.items() if (fields := get(row))[0] is not None
            ]
        entries.sort()
        return entries

    def change(self, entries: list[tuple[Any, ...]], key: Key, old: Any, new: Any) -> None:
        """Take the old row's entry out and put the new one's in, where they differ."""
        was = None if old is None else self.entry(key, old)
        now = None if new is None else self.entry(key, new)
        if was == now:
            return
        if was is not None:
            del entries[bisect_left(entries, was)]
        if now is not None:
            insort(entries, now)


class MemoryTable(dict[Key, Any]):
    """A table whose reads are the dictionary's own. A write leaves what it replaced in the journal.

    Without a journal nothing can be undone. An index is built when it is first scanned, and brought
    up to date by later scans from the list of changes, which begins with the first scan. Most
    tables of most replications are never scanned, or are so small that an index does not pay.
    """

    __slots__ = ("_built", "_changes", "_indexes", "_journal", "_scanned")

    def __init__(
        self, spec: TableSpec[Any], journal: list[Undo] | None, scanned: list[MemoryTable]
    ) -> None:
        super().__init__()
        self._journal = journal
        self._scanned = scanned  # its store's tables that have an index to forget
        self._indexes = {name: _Index(fields) for name, fields in spec.indexes.items()}
        self._built: list[_Index] = []
        self._changes: list[tuple[Key, Any]] | None = None

    def put(self, key: Key, row: Any) -> None:
        """Write the row, over any other."""
        if self._journal is not None:
            self._journal.append((self, key, self.get(key)))
        if self._changes is not None:
            self._changes.append((key, self.get(key)))
        self[key] = row

    def insert_unique(self, key: Key, row: Any) -> bool:
        """Write the row and return True, or leave the one that stands there and return False."""
        if key in self:
            return False
        if self._journal is None and self._changes is None:
            self[key] = row  # as `put` does, without a call
        else:
            self.put(key, row)
        return True

    def delete(self, key: Key) -> None:
        """Remove the row if there is one."""
        old = self.pop(key, None)
        if old is not None:
            if self._journal is not None:
                self._journal.append((self, key, old))
            if self._changes is not None:
                self._changes.append((key, old))

    def undo(self, key: Key, old: Any) -> None:
        """Put back what a write replaced."""
        now = self.pop(key, None)
        if old is not None:
            self[key] = old
        if self._changes is not None:
            self._changes.append((key, now))

    def empty(self) -> None:
        """Forget every row, without a trace in the journal."""
        self.clear()
        self.forget()

    def forget(self) -> None:
        """Forget the indexes."""
        self._changes = None
        for index in self._built:
            index.entries = None
        self._built.clear()

    def fill(self, rows: dict[Key, msgspec.Struct]) -> None:
        """Write rows into an empty table, without a trace in the journal."""
        self.update(rows)

    def _entries(self, name: str) -> list[tuple[Any, ...]]:
        """Return an index, up to date."""
        changes = self._changes
        index = self._indexes[name]
        if changes is None:
            if len(self) <= SMALL_ROWS:
                return index.of(self)
            changes = self._changes = []
            self._scanned.append(self)
        entries = index.entries
        if entries is None:
            entries = index.entries = index.of(self)
            index.at = len(changes)
            self._built.append(index)
        elif index.at < len(changes):
            self._catch_up(index, entries, changes)
        if len(changes) > CATCH_UP:
            for other in self._built:
                assert other.entries is not None, "a built index has entries"
                self._catch_up(other, other.entries, changes)
                other.at = 0
            changes.clear()
        return entries

    def _catch_up(
        self, index: _Index, entries: list[tuple[Any, ...]], changes: list[tuple[Key, Any]]
    ) -> None:
        """Apply the changes that an index has not seen: for each key, from the first old row."""
        for key, old in dict(reversed(changes[index.at :])).items():  # the first of each stays
            index.change(entries, key, old, self.get(key))
        index.at = len(changes)

    def scan(
        self,
        index: str,
        prefix: tuple[Any, ...] = (),
        *,
        limit: int,
        up_to: Any = None,
        above: Any = None,
    ) -> list[Any]:
        """Return the first `limit` rows whose indexed fields start with `prefix`, in order."""
        if not self:
            return []
        width = len(prefix)
        if len(self) == 1:  # as most tables of most replications: 4 %
            [(key, row)] = self.items()
            only = self._indexes[index].entry(key, row)
            if only is None or only[:width] != prefix or not limit:
                return []
            if above is not None and only[width] <= above:
                return []
            return [] if up_to is not None and only[width] > up_to else [row]
        entries = self._entries(index)
        first = bisect_left(entries, prefix)
        if above is not None:
            last = (*prefix, above)
            first = bisect_right(entries, last, first, key=lambda entry: entry[: width + 1])
        rows: list[Any] = []
        for at in range(first, len(entries)):
            entry = entries[at]
            if (
                len(rows) == limit
                or entry[:width] != prefix
                or (up_to is not None and entry[width] > up_to)
            ):
                break
            rows.append(self[entry[-1]])
        return rows

    claim = scan  # one process: nobody else holds a row

    def count(self, index: str, prefix: tuple[Any, ...] = ()) -> int:
        """Return how many rows the scan would find without a limit."""
        if not self:
            return 0
        entries = self._entries(index)
        width = len(prefix)
        first = bisect_left(entries, prefix)
        return bisect_right(entries, prefix, first, key=lambda entry: entry[:width]) - first


class MemoryStore:
    """Tables that share one undo journal with a host whose turns may fail."""

    __slots__ = ("_clears", "_journal", "_restored", "_scanned", "_tables", "writable")

    def __init__(self, journal: list[Undo] | None) -> None:
        self.writable = True
        self._journal = journal
        self._tables: dict[str, MemoryTable] = {}
        self._clears: list[Callable[[], None]] = []  # what empties each, without a frame: 1 %
        self._scanned: list[MemoryTable] = []
        self._restored: dict[str, dict[Key, msgspec.Struct]] = {}  # of tables not opened yet

    @property
    def tables(self) -> Mapping[str, MemoryTable]:
        """The tables that were opened, by name."""
        return self._tables

    def table(self, spec: TableSpec[Row]) -> MemoryTable:
        """Return the table, made empty if it is new."""
        try:
            return self._tables[spec.name]
        except KeyError:
            table = self._tables[spec.name] = MemoryTable(spec, self._journal, self._scanned)
            self._clears.append(table.clear)
            table.fill(self._restored.pop(spec.name, {}))
            return table

    def reset(self) -> None:
        """Forget everything that was ever written."""
        self.writable = True
        for clear in self._clears:
            clear()
        if self._scanned:
            for table in self._scanned:
                table.forget()
            self._scanned.clear()
        if self._restored:
            self._restored = {}

    def snapshot(self) -> dict[str, dict[Key, msgspec.Struct]]:
        """Return a copy of every table that has rows; rows are frozen, so they are shared."""
        rows = self._restored | {name: dict(table) for name, table in self._tables.items() if table}
        return dict(sorted(rows.items()))

    def restore(self, snapshot: dict[str, dict[Key, msgspec.Struct]]) -> None:
        """Make the tables equal to a snapshot; tables that it doesn't name become empty."""
        for name, table in self._tables.items():
            table.empty()
            table.fill(snapshot.get(name, {}))
        self._restored = {name: rows for name, rows in snapshot.items() if name not in self._tables}


def roll_back(journal: list[Undo]) -> None:
    """Undo a turn's writes, the last one first, and empty the journal."""
    for table, key, old in reversed(journal):
        table.undo(key, old)
    journal.clear()
