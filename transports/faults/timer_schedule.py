"""Timer schedule: an actor's timers fire at the times of a list, as late as they did in a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec

from actors.chance import Stream
from transports.faults.fault import ActorFault, ActorWorking, World

Time = Annotated[int, msgspec.Meta(ge=0)]


class TimerSchedule(ActorFault, frozen=True, kw_only=True, tag_field="kind", tag="timer_schedule"):
    """Lets the timers of the actors that it hits fire late, at the times of a list.

    `pullcord replay LOG --to-scenario` writes it, beside `schedule`. Nothing fires before it is
    due. What the list doesn't have, but was due before the log ended, fires behind the end.
    """

    in_flight: ClassVar[str] = "arrives"
    sim_only: ClassVar[bool] = True  # elsewhere timers are as late as they are

    timers_us: Annotated[
        dict[str, tuple[Time, ...]], "when each timer fired, in microseconds since the start"
    ]
    timeouts_us: Annotated[tuple[Time, ...], "when the time of a question was up, likewise"] = ()
    end_us: Annotated[Time, "when the log ended, likewise"]

    def at_work(self) -> Timekeeping:
        """Return what acts in one cell."""
        return Timekeeping(self)


class Timekeeping(ActorWorking):
    """A `TimerSchedule` at work in one cell; it fires on each timer that it lets come."""

    _fault: TimerSchedule

    def attach(self, world: World, actors: Sequence[str]) -> None:
        """Take a place in a world, and keep its victims' time."""
        super().attach(world, actors)
        for name in self.victims:
            world.keep_time(name, self)

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._next: dict[str | None, int] = {}

    def _times_us(self, subject: str | int) -> Sequence[int]:
        if isinstance(subject, str):
            return self._fault.timers_us.get(subject, ())
        return self._fault.timeouts_us

    def next_us(self, subject: str | int, due_us: int) -> int:
        """Return when it fires: at its next time on the list, if that is not past."""
        times_us = self._times_us(subject)
        at = self._next.get(_key(subject), 0)
        if at < len(times_us):
            return max(times_us[at], due_us)
        return max(self._fault.end_us + 1, due_us)

    def came(self, subject: str | int) -> None:
        """Take note that it fires now."""
        self._next[_key(subject)] = self._next.get(_key(subject), 0) + 1
        self.fired += 1

    @property
    def healed_us(self) -> int | None:
        """When the log ended."""
        return self._fault.end_us


def _key(subject: str | int) -> str | None:
    return subject if isinstance(subject, str) else None
