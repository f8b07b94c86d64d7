"""A cell whose processes are killed at any write and any commit of stores on disk or in a database.

A crash is what a kill of the process is to its store: the files stay as they are at that moment,
the connection ends without a word. The actor is down for a second, and starts from what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from actors.actor import TableSpec
from actors.durable import DurableContext, DurableWorld
from tests.contracts.store_machine import Subject

DOWN_US = 1_000_000
DURABLE = ("server", "relay", "engine")


class KilledError(Exception):
    """The process is dead from here on: only the world catches this."""


class Point(Protocol):
    """One thing that a process does to its store."""

    def __call__(self) -> Any: ...


class CrashingStore:
    """A store that counts what is written and committed, and whose process dies at one of these.

    `done` names each, in order. `crash` is the number of one, from 0, and whether it dies after it.
    """

    def __init__(self, subject: Subject, crash: tuple[int, bool] | None = None) -> None:
        self._subject: Any = subject
        self._crash = crash
        self.done: list[str] = []
        self.wrote = False
        self.crashed = False

    @property
    def writable(self) -> bool:
        return bool(self._subject.store.writable)

    def table(self, spec: TableSpec[Any]) -> CrashingTable:
        return CrashingTable(self, spec.name, self._subject.store.table(spec))

    def snapshot(self) -> Any:
        return self._subject.store.snapshot()

    def begin_turn(self) -> None:
        self._subject.begin_turn()

    def end_turn(self) -> None:
        self._subject.end_turn()

    def roll_back(self) -> None:
        self.wrote = False
        self._subject.roll_back()

    @property
    def has_to_commit(self) -> bool:
        return bool(self._subject.store.has_to_commit)

    def commit(self) -> None:
        if self.wrote:
            self.wrote = False
            self.at("commit", self._subject.commit)
        else:
            self._subject.commit()

    def at(self, name: str, act: Point) -> Any:
        """Do something, unless the process dies before it, or when it is done."""
        number = len(self.done)
        self.done.append(name)
        if self._crash == (number, False):
            raise KilledError(name)
        result = act()
        if self._crash == (number, True):
            raise KilledError(name)
        return result

    def die(self) -> None:
        """End the process, and open its store again in another."""
        self.crashed, self.wrote = True, False
        self._subject.kill()

    def close(self) -> None:
        self._subject.close()


class CrashingTable:
    """A table of such a store."""

    def __init__(self, store: CrashingStore, name: str, table: Any) -> None:
        self._store, self._name, self._table = store, name, table
        for reading in ("get", "scan", "claim", "count"):
            setattr(self, reading, getattr(table, reading))

    def _write(self, how: str, *given: Any) -> Any:
        self._store.wrote = True
        act = getattr(self._table, how)
        return self._store.at(f"{how} {self._name}", lambda: act(*given))

    def put(self, *given: Any) -> None:
        self._write("put", *given)

    def insert_unique(self, *given: Any) -> Any:
        return self._write("insert_unique", *given)

    def delete(self, *given: Any) -> None:
        self._write("delete", *given)


class CrashingWorld(DurableWorld):
    """A world under a virtual clock in which a process may die in the middle of a turn."""

    async def _in_turn(self, actor: DurableContext, *given: Any) -> None:
        try:
            await super()._in_turn(actor, *given)
        except KilledError:
            self._die(actor)

    async def _away(self, actor: DurableContext, call: Callable[[], None]) -> None:
        try:
            await super()._away(actor, call)
        except KilledError:
            self._die(actor)

    def _die(self, actor: DurableContext) -> None:
        store: Any = actor.durable
        store.die()
        self.kill(actor.name, "crash")
        self.at(self.now_us + DOWN_US, lambda: self.revive(actor.name, "crash"))
