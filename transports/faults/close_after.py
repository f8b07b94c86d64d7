"""Close after: a connection is closed when a direction has carried so many bytes, or so late.

Bytes in flight: those up to the limit arrive, then both sides read their end of stream; what comes
after the limit, and what the other direction still carried, is lost. Healing undoes no close.
"""

from __future__ import annotations

from typing import ClassVar

from transports.faults.byte_fault import End, Ending, EndingFault, Site, Stage


class CloseAfter(EndingFault, frozen=True, kw_only=True, tag_field="kind", tag="close_after"):
    """Closes a connection after `bytes` or `after`; with neither at once."""

    in_flight: ClassVar[str] = "passes up to the limit"
    in_memory: ClassVar[str] = "counts the bytes of frames and greetings"
    over_sockets: ClassVar[str] = "counts those of heartbeats too"

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Ending(site, self, End.CLOSE)
