"""Hold: messages are kept back, and released together when it ends."""

from __future__ import annotations

from typing import Any, ClassVar

from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking
from transports.verdict import Verdict


class Hold(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="hold"):
    """Keeps the messages that it fires on until its time is over, then lets them go in order.

    It stands for a path that buffers, as TCP does through a short outage. `for` is required.
    """

    in_flight: ClassVar[str] = "arrives when it was due"

    def __post_init__(self) -> None:
        """Refuse a hold that never ends."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError("a hold needs `for`: what is never released is a partition")

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Holding(self)


class Holding(LinkWorking):
    """A `Hold` at work in one cell."""

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Let it wait for the end."""
        end_us = self.window.end_us
        assert end_us is not None, "a hold has an end"
        assert self.world is not None, "a fault is attached before it judges"
        return Verdict(later_us=end_us - self.world.now_us)
