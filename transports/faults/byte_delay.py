"""Delay of bytes: each chunk comes later, and what is sent after it waits behind it.

Bytes in flight: those that the proxy has not sent on yet are held up like all others; none is lost
or reordered. When it heals what is held goes on at once. An end of stream is held up too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from actors.chance import Durations
from transports.faults.byte_fault import ByteFault, Pause, Piece, Site, Stage, Step
from transports.faults.fault import Probability


class ByteDelay(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="delay"):
    """Holds each chunk for a `delay` counted from when it came: the rate stays, all is later.

    With `correlation` a chunk takes the delay of the one before it with that probability.
    """

    in_flight: ClassVar[str] = "is held up too"

    delay: Annotated[Durations, "how much later bytes arrive"]
    correlation: Annotated[Probability, "how likely a chunk has the delay of the one before it"] = (
        0.0
    )

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Delaying(site, self)


class Delaying(Stage):
    """A `ByteDelay` at work; it fires on each chunk, and on the end of the stream."""

    def __init__(self, site: Site, fault: ByteDelay) -> None:
        super().__init__(site)
        self._fault = fault
        self._delay_us: int | None = None

    def _due_us(self, at_us: int) -> int:
        chance, correlation = self.site.chance, self._fault.correlation
        again = self._delay_us is not None and correlation > 0 and chance.random() < correlation
        if self._delay_us is None or not again:
            self._delay_us = self._fault.delay.draw(chance)
        self.fire()
        return at_us + self._delay_us

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Hold it."""
        due_us = self._due_us(at_us)
        yield Pause(due_us)
        yield Piece(data, due_us)

    def on_end(self, at_us: int) -> Iterator[Pause]:
        """Hold the end too: it comes after the bytes before it."""
        yield Pause(self._due_us(at_us))
