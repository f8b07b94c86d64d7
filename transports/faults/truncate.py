"""Truncate: a message is cut short, and the connection is closed.

A chunk, what one read brings, stands for a message: it is one where a peer sends a message at a
time and waits for the answer. Bytes in flight: what came before the cut arrives, then both sides
read their end of stream; the rest, and what the other direction still carried, is lost. Healing
undoes no close.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from actors.chance import Sizes
from transports.faults.byte_fault import ByteFault, End, Piece, Site, Stage, Step
from transports.faults.fault import Ordinal


class Truncate(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="truncate"):
    """Lets `keep` bytes of the `chunk`-th chunk of a direction pass, never all, then closes."""

    in_flight: ClassVar[str] = "passes up to the cut"
    in_memory: ClassVar[str] = "a chunk is a frame"
    over_sockets: ClassVar[str] = "a chunk is what one read brings"

    chunk: Annotated[Ordinal, "which chunk is cut, counted from 1 for each connection"] = 1
    keep: Annotated[
        Sizes | None, "how many bytes of it pass, less than all; without it any number alike"
    ] = None

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Truncating(site, self)


class Truncating(Stage):
    """A `Truncate` at work."""

    def __init__(self, site: Site, fault: Truncate) -> None:
        super().__init__(site)
        self._fault = fault
        self._seen = 0

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Count the chunks, and cut the one that is meant."""
        self._seen += 1
        if self._seen < self._fault.chunk:
            yield Piece(data, at_us)
            return
        keep, chance = self._fault.keep, self.site.chance
        wanted = int(len(data) * chance.random()) if keep is None else keep.draw(chance)
        kept = data[: min(wanted, len(data) - 1)]
        if kept:
            yield Piece(kept, at_us)
        self.fire()
        yield End.CLOSE
