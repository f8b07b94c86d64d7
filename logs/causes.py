"""Causes: the chain of records that led to one, back to the beginning, and what it brought about.

A record's cause is the turn that sent, set or said it, so a chain goes from an answer to the turn
that gave it, to the question, to the timer that asked, and ends at the start of a boot.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush

from logs.record import Record


class Causes:
    """One section's records by number, and by what led to them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def record(self, number: int) -> Record | None:
        """Return the record of this number, None if there is none."""
        if 0 < number <= len(self._records):
            record = self._records[number - 1]
            if record.n == number:
                return record
        return self._by_number.get(number)

    @cached_property
    def _by_number(self) -> dict[int, Record]:
        return {record.n: record for record in self._records}

    @cached_property
    def _effects(self) -> dict[int, list[Record]]:
        found: dict[int, list[Record]] = {}
        for record in self._records:
            if record.cause:
                found.setdefault(record.cause, []).append(record)
        return found

    def chain(self, number: int) -> list[Record]:
        """Return the record and its causes, the first cause first; nothing for no record.

        A cause always has a smaller number: one that hasn't ends the chain.
        """
        found: list[Record] = []
        record = self.record(number)
        while record is not None:
            found.append(record)
            record = self.record(record.cause) if record.cause < record.n else None
        return found[::-1]

    def effects(self, number: int, limit: int) -> tuple[list[Record], bool]:
        """Return what a record brought about, directly or not, in the order of the log.

        That may be all that follows, so it ends after `limit` records; the second value tells
        whether it did.
        """
        found: list[Record] = []
        due = [record.n for record in self._effects.get(number, ()) if record.n > number]
        heapify(due)
        while due:
            record = self.record(heappop(due))
            if record is None:
                continue
            if len(found) == limit:
                return found, True
            found.append(record)
            for one in self._effects.get(record.n, ()):
                if one.n > record.n:
                    heappush(due, one.n)
        return found, False
