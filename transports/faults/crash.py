"""Crash: an actor dies at a commit, the point where most systems lose or double something."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from actors.actor import Commit
from actors.chance import Durations
from transports.faults.fault import CommitFault, Committing, drawn_us


class Crash(CommitFault, frozen=True, kw_only=True, tag_field="kind", tag="crash"):
    """Kills the actors that it hits at the end of a turn; after `down` each is started again.

    `point = "before"`: the turn was never committed, so nothing of it is left, and its input is
    lost. `point = "after"`: what it wrote is on disk, what it wanted to send never left.
    """

    in_flight: ClassVar[str] = "arrives, but at an actor that is down it is lost"

    point: Annotated[Literal["before", "after"], "whether the turn's writes are kept"] = "before"
    down: Annotated[Durations, "how long it is down before it is started again"] = Durations.parse(
        "0s"
    )

    def at_work(self) -> Committing:
        """Return what acts in one cell."""
        return Crashing(self)


class Crashing(Committing):
    """A `Crash` at work in one cell."""

    def __init__(self, fault: Crash) -> None:
        super().__init__(fault)
        self._down = fault.down
        self._commit = Commit.KILLED if fault.point == "before" else Commit.SILENCED

    def act(self, name: str) -> Commit:
        """Let the actor die here, and see to it that it is started again."""
        world = self.world
        assert world is not None, "a fault is attached before it begins"
        up_us = world.now_us + drawn_us(self.chance, self._down)
        self.over_us = max(self.over_us, up_us)
        world.at(up_us, lambda: world.revive(name, self.name))
        return self._commit
