"""Clock step: a wall clock jumps, as when NTP sets it after months, or somebody does by hand."""

from __future__ import annotations

from typing import Annotated, ClassVar

from actors.chance import Stream
from transports.faults.fault import Striking, StrikingFault, World
from transports.units import Offset


class ClockStep(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="clock_step"):
    """Lets the wall clocks of the actors that it hits jump by `by`, ahead or back, and stay there.

    Timers and time-outs don't notice. Where the clock goes back, `stamp_us` stands still until the
    clock has caught up, or the actor boots. With `every` it jumps again, for as long as `for` says.
    """

    in_flight: ClassVar[str] = "arrives"
    on_programs: ClassVar[bool] = False  # a program reads the machine's clock

    by: Annotated[Offset, "how far the clock jumps; back if negative"]

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Stepping(self)


class Stepping(Striking):
    """A `ClockStep` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: ClockStep) -> None:
        super().__init__(fault)
        self._by_us = int(fault.by)

    @property
    def until_us(self) -> int | None:
        """When it strikes no more: `for` is how long it goes on."""
        return self.window.end_us

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Let its clock jump."""
        return world.now_us if world.shift_clock(name, self.name, self._by_us) else None
