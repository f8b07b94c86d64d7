"""Clock skew: a wall clock is wrong for a while, as on a machine that nobody has set."""

from __future__ import annotations

from typing import Annotated, ClassVar

from actors.chance import Stream
from transports.faults.fault import Striking, StrikingFault, World
from transports.units import Offset


class ClockSkew(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="clock_skew"):
    """Lets the wall clocks of the actors that it hits be off by `by` for `for`, then right again.

    Timers and time-outs don't notice. Whenever the clock goes back, at the one end or the other,
    `stamp_us` stands still until the clock has caught up, or the actor boots.
    """

    in_flight: ClassVar[str] = "arrives"
    on_programs: ClassVar[bool] = False  # a program reads the machine's clock

    by: Annotated[Offset, "how far the clock is ahead; behind if negative"]

    def __post_init__(self) -> None:
        """Refuse one without an end, which is a step."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError('it needs `for`, as in for = "10m"; what stays is a clock_step')

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Skewing(self)


class Skewing(Striking):
    """A `ClockSkew` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: ClockSkew) -> None:
        super().__init__(fault)
        self._by_us, self._lasts_us = int(fault.by), int(fault.lasts or 0)

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Set its clock wrong, and see to it that it is set right."""
        if not world.shift_clock(name, self.name, self._by_us):
            return None
        until_us = world.now_us + self._lasts_us
        world.at(until_us, lambda: world.shift_clock(name, self.name, -self._by_us))
        return until_us
