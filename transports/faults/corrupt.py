"""Corrupt: some bytes have a bit flipped, as TCP's own checksum should never let pass.

Bytes in flight: they are flipped with the same chance; none is lost, added or held up. Which bytes
are hit depends on the seed and their position in the stream, not on how TCP cuts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from transports.faults.byte_fault import ByteFault, Piece, Site, Stage, Step

Share = Annotated[float, msgspec.Meta(ge=1e-9, le=1)]


class Corrupt(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="corrupt"):
    """Flips one bit in this `share` of all bytes."""

    in_flight: ClassVar[str] = "is corrupted too"
    in_memory: ClassVar[str] = "a frame that it hits ends the connection: its checksum is wrong"
    over_sockets: ClassVar[str] = "the same, in heartbeats and greetings too"

    share: Annotated[Share, "how likely a byte has a bit flipped, 1e-9 to 1"] = 0.001

    @property
    def probabilistic(self) -> bool:
        """Whether chance decides if it fires."""
        return self.share < 1 or super().probabilistic

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Corrupting(site, self.share)


class Corrupting(Stage):
    """A `Corrupt` at work; it fires on each byte that it flips."""

    def __init__(self, site: Site, share: float) -> None:
        super().__init__(site)
        self._share = share
        self._sound_bytes = self._gap_bytes()  # how many bytes pass before the next is hit

    def _gap_bytes(self) -> int:
        """Draw a geometric number, so that sound bytes cost no draw."""
        uniform = self.site.chance.random()
        return 0 if self._share >= 1 else int(math.log1p(-uniform) / math.log1p(-self._share))

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Flip what is due to be flipped."""
        if self._sound_bytes < len(data):
            changed = bytearray(data)
            while self._sound_bytes < len(changed):
                changed[self._sound_bytes] ^= 1 << int(8 * self.site.chance.random())
                self.fire()
                self._sound_bytes += 1 + self._gap_bytes()
            data = bytes(changed)
        self._sound_bytes -= len(data)
        yield Piece(data, at_us)
