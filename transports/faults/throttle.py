"""Throttle: a direction carries so many bytes a second and no more.

Bytes in flight: they join the line and pass at the rate; none is lost. When it heals what waits
goes on at once. What the line can't take yet stays with the sender, whose own sends stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from transports.faults.byte_fault import ByteFault, Pause, Piece, Site, Stage, Step
from transports.units import Size

PIECES_A_SECOND = 20  # bytes trickle instead of coming in bursts; more would only cost sends


class Throttle(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="throttle"):
    """Lets `rate` bytes a second pass on each connection."""

    in_flight: ClassVar[str] = "passes at the rate"
    in_memory: ClassVar[str] = (
        "a message takes the time of its frame; one that takes over 60 s ends the connection"
    )
    over_sockets: ClassVar[str] = (
        "the same, for heartbeats too; at 20 times the speed 20 times the bytes in "
        "one of the machine's seconds"
    )

    rate: Annotated[Size, "how many bytes a second pass"]

    def __post_init__(self) -> None:
        """Refuse a rate of nothing."""
        super().__post_init__()
        if self.rate < 1:
            raise ValueError('"rate" must be at least 1B: a partition lets nothing pass')

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Throttling(site, int(self.rate))


class Throttling(Stage):
    """A `Throttle` at work: a line that is free again when its last byte has passed."""

    def __init__(self, site: Site, rate: int) -> None:
        super().__init__(site)
        self._rate = rate
        self._piece_bytes = max(1, rate // PIECES_A_SECOND)
        self._free_us = 0

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Let it trickle; each piece has passed when its last byte has."""
        for start in range(0, len(data), self._piece_bytes):
            piece = data[start : start + self._piece_bytes]
            took_us = -(-len(piece) * 1_000_000 // self._rate)
            self._free_us = max(at_us, self._free_us) + took_us
            self.fire()
            yield Pause(self._free_us)
            yield Piece(piece, self._free_us)
