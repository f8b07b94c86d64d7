"""Commit schedule: the turns of a list fail, which is how a log's failed writes come again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

import msgspec

from actors.actor import Commit
from actors.chance import Stream
from transports.faults.fault import ActorFault, ActorWorking, Ordinal, World

Time = Annotated[int, msgspec.Meta(ge=0)]


class CommitSchedule(
    ActorFault, frozen=True, kw_only=True, tag_field="kind", tag="commit_schedule"
):
    """Lets the turns of a list fail at their commit, as a failed write or a full disk did.

    `pullcord replay LOG --to-scenario` writes it, beside `schedule`, for one actor. A turn is
    counted whether or not it writes, and whatever becomes of it; starts are not.
    """

    in_flight: ClassVar[str] = "arrives"
    on_programs: ClassVar[bool] = False  # nobody sees what a program commits
    sim_only: ClassVar[bool] = True  # elsewhere turns don't come in the log's order

    failed: Annotated[tuple[Ordinal, ...], "the turns whose commit fails, counted from 1"]
    full_us: Annotated[
        tuple[tuple[Time, Time], ...],
        "from when to when its store was not writable, in microseconds since the start",
    ] = ()

    def at_work(self) -> CommitScheduling:
        """Return what acts in one cell."""
        return CommitScheduling(self)


class CommitScheduling(ActorWorking):
    """A `CommitSchedule` at work in one cell; it fires on each turn that it lets fail."""

    _fault: CommitSchedule

    def __init__(self, fault: CommitSchedule) -> None:
        super().__init__(fault)
        self._failed = frozenset(fault.failed)

    def attach(self, world: World, actors: Sequence[str]) -> None:
        """Take a place in a world, and ask to be asked at each commit."""
        super().attach(world, actors)
        world.add_commit_hook(self._decide)

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._seen = dict.fromkeys(self.victims, 0)
        assert self.world is not None, "a fault is attached before it begins"
        for name in self.victims:
            for _, end_us in self._fault.full_us:
                self.world.at(end_us, partial(self.world.set_writable, name, self.name, True))

    def _decide(self, name: str, wrote: bool) -> Commit | None:
        if name not in self._seen:
            return None
        self._seen[name] += 1
        if self._seen[name] not in self._failed:
            return None
        self.fired += 1
        assert self.world is not None, "a fault is attached before it decides"
        now_us = self.world.now_us
        if any(begin_us <= now_us < end_us for begin_us, end_us in self._fault.full_us):
            self.world.set_writable(name, self.name, False)
        return Commit.FAILED

    @property
    def healed_us(self) -> int | None:
        """When it is over: at once, for what the log is of healed at a time that others know."""
        return 0
