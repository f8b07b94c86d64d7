"""Slow close: the end of a stream reaches the other side late.

Bytes in flight: they pass as ever. An end that is held up goes on when the fault heals.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from actors.chance import Durations
from transports.faults.byte_fault import ByteFault, Pause, Site, Stage


class SlowClose(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="slow_close"):
    """Holds up a peer's close, or its RST, by `delay`."""

    in_flight: ClassVar[str] = "passes"

    delay: Annotated[Durations, "how much later the end of the stream arrives"]

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Lingering(site, self.delay)


class Lingering(Stage):
    """A `SlowClose` at work; it fires on each close."""

    def __init__(self, site: Site, delay: Durations) -> None:
        super().__init__(site)
        self._delay = delay

    def on_end(self, at_us: int) -> Iterator[Pause]:
        """Hold it up."""
        self.fire()
        yield Pause(at_us + self._delay.draw(self.site.chance))
