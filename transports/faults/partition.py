"""Partition: two sides of the network don't reach each other while it lasts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar

from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking
from transports.verdict import LOST, Verdict


class Partition(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="partition"):
    """Loses everything between the two sides, both ways unless `both` is off.

    Nobody is told, as where a route is gone: who waits for an answer finds out by its time-out.
    """

    in_flight: ClassVar[str] = "arrives"

    both: Annotated[bool, "whether the way back is cut too"] = True

    def acts_on(self, source: str, target: str) -> bool:
        """Return whether it stands on the link from `source` to `target`."""
        if super().acts_on(source, target):
            return True
        return self.both and fnmatchcase(target, self.source) and fnmatchcase(source, self.target)

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Parting(self)


class Parting(LinkWorking):
    """A `Partition` at work in one cell; it fires on each message that it loses."""

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Lose it."""
        return LOST
