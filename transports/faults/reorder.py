"""Reorder: a message comes later, and those sent after it may pass it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from actors.chance import Durations
from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking, drawn_us
from transports.verdict import Verdict


class Reorder(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="reorder"):
    """Lets others pass the messages that it fires on, which a single connection never does.

    It stands for what happens to two requests on two connections.
    """

    in_flight: ClassVar[str] = "keeps the time at which it was due"

    delay: Annotated[Durations, "how much later a message arrives"]

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Reordering(self)


class Reordering(LinkWorking):
    """A `Reorder` at work in one cell."""

    def __init__(self, fault: Reorder) -> None:
        super().__init__(fault)
        self._delay = fault.delay

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Let it be overtaken."""
        return Verdict(later_us=drawn_us(self.chance, self._delay), overtaken=True)
