"""Pause: a process is stopped and goes on later, as SIGSTOP and SIGCONT do to it."""

from __future__ import annotations

from typing import ClassVar

from actors.chance import Stream
from transports.faults.fault import Striking, StrikingFault, World


class Pause(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="pause"):
    """Stops the actors that it hits for `for`, while their clocks go on.

    Timers and time-outs that were due meanwhile come when they go on, after the messages that wait.
    A machine that swaps, or a garbage collection of minutes, looks like this.
    """

    in_flight: ClassVar[str] = "waits until the victim goes on, then arrives in order"

    def __post_init__(self) -> None:
        """Refuse one without an end, which is a kill."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError('it needs `for`: how long it lasts, as in for = "10m"')

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Pausing(self)


class Pausing(Striking):
    """A `Pause` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: Pause) -> None:
        super().__init__(fault)
        self._lasts_us = int(fault.lasts or 0)

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Stop it, and see to it that it goes on."""
        if not world.suspend(name, self.name, clock_stops=False):
            return None
        until_us = world.now_us + self._lasts_us
        world.at(until_us, lambda: world.resume(name, self.name))
        return until_us
