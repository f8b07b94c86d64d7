"""Checkpoints of replayed actors: their state at a record, to go back to and on from.

No actor sees another's state, so each is re-executed by itself, along a lane of its own records. A
lane keeps checkpoints as it goes and goes back to the nearest; a lane that grows keeps fewer, so
neither its memory nor its way back grows without end. Where an actor can't be copied there is none:
its way back begins at an earlier one, or at its first record in a cell that is built anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from actors.actor import Key
from actors.chance import Distribution
from actors.copies import Copier, UncopyableError, attributes_of, put_attributes
from actors.polls import PollPlan
from actors.replayer import TURNS, UNKNOWN, Difference, ReplayContext, Replayer, Script
from actors.simulator import Due, Simulator
from actors.stores.memory import MemoryStore, MemoryTable
from actors.streams import HashedStream
from logs.record import FaultRecord, Record, StartRecord
from transports.clock import WrongClock

STRIDE = 64  # records between two checkpoints at first: re-executed in a few milliseconds
CHECKPOINT_LIMIT = 128  # then every other one is given up: a server's copy may have megabytes
PINNED = (Simulator, ReplayContext, MemoryStore, MemoryTable, HashedStream, Distribution, PollPlan)

Snapshot = dict[str, dict[Key, msgspec.Struct]]


class Write(msgspec.Struct, frozen=True):
    """A row that a turn added (`old` is None), changed, or removed (`new` is None)."""

    table: str
    key: Key
    old: Any
    new: Any


class Checkpoint(msgspec.Struct, frozen=True):
    """All that a replayed actor is, besides what stays: `held` was copied in one go."""

    held: tuple[dict[str, Any], dict[str, Due], dict[int, Due], list[Due], WrongClock | None]
    store: Snapshot
    writable: bool
    drawn: dict[str, int]
    plain: dict[str, Any]
    boot_us: int


class SteppedContext(ReplayContext):
    """One actor that is replayed forwards and backwards, and that tells what its last turn did."""

    __slots__ = ("writes",)

    # What is no attribute of the actor, has no shape, and is told by its own name.
    _PLAIN = (
        "boot", "ids", "record", "turn", "turn_us", "down", "busy", "suspended_us", "clock_stops"
    )  # fmt: skip

    def reset(self) -> None:
        """Be as new, for the next replication."""
        super().reset()
        self.writes: list[Write] = []

    def release(self) -> None:
        """Let out what a turn asked for; what it wrote is kept to be told."""
        first: dict[tuple[int, Key], tuple[MemoryTable, Any]] = {}
        for table, key, old in self.journal:
            first.setdefault((id(table), key), (table, old))
        names = {id(table): name for name, table in self.store.tables.items()}
        self.writes = [
            Write(names[number], key, old, table.get(key))
            for (number, key), (table, old) in first.items()
            if old != table.get(key)
        ]
        super().release()

    def attributes(self) -> dict[str, Any]:
        """Return the actor's own attributes, in the order in which they were first set."""
        return attributes_of(self.actor)

    def wall_error_us(self, world_us: int) -> int:
        """Return how far its wall clock is ahead of the world's; nobody is told the time by it."""
        if self.clock is None:
            return 0
        return self.clock.wall_us(world_us) - self._world.epoch_us - world_us

    def checkpoint(self) -> Checkpoint:
        """Return a copy of all that this actor is; UncopyableError with the attribute's name."""
        copier = self._pinning()
        live = (self.attributes(), self.timers, self.open_questions, self.frozen, self.clock)
        try:
            held = copier.copy(live)
        except UncopyableError:
            raise UncopyableError(self._blame(copier)) from None
        return Checkpoint(
            held=held,
            store=self.store.snapshot(),
            writable=self.store.writable,
            drawn={purpose: stream.drawn for purpose, stream in self.streams.items()},
            plain={name: getattr(self, name) for name in self._PLAIN},
            boot_us=self._boot_us,
        )

    def _pinning(self) -> Copier:
        rows = (row for table in self.store.tables.values() for row in table.values())
        config = getattr(self.actor, "config", None)
        return Copier(PINNED, (self.actor, config, *rows))

    def _blame(self, copier: Copier) -> str:
        for name, value in self.attributes().items():
            try:
                copier.copy(value)
            except UncopyableError as error:
                return f"its attribute {name} holds {error}"
        return "what it asked for can't be copied"

    def go_back(self, checkpoint: Checkpoint) -> None:
        """Be as at a checkpoint, of this actor."""
        self.store.restore(checkpoint.store)
        self.store.writable = checkpoint.writable
        self.journal.clear()
        self.effects.clear()
        # The rows are pinned by identity: they are in the store again.
        attributes, timers, questions, frozen, clock = self._pinning().copy(checkpoint.held)
        put_attributes(self.actor, attributes)
        self.timers = timers
        self.open_questions = questions
        self.frozen = frozen
        self.clock = clock
        for purpose, stream in self.streams.items():
            stream.go_to(checkpoint.drawn.get(purpose, 0))
        for name, value in checkpoint.plain.items():
            setattr(self, name, value)
        self._boot_us = checkpoint.boot_us


class SteppedReplayer(Replayer):
    """A replay host whose actors can go back."""

    context_type = SteppedContext
    contexts: dict[str, SteppedContext]  # type: ignore[assignment]  # this world makes no others


class _Unknown:
    """Ids of messages that a log does not have: a lane's own, so that they are always the same."""

    def __init__(self) -> None:
        self.next_id = UNKNOWN

    def __iter__(self) -> _Unknown:
        return self

    def __next__(self) -> int:
        self.next_id += 1
        return self.next_id - 1


class Lane:
    """One actor's way through a section: `go_to` brings it to where a record has just happened.

    `make` builds a host of the cell anew, begun; `host` is one that lanes share. `at` is how many
    of its records were taken. `differences` has the turns so far that differ from the log, by their
    record's number. `uncopyable` says why a checkpoint could not be kept, "" if all could.
    """

    def __init__(
        self,
        name: str,
        records: Sequence[Record],
        host: SteppedReplayer,
        make: Callable[[], SteppedReplayer],
    ) -> None:
        self.name = name
        self.records = records
        self._numbers = [record.n for record in records]
        self._make = make
        self._host = host
        self.context = host.contexts[name]
        self._unknown = _Unknown()
        self.at = 0
        self._furthest = 0
        self._stride = STRIDE
        self._checkpoints: dict[int, tuple[Checkpoint, int]] = {}
        self._opened: dict[str, int] = {}  # where each table was first seen: it then stays open
        self.differences: dict[int, Difference] = {}
        self.uncopyable = ""
        self._keep()

    @property
    def started(self) -> bool:
        """Whether the actor has begun its first boot: before, its attributes say nothing."""
        return self.at > 0 and isinstance(self.records[0], StartRecord)

    @property
    def tables(self) -> Mapping[str, MemoryTable]:
        """The tables of its store that it had opened by now."""
        tables = self.context.store.tables
        return {name: tables[name] for name, at in self._opened.items() if at <= self.at}

    def missing(self, number: int) -> int:
        """How many of its records up to this number were never taken: each takes its time once."""
        return max(bisect_right(self._numbers, number) - self._furthest, 0)

    def go_to(self, number: int) -> None:
        """Be where the record of this number has just happened, whosever it is."""
        target = bisect_right(self._numbers, number)
        best = max((at for at in self._checkpoints if at <= target), default=-1)
        if target < self.at:
            self._go_back(best)
        elif best > self.at:
            self._restore(best)
        while self.at < target:
            self.take()

    def take(self) -> Difference | None:
        """Re-execute its next record; return how its turn differs from the log, if it does."""
        record = self.records[self.at]
        self._host.unknown = self._unknown
        self.context.writes, self.context.made = [], []
        difference = self._host.take(record)
        if difference is not None:
            self.differences[record.n] = difference
        self.at += 1
        tables = self.context.store.tables
        if len(tables) > len(self._opened):
            for name in tables:
                self._opened.setdefault(name, self.at)
        self._furthest = max(self._furthest, self.at)
        if self.at % self._stride == 0:
            self._keep()
        return difference

    def _keep(self) -> None:
        if self.at in self._checkpoints:
            return
        try:
            self._checkpoints[self.at] = self.context.checkpoint(), self._unknown.next_id
        except UncopyableError as error:
            self.uncopyable = str(error)
            return
        if len(self._checkpoints) > CHECKPOINT_LIMIT:
            self._stride *= 2
            kept = [at for at in self._checkpoints if at % self._stride == 0]
            self._checkpoints = {at: self._checkpoints[at] for at in kept}

    def _go_back(self, best: int) -> None:
        if best >= 0:
            self._restore(best)
            return
        self._host = self._make()
        self.context = self._host.contexts[self.name]
        self._unknown = _Unknown()
        self.at = 0

    def _restore(self, at: int) -> None:
        checkpoint, self._unknown.next_id = self._checkpoints[at]
        self.context.go_back(checkpoint)
        self.at = at


def lanes_of(
    records: Sequence[Record],
    script: Script,
    make: Callable[[], SteppedReplayer],
    replication: int,
    left_out: Collection[str] = (),
) -> Mapping[str, Lane]:
    """Return the lane of each actor of a cell, in the cell's order; `make` builds the cell.

    Those that are `left_out` have none: programs, for which an actor of ours stands in the cell.
    """

    def begun() -> SteppedReplayer:
        host = make()
        host.begin(replication, script)
        return host

    host = begun()
    mine: dict[str, list[Record]] = {name: [] for name in host.contexts if name not in left_out}
    for record in records:
        if isinstance(record, (*TURNS, FaultRecord)) and record.actor in mine:
            mine[record.actor].append(record)
    return {name: Lane(name, own, host, begun) for name, own in mine.items()}
