"""A durable store in memory whose writes and commits fail, or conflict, when a test says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actors.stores.failures import StoreConflictError, StoreError, StoreFailedError
from actors.stores.memory import MemoryStore, MemoryTable, Undo, roll_back

HERE = Path("puppet.db")


def failed() -> StoreError:
    return StoreFailedError(HERE, "the disk is full")


def conflict() -> StoreError:
    return StoreConflictError(HERE, "another process was first")


class PuppetStore(MemoryStore):
    """What it raises at commits and at the ends of turns, each counted from 1, is in dictionaries.

    `commits` has how many turns each commit that succeeded was shared by.
    """

    def __init__(
        self,
        at_commit: dict[int, StoreError] | None = None,
        at_turn: dict[int, StoreError] | None = None,
    ) -> None:
        self.journal: list[Undo] = []
        super().__init__(self.journal)
        self.at_commit, self.at_turn = at_commit or {}, at_turn or {}
        self.tried = self.turns = self.waiting = 0
        self.commits: list[int] = []
        self.mark: int | None = None
        self.broken: StoreError | None = None

    def begin_turn(self) -> None:
        assert self.mark is None, "turns don't nest"
        self.mark = len(self.journal)

    def end_turn(self) -> None:
        self.turns += 1
        if self.turns in self.at_turn:
            self.broken = self.at_turn[self.turns]
            raise self.broken
        self.mark = None
        self.waiting += 1

    def roll_back(self) -> None:
        mark, self.mark = self.mark or 0, None
        undone = self.journal[mark:]
        del self.journal[mark:]
        roll_back(undone)
        if mark == 0:
            self.broken, self.waiting = None, 0

    @property
    def has_to_commit(self) -> bool:
        return bool(self.journal) or self.broken is not None

    def commit(self) -> None:
        assert self.mark is None, "a turn is open"
        assert self.broken is None, "nothing may be committed behind a failure"
        self.tried += 1
        if self.tried in self.at_commit:
            self.roll_back()
            raise self.at_commit[self.tried]
        self.journal.clear()
        self.commits.append(self.waiting)
        self.waiting = 0


class SharedPuppetStore(PuppetStore):
    """One that other processes may have open, too: its clock is its own."""

    clock_us = 1_000_000_000_000

    def stamp_us(self) -> int:
        return self.clock_us

    def pinned(self) -> Iterable[object]:
        return list[Any](self.tables.values())


def texts(table: MemoryTable) -> list[str]:
    return sorted(row.text for row in table.values())
