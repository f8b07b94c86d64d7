"""Failed write: a commit fails once, as on a disk with a bad sector."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from actors.actor import Commit
from actors.chance import Stream
from transports.faults.fault import CommitFault, Committing

# What an actor can't write it may try again at once: the third time it is told to wait.
IN_A_ROW = 3
REST_US = 1_000_000


class FailedWrite(CommitFault, frozen=True, kw_only=True, tag_field="kind", tag="failed_write"):
    """Lets a commit fail: the turn never was, and the actor is rebuilt from its store.

    Only turns that write count. The turn's input is dropped, so its sender must ask again. When
    three writes of an actor in a row have failed, `store.writable` is False for a second.
    """

    in_flight: ClassVar[str] = "arrives"
    writes_only: ClassVar[bool] = True

    def at_work(self) -> Committing:
        """Return what acts in one cell."""
        return FailingWrite(self)


class FailingWrite(Committing):
    """A `FailedWrite` at work in one cell."""

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._in_a_row: dict[str, int] = {}
        self._resting: set[str] = set()

    def _decide(self, name: str, wrote: bool) -> Commit | None:
        verdict = super()._decide(name, wrote)
        if verdict is None and wrote:
            self._in_a_row.pop(name, None)
        return verdict

    def act(self, name: str) -> Commit:
        """Let the commit fail."""
        self._in_a_row[name] = self._in_a_row.get(name, 0) + 1
        if self._in_a_row[name] >= IN_A_ROW and name not in self._resting:
            world = self.world
            assert world is not None, "a fault is attached before it begins"
            self._resting.add(name)
            until_us = world.now_us + REST_US
            self.over_us = max(self.over_us, until_us)
            world.at(until_us, partial(self._rested, name))
            world.set_writable(name, self.name, False)
        return Commit.FAILED

    def _rested(self, name: str) -> None:
        self._resting.discard(name)
        assert self.world is not None, "a fault is attached before it begins"
        self.world.set_writable(name, self.name, True)
