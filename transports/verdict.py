"""What becomes of a message on its way: the words between faults and links."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from transports.envelope import Envelope


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a fault does to one message.

    `lost` is the end of it. Otherwise it arrives `later_us` later, with so many `copies` behind it,
    and with `overtaken` others may pass it; without, what is sent after it waits behind it.
    """

    lost: bool = False
    later_us: int = 0
    copies: int = 0
    overtaken: bool = False


LOST = Verdict(lost=True)


class Judge(Protocol):
    """A fault at work on links: sees each message on those that it stands on, in order."""

    name: str

    def judge(self, envelope: Envelope[Any]) -> Verdict | None:
        """Return what becomes of this message, None if the fault lets it be."""
