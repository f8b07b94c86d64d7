"""Suspend: a machine sleeps; its processes don't know that time passes."""

from __future__ import annotations

from typing import ClassVar

from actors.chance import Stream
from transports.faults.fault import Striking, StrikingFault, World


class Suspend(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="suspend"):
    """Puts the actors that it hits to sleep for `for`, as a laptop whose lid is closed.

    Their monotonic clocks stop: timers and time-outs go on where they were. The wall clock has
    jumped when they wake.
    """

    in_flight: ClassVar[str] = "waits until the victim wakes, then arrives in order"

    def __post_init__(self) -> None:
        """Refuse one without an end, which is a kill."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError('it needs `for`: how long it lasts, as in for = "10m"')

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Suspending(self)


class Suspending(Striking):
    """A `Suspend` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: Suspend) -> None:
        super().__init__(fault)
        self._lasts_us = int(fault.lasts or 0)

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Put it to sleep, and see to it that it wakes."""
        if not world.suspend(name, self.name, clock_stops=True):
            return None
        until_us = world.now_us + self._lasts_us
        world.at(until_us, lambda: world.resume(name, self.name))
        return until_us
