"""Disk full: nothing can be written while it lasts."""

from __future__ import annotations

from typing import ClassVar

from actors.actor import Commit
from actors.chance import Stream
from transports.faults.fault import CommitFault, Committing


class DiskFull(CommitFault, frozen=True, kw_only=True, tag_field="kind", tag="disk_full"):
    """Lets every commit that writes fail while it lasts; `store.writable` is False meanwhile.

    A turn that only reads goes on as always. The first write after its end makes the store
    writable again.
    """

    in_flight: ClassVar[str] = "arrives"
    writes_only: ClassVar[bool] = True

    def at_work(self) -> Committing:
        """Return what acts in one cell."""
        return Filling(self)


class Filling(Committing):
    """A `DiskFull` at work in one cell; it fires on each commit that fails."""

    def __init__(self, fault: DiskFull) -> None:
        super().__init__(fault)
        self._full: set[str] = set()

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._full.clear()

    def act(self, name: str) -> Commit:
        """Let the commit fail, and tell the actor by its store."""
        world = self.world
        assert world is not None, "a fault is attached before it begins"
        if name not in self._full:
            self._full.add(name)
            end_us = self.window.end_us
            if end_us is not None:
                world.at(end_us, lambda: self._empty(name))
        world.set_writable(name, self.name, False)
        return Commit.FAILED

    def _empty(self, name: str) -> None:
        self._full.discard(name)
        assert self.world is not None, "a fault is attached before it begins"
        self.world.set_writable(name, self.name, True)
