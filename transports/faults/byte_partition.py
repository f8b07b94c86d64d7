"""Partition of bytes: nothing passes while it lasts, and nothing is closed.

Bytes in flight: what is under way waits, as TCP sends it again until the way is back; when the
fault heals it goes on, in order and without loss. A close or an RST waits too. A client that
connects meanwhile is accepted by the system, but reaches the service only afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from transports.faults.byte_fault import (
    DOWN,
    UP,
    ByteFault,
    Direction,
    Pause,
    Piece,
    Site,
    Stage,
    Step,
)


class BytePartition(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="partition"):
    """Stops both ways, or the one that `from` and `to` say if `both` is off."""

    in_flight: ClassVar[str] = "waits"

    both: Annotated[bool, "whether the way back is cut too"] = True

    def directions(self, client: str, server: str) -> tuple[Direction, ...]:
        """Return the directions it stands on between ends of these names, maybe none."""
        ways = super().directions(client, server)
        return (UP, DOWN) if ways and self.both else ways

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Parting(site)


class Parting(Stage):
    """A `BytePartition` at work; it fires on each chunk, close or connection that waits for it."""

    opens_late = True

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Hold it."""
        self.fire()
        yield Pause(None)
        yield Piece(data, at_us)

    def on_end(self, at_us: int) -> Iterator[Pause]:
        """Hold it."""
        self.fire()
        yield Pause(None)
