"""Duplicate: a message arrives more than once.

No link of ours repeats a message. It stands for whatever sits between: a proxy that asks again, a
client that asks twice.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking
from transports.verdict import Verdict


class Duplicate(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="duplicate"):
    """Delivers the messages that it fires on again, right behind the first time."""

    in_flight: ClassVar[str] = "arrives once"

    copies: Annotated[int, msgspec.Meta(ge=1, le=100), "how many copies follow the message"] = 1

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Duplicating(self)


class Duplicating(LinkWorking):
    """A `Duplicate` at work in one cell."""

    def __init__(self, fault: Duplicate) -> None:
        super().__init__(fault)
        self._verdict = Verdict(copies=fault.copies)

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Let copies follow it."""
        return self._verdict
