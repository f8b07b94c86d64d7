"""Which replications are worked on next: the pure bookkeeping of a run.

Cells are handed out in ranges, the largest cells first so that small ones fill the end. A range
comes back when it is done, when its time is up (what is left of it is handed out again) or when a
replication is in trouble. Trouble ends its scenario: replications before it are still run, those
behind it are not, so that what is reported is the same for any number of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

RANGE_S: Final = (
    0.5  # a range's length: long against its overhead, short against a person's patience
)
SHORTEST_S: Final = 0.03  # near the end, so that the last workers end together
SPARE: Final = 2  # how many ranges a worker should still have before it when the end comes near

Key = tuple[int, int]  # a scenario's number, and a cell's in it


class Piece(msgspec.Struct, frozen=True):
    """Replications `first` to `last` (exclusive) of a cell, for about `budget_s` of work."""

    key: Key
    first: int
    last: int
    budget_s: float


class Pending:
    """What is left of one cell."""

    def __init__(self, first: int, last: int) -> None:
        self.gaps = [(first, last)] if first < last else []
        self.size = last - first
        self.seconds_each = 0.0

    @property
    def left(self) -> int:
        """How many replications nobody works on yet."""
        return sum(last - first for first, last in self.gaps)

    def take(self, count: int) -> tuple[int, int]:
        """Take the first replications that are left, `count` at most."""
        first, last = self.gaps.pop(0)
        end = min(last, first + count)
        if end < last:
            self.gaps.insert(0, (end, last))
        return first, end

    def give(self, first: int, last: int) -> None:
        """Take replications back that were not run."""
        if first < last:
            self.gaps.append((first, last))
            self.gaps.sort()

    def remove(self, first: int, last: int) -> None:
        """Leave out replications."""
        kept = []
        for begin, end in self.gaps:
            kept += [(begin, min(end, first)), (max(begin, last), end)]
        self.gaps = [(begin, end) for begin, end in kept if begin < end]


class Schedule:
    """Hands out pieces of cells to so many workers."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.cells: dict[Key, Pending] = {}
        self.ends: dict[int, tuple[int, int]] = {}  # of a scenario: its first trouble
        self._order: list[Key] = []

    def add(self, key: Key, first: int, last: int) -> None:
        """Add a cell's replications."""
        self.cells[key] = Pending(first, last)

    def begin(self) -> None:
        """Fix the order: large cells first, equal ones as they were added."""
        self._order = sorted(self.cells, key=lambda key: -self.cells[key].left)

    def next(self) -> Piece | None:
        """Return what to run next, None if nothing is left that nobody works on."""
        while self._order:
            key = self._order[0]
            pending = self.cells[key]
            if pending.gaps:
                length_s = self._length_s()
                first, last = pending.take(self._count(pending, length_s))
                return Piece(key, first, last, length_s)
            self._order.pop(0)
        return None

    def empty(self) -> bool:
        """Whether nothing is left that nobody works on."""
        return not any(cell.gaps for cell in self.cells.values())

    def _length_s(self) -> float:
        """Return how long a piece should be by what is known: all of it, shared out, at the end."""
        left_s = 0.0
        known = [cell.seconds_each for cell in self.cells.values() if cell.seconds_each]
        guess = max(known, default=RANGE_S)
        for key in self._order:
            cell = self.cells[key]
            left_s += cell.left * (cell.seconds_each or guess)
        return min(RANGE_S, max(SHORTEST_S, left_s / (SPARE * self.workers)))

    def _count(self, pending: Pending, length_s: float) -> int:
        if pending.seconds_each:
            return max(1, int(length_s / pending.seconds_each))
        # Of unknown speed: as a whole if there are cells enough for all, else shared out. Time is
        # up before a slow one takes long.
        waiting = sum(bool(self.cells[key].gaps) for key in self._order)
        share = 1 if waiting >= SPARE * self.workers else SPARE * self.workers
        return max(1, -(-pending.left // share))

    def done(self, piece: Piece, last: int, seconds: float) -> None:
        """Take note that a piece was run up to `last`, in so many seconds."""
        pending = self.cells[piece.key]
        if last > piece.first:
            pending.seconds_each = seconds / (last - piece.first)
        if last < piece.last and self.wanted(piece.key, last):
            pending.give(last, piece.last)
            if piece.key not in self._order:
                self._order.append(piece.key)

    def trouble(self, key: Key, replication: int) -> None:
        """Take note that a replication did not reach its end: nothing behind it is run."""
        number, place = key[0], (key[1], replication)
        if self.wanted(key, replication):
            self.ends[number] = place
            self._trim(number)

    def wanted(self, key: Key, replication: int) -> bool:
        """Whether a replication lies before the first trouble of its scenario."""
        end = self.ends.get(key[0])
        return end is None or (key[1], replication) < end

    def _trim(self, number: int) -> None:
        if number not in self.ends:
            return
        index, replication = self.ends[number]
        for key, cell in self.cells.items():
            if key[0] == number and key[1] >= index:
                cell.remove(replication if key[1] == index else -1, 1 << 62)

    def restore(self, key: Key, ranges: Iterable[tuple[int, int]]) -> None:
        """Leave out what an earlier run has done."""
        for first, last in ranges:
            self.cells[key].remove(first, last)
