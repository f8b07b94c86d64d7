"""Half-close: one direction ends as if its sender had shut it down; the other goes on.

Bytes in flight: those up to the limit pass, then the receiver reads its end of stream; what the
sender sends afterwards is accepted and swallowed. Healing undoes no half-close.
"""

from __future__ import annotations

from typing import ClassVar

from transports.faults.byte_fault import End, Ending, EndingFault, Site, Stage


class HalfClose(EndingFault, frozen=True, kw_only=True, tag_field="kind", tag="half_close"):
    """Ends a direction after `bytes` or `after`; with neither at once."""

    in_flight: ClassVar[str] = "passes, then the direction ends"
    in_memory: ClassVar[str] = "the connection ends, since half a link is none"
    over_sockets: ClassVar[str] = "the receiver reads its end of stream, and closes"

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Ending(site, self, End.HALF_CLOSE)
