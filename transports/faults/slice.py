"""Slice: the stream comes in small pieces, with pauses between them.

Bytes in flight: they are cut like all others; none is lost or reordered. When it heals the rest of
a chunk goes on without pauses. TCP may still join pieces that follow each other closely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from actors.chance import Durations, Sizes
from transports.faults.byte_fault import ByteFault, Pause, Piece, Site, Stage, Step


class Slice(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="slice"):
    """Cuts each chunk into pieces of `size` bytes, at least 1, and waits `pause` between two."""

    in_flight: ClassVar[str] = "is cut too"
    in_memory: ClassVar[str] = (
        "a message arrives with its last piece; without `pause` refused: exit 2"
    )
    over_sockets: ClassVar[str] = "each read brings a piece"

    size: Annotated[Sizes, "how many bytes a piece has, at least 1"]
    pause: Annotated[Durations, "the time between two pieces of a chunk"] = Durations.parse("0s")

    @property
    def needs_sockets(self) -> bool:
        """Whether it does something over sockets alone, where a message may come in pieces."""
        return self.pause.constant == 0

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Slicing(site, self)


class Slicing(Stage):
    """A `Slice` at work; it fires on each chunk that it cuts."""

    def __init__(self, site: Site, fault: Slice) -> None:
        super().__init__(site)
        self._fault = fault

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Cut it."""
        chance, fault = self.site.chance, self._fault
        start = 0
        while True:
            end = start + max(1, fault.size.draw(chance))
            yield Piece(data[start:end], at_us)
            if end >= len(data):
                return
            if not start:
                self.fire()
            start = end
            pause_us = fault.pause.draw(chance)
            if pause_us:
                at_us += pause_us
                yield Pause(at_us)
