"""Replaying a deployed process: its actors begin with what their stores held, and go on from there.

The log has the rows that each store held when the process began, every input of every actor, which
turns did not commit, what the disk refused, and each jump of the wall clock. Chance and ids come
from the process's seed, and VMs run the same scripts again. So each actor is re-executed by itself.

Who was killed wrote its last turns' inputs before it knew whether they would commit: what such a
turn let out is unknown, and no difference.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from actors.actor import Actor, Key, Row, TableSpec
from actors.checkpoints import SteppedReplayer
from actors.durable import GROUP_TURNS
from actors.graphs.noted import VM_FAILED, NotedVmPort
from actors.graphs.seam import VmLimitError, VmPort
from actors.host import TURN_FAILED
from actors.replayer import TURNS, Difference, ReplayContext, Replayer, Script
from actors.rewind import Chance
from actors.stores.memory import MemoryStore, MemoryTable, Undo
from actors.stores.rows import RowCodec
from logs.record import EventRecord, Record, StartRecord, UndoneRecord
from transports.memory import Everywhere

STORE_ROWS = "store.rows"  # some rows of a table, as they were when the process began
STORE_LEFT_OUT = "store.left_out"  # there are more than a log may have


class KeptRow(msgspec.Struct, frozen=True):
    """A row as a database keeps it, of a table that nobody has opened yet."""

    data: str | bytes


class RecordedStore(MemoryStore):
    """A store in memory that begins with the rows of a log, whose types its tables' owners know."""

    __slots__ = ("_codecs",)

    def __init__(self, journal: list[Undo]) -> None:
        super().__init__(journal)
        self._codecs: dict[str, RowCodec[Any]] = {}

    def begin_with(self, table: str, rows: list[list[Any]]) -> None:
        """Have some more rows of a table, as a log has them."""
        kept: dict[Key, msgspec.Struct] = {}
        for key, row, *rest in rows:
            data = b64decode(rest[0]) if rest else msgspec.json.encode(row).decode()
            kept[key if isinstance(key, str) else tuple(key)] = KeptRow(data)
        opened = self.tables.get(table)
        if opened is None:
            self._restored.setdefault(table, {}).update(kept)
        else:  # by a section before
            opened.fill(self._read(table, kept))

    def table(self, spec: TableSpec[Row]) -> MemoryTable:
        """Return the table, with the rows that it began with if it is new."""
        if spec.name not in self._codecs:
            self._codecs[spec.name] = RowCodec(spec.row)
            if spec.name in self._restored:
                self._restored[spec.name] = self._read(spec.name, self._restored[spec.name])
        return super().table(spec)

    def restore(self, snapshot: dict[str, dict[Key, msgspec.Struct]]) -> None:
        """Make the tables equal to a snapshot, which may be of before they were opened."""
        super().restore(
            {
                name: self._read(name, rows) if name in self._codecs else rows
                for name, rows in snapshot.items()
            }
        )

    def _read(self, name: str, rows: dict[Key, Any]) -> dict[Key, Any]:
        codec = self._codecs[name]
        return {
            key: codec.decode(row.data) if isinstance(row, KeptRow) else row
            for key, row in rows.items()
        }


class RecordedProcess(Replayer):
    """What replays a process's actors: `house` each, in the order in which the process did.

    `begin` gives them their stores. Whoever is no actor here is reached all the same: what is sent
    is compared.
    """

    def __init__(self, seed: int, name: str, epoch_us: int) -> None:
        super().__init__(seed, name)
        self.epoch_us = epoch_us
        self._broken_off: frozenset[int] = frozenset()  # turns that a disk's failure undid

    def house(self, name: str, actor: Actor) -> None:
        """Add an actor, whose store begins with what a log says."""
        self.add(name, actor)
        context = self.contexts[name]
        context.links = Everywhere(context.keep)
        context.store = RecordedStore(context.journal)

    def run_scripts(self, name: str, port: VmPort) -> None:
        """Have an actor's scripts run in a port's VMs, which fail where they did."""
        context = self.contexts[name]

        def known(call: int) -> VmLimitError | None:
            for said in self.script.said.get(context.record, ()):
                if said.event == VM_FAILED and said.fields.get("call") == call:
                    return VmLimitError(said.fields["limit"], said.fields["error"])
            return None

        self.vm = NotedVmPort(port, context, known)

    def begin(self, replication: int, script: Script) -> None:
        """Be as the process was before its first turn; a process has one replication alone."""
        script.torn |= unknown_turns(script)
        self._broken_off = frozenset(
            one.cause
            for one in script.records
            if isinstance(one, UndoneRecord) and not one.why.startswith(TURN_FAILED)
        )
        super().begin(0, script)
        for name, table, rows in stores_of(script):
            context = self.contexts.get(name)
            if context is not None:
                assert isinstance(context.store, RecordedStore), "it was housed"
                context.store.begin_with(table, rows)

    def _run(
        self, context: ReplayContext, record: Record, take: Callable[[], Any]
    ) -> Difference | None:
        chance = Chance(context)
        difference = super()._run(context, record, take)
        if record.n in self._broken_off:
            chance.go_back()  # as the process does: nobody knows how far the turn came
        return difference


class SteppedProcess(RecordedProcess, SteppedReplayer):
    """The same, whose actors can go back."""


def stores_of(script: Script) -> list[tuple[str, str, list[list[Any]]]]:
    """Return what the stores held at the beginning: parts, each an actor, a table and rows."""
    found = []
    for record in script.records:
        if isinstance(record, StartRecord):
            break
        if isinstance(record, EventRecord) and record.event == STORE_ROWS:
            found.append((record.actor, record.fields["table"], record.fields["rows"]))
    return found


def unknown_turns(script: Script) -> set[int]:
    """Return the turns of which nobody knows whether the log has all: the last ones of each actor.

    Those that share a commit are written down before it. So back from each actor's last turn, none
    behind the last that let something out is certain.
    """
    turns: Mapping[str, list[int]] = {name: [] for name in script.last}
    for record in script.records:
        if isinstance(record, TURNS):
            turns[record.actor].append(record.n)
    found: set[int] = set()
    for mine in turns.values():
        for number in mine[: -GROUP_TURNS - 1 : -1]:
            found.add(number)
            if number in script.sent or number in script.said or number in script.undone:
                break
    return found
