"""Black hole: a direction accepts every byte and passes none.

Bytes in flight: lost, as all that comes while it lasts, and lost for good: when it heals the
stream goes on with a gap. The sender's close is held up until it heals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from transports.faults.byte_fault import ByteFault, End, Pause, Site, Stage, Step
from transports.units import Duration


class BlackHole(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="black_hole"):
    """Swallows what is sent; with `close` the connection is closed after so long."""

    in_flight: ClassVar[str] = "is lost"
    in_memory: ClassVar[str] = "each message is lost; 35 s without heartbeats end the connection"
    over_sockets: ClassVar[str] = "the same; those 35 s are at least one of the machine's"

    close: Annotated[
        Duration | None, "when it closes the connection, from when it meets it; without it never"
    ] = None

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Swallowing(site, self.close)


class Swallowing(Stage):
    """A `BlackHole` at work; it fires on each chunk that it swallows, and on its close."""

    silences = True

    def __init__(self, site: Site, close: Duration | None) -> None:
        super().__init__(site)
        self.due_us = None if close is None else site.now_us() + close

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Swallow it."""
        self.fire()
        yield from ()

    def on_end(self, at_us: int) -> Iterator[Pause]:
        """Tell nobody."""
        self.fire()
        yield Pause(None)

    def on_due(self) -> End:
        """Give up the connection."""
        self.fire()
        return End.CLOSE
