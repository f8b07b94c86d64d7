"""Clock drift: a machine's clocks go too fast or too slow, as a cheap or a virtual one's do."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from actors.chance import Stream
from transports.clock import RIGHT_PPM
from transports.faults.fault import Striking, StrikingFault, World

# Quartz is off by less than a thousandth; what a busy virtual machine shows may be much more.
Rate = Annotated[float, msgspec.Meta(ge=0.1, le=10)]


class ClockDrift(StrikingFault, frozen=True, kw_only=True, tag_field="kind", tag="clock_drift"):
    """Lets all clocks of the actors that it hits go at `rate` for `for`: 1.01 is too fast.

    Timers and time-outs go by them, so at 0.95 a minute takes 63 seconds. What the wall clock has
    gained or lost by the end stays. Rates of several drifts at once multiply.
    """

    in_flight: ClassVar[str] = "arrives"
    on_programs: ClassVar[bool] = False  # a program reads the machine's clock

    rate: Annotated[Rate, "how many seconds its clocks count in one"]

    def __post_init__(self) -> None:
        """Refuse one without an end."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError('it needs `for`: how long it lasts, as in for = "10m"')

    def at_work(self) -> Striking:
        """Return what acts in one cell."""
        return Drifting(self)


class Drifting(Striking):
    """A `ClockDrift` at work in one cell; it fires once for each victim."""

    def __init__(self, fault: ClockDrift) -> None:
        super().__init__(fault)
        self._rate_ppm, self._lasts_us = round(fault.rate * RIGHT_PPM), int(fault.lasts or 0)

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Let its clocks drift, and see to it that they go right again."""
        if not world.set_clock_rate(name, self.name, self._rate_ppm):
            return None
        until_us = world.now_us + self._lasts_us
        world.at(until_us, lambda: world.set_clock_rate(name, self.name, RIGHT_PPM))
        return until_us
