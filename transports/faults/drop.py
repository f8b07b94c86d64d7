"""Drop: a message is lost on its way; its sender is told nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking
from transports.verdict import LOST, Verdict


class Drop(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="drop"):
    """Loses the messages that it fires on; the sender is told nothing."""

    in_flight: ClassVar[str] = "arrives"

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Dropping(self)


class Dropping(LinkWorking):
    """A `Drop` at work in one cell."""

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Lose it."""
        return LOST
