"""Delay: a message comes later, and what is sent after it on its way waits behind it.

Jitter is a delay that is drawn: `delay = "uniform(10ms, 200ms)"`. With `correlation` a message
takes the delay of the one before it with that probability, as bursts on real links have it (the
idea of netem's correlation, in a form whose distribution stays what was written).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from actors.chance import Durations, Stream
from transports.envelope import Envelope
from transports.faults.fault import LinkFault, LinkWorking, Probability, drawn_us
from transports.verdict import Verdict


class Delay(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="delay"):
    """Holds up the messages that it fires on; those of one way never overtake each other."""

    in_flight: ClassVar[str] = "keeps the time at which it was due"

    delay: Annotated[Durations, "how much later a message arrives"]
    correlation: Annotated[
        Probability, "how likely a message has the delay of the one before it"
    ] = 0.0

    def at_work(self) -> LinkWorking:
        """Return what judges the messages of one cell."""
        return Delaying(self)


class Delaying(LinkWorking):
    """A `Delay` at work in one cell."""

    def __init__(self, fault: Delay) -> None:
        super().__init__(fault)
        self._delay = fault
        self._last_us: int | None = None

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._last_us = None

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Let it come later."""
        chance, correlation = self.chance, self._delay.correlation
        assert chance is not None, "a replication has begun"
        again = self._last_us is not None and correlation > 0 and chance.random() < correlation
        if not again:
            self._last_us = drawn_us(chance, self._delay.delay)
        assert self._last_us is not None, "a delay was drawn"
        return Verdict(later_us=self._last_us)
