"""The connections of a scenario's actors, and the byte faults that stand on them.

Whoever carries the connections, over sockets or as a model, tells of each that comes and goes; each
gets the stages of the faults that act on it, in the order in which the scenario has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from transports.faults.byte_fault import DOWN, UP, ByteWorking, Direction, Ends, Stage
from transports.faults.fault import World


class Carried(Protocol):
    """A connection on which stages can be put."""

    def set_stages(self, stages: Mapping[Direction, tuple[Stage, ...]]) -> None:
        """Replace the stages of both directions; each new one begins to act."""


class Wiring:
    """The open connections of one replication after the other, in the order of their opening."""

    def __init__(self, world: World, faults: Sequence[ByteWorking]) -> None:
        self.world = world
        self._faults = tuple(faults)
        self._open: dict[Ends, Carried] = {}
        self._opened: dict[tuple[str, str], int] = {}
        self._fired: dict[Ends, str] = {}  # which fault was the last to do something
        self._culprits: dict[tuple[str, str], str] = {}  # likewise, of all connections of two
        for fault in faults:
            fault.begun, fault.healed = self._begin, self._put_in_place
            fault.fires = partial(self._note, fault.name)

    def _note(self, fault: str, ends: Ends) -> None:
        self._fired[ends] = self._culprits[ends[:2]] = fault

    def reset(self) -> None:
        """Forget every connection, before a replication."""
        self._open.clear()
        self._opened.clear()
        self._fired.clear()
        self._culprits.clear()

    @property
    def connections(self) -> tuple[Ends, ...]:
        """Those that are open, the oldest first."""
        return tuple(self._open)

    def concerns(self, client: str, server: str) -> bool:
        """Whether a fault may ever act between two actors."""
        return any(fault.directions(client, server) for fault in self._faults)

    def opened(self, client: str, server: str, connection: Carried) -> Ends:
        """Let the faults act on a connection that comes up, and return what it is called."""
        pair = (client, server)
        self._opened[pair] = number = self._opened.get(pair, 0) + 1
        ends = Ends(client, server, number)
        self._open[ends] = connection
        for fault in self._faults:
            if fault.active:
                fault.meet(ends)
        self._put_in_place([ends])
        return ends

    def culprit(self, one: str, other: str) -> str | None:
        """Return the fault that was the last to do something between two actors, if any was."""
        return self._culprits.get((one, other)) or self._culprits.get((other, one))

    def blamed(self, ends: Ends) -> str | None:
        """Return the fault that was the last to do something to an open connection, if any was."""
        return self._fired.get(ends)

    def broke(self, ends: Ends) -> None:
        """Record that a connection ended before its actors did, if a fault had a hand in it."""
        fault = self.blamed(ends)
        if fault is not None:
            self.world.tell(ends.client, fault, "disconnect")

    def closed(self, ends: Ends) -> None:
        """Let go of a connection that is over."""
        self._open.pop(ends, None)
        self._fired.pop(ends, None)
        for fault in self._faults:
            fault.forget(ends)

    def _begin(self, fault: ByteWorking) -> None:
        """Let a fault meet the open connections."""
        connections = list(self._open)
        for ends in connections:
            fault.meet(ends)
        self._put_in_place([ends for ends in connections if fault.acts_at(ends)])

    def _put_in_place(self, connections: Sequence[Ends]) -> None:
        for ends in connections:
            if ends not in self._open:
                continue  # what was put on another one has just ended it
            self._open[ends].set_stages(
                {
                    way: tuple(
                        stage
                        for fault in self._faults
                        if (stage := fault.stage(ends, way)) is not None
                    )
                    for way in (UP, DOWN)
                }
            )
