"""Reset: a connection ends with RST, at once or after so many bytes or so much time.

Bytes in flight: those up to the limit were sent on, yet a peer that has not read them by the time
the RST arrives may never see them; what the proxy holds is lost. Healing undoes no reset.
"""

from __future__ import annotations

from typing import ClassVar

from transports.faults.byte_fault import End, Ending, EndingFault, Site, Stage


class Reset(EndingFault, frozen=True, kw_only=True, tag_field="kind", tag="reset"):
    """Resets both sides of a connection after `bytes` or `after`; with neither at once."""

    in_flight: ClassVar[str] = "may be lost"
    in_memory: ClassVar[str] = (
        "what is under way is lost, both ways; joined again after the back-off"
    )
    over_sockets: ClassVar[str] = (
        "RST; on UNIX sockets a close. What a peer has not read yet may be lost"
    )

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Ending(site, self, End.RESET)
