"""Schedule: messages arrive at the times of a list, which is how a log becomes a scenario."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking
from transports.verdict import LOST, Verdict

Time = Annotated[int, msgspec.Meta(ge=0)]


class Schedule(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="schedule"):
    """Lets the messages of one way arrive at the times of a list, each at its own, or never.

    `pullcord replay LOG --to-scenario` writes it: so what came over sockets comes in the same order
    in the simulator. What is sent behind the last of the list goes its way as always.
    """

    in_flight: ClassVar[str] = "arrives"

    arrivals_us: Annotated[
        tuple[tuple[Time, ...], ...],
        "of each message its arrivals in microseconds since the start, none if it is lost",
    ]

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Scheduling(self)


class Scheduling(LinkWorking):
    """A `Schedule` at work in one cell; it fires on each message that is on its list."""

    def __init__(self, fault: Schedule) -> None:
        super().__init__(fault)
        self._arrivals_us = fault.arrivals_us

    def judge(self, envelope: Envelope[Any]) -> Verdict | None:
        """Return when this message arrives, None behind the end of the list."""
        if not self.fires(envelope):
            return None
        if self._seen > len(self._arrivals_us):
            self.fired -= 1
            return None
        return self.verdict(envelope)

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Say when it arrives; what is due already comes at once. Its copies come with it."""
        times_us = self._arrivals_us[self._seen - 1]
        if not times_us:
            return LOST
        assert self.world is not None, "a fault is attached before it judges"
        later_us = max(times_us[0] - self.world.now_us, 0)
        return Verdict(later_us=later_us, copies=len(times_us) - 1, overtaken=True)

    @property
    def healed_us(self) -> int | None:
        """When the last message of the list has arrived."""
        last_us = max((max(times, default=0) for times in self._arrivals_us), default=0)
        window_us = super().healed_us
        return last_us if window_us is None else min(last_us, window_us)
