"""The simulator's network: ways between actors in memory.

A perfect way is not in this file: it is the append of the host's queue, so what a scenario does not
configure costs nothing. A `Link` stands where a way has latency or faults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from transports.codec import Codec
from transports.envelope import Envelope

Post = Callable[[Envelope[Any]], None]


class Judge(Protocol):
    """A fault at work: sees each message on the links that it stands on, in order."""

    name: str

    def drops(self, envelope: Envelope[Any]) -> bool:
        """Return whether this message is lost."""


class Carrier(Protocol):
    """What a link needs of its host."""

    now_us: int

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Put the message behind those that are due at this instant."""

    def deliver_at(self, envelope: Envelope[Any], due_us: int) -> None:
        """Deliver the message at a time that is not past."""

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        """Record that the message is lost."""


class Link:
    """An imperfect way from one actor to another.

    Delivers in order and at most once, or loses; re-sends nothing. Messages are held until the turn
    that sent them has committed. Jitter never reorders: a message arrives no earlier than the one
    before it.
    """

    __slots__ = ("_carrier", "_codec", "_judges", "_last_due_us", "_latency_us", "_outbox")

    def __init__(
        self,
        carrier: Carrier,
        outbox: list[tuple[Link, Envelope[Any]]],
        latency_us: Callable[[], int] | None = None,
        judges: Sequence[Judge] = (),
        codec: Codec | None = None,
    ) -> None:
        self._carrier = carrier
        self._codec = codec
        self._outbox = outbox
        self._latency_us = latency_us
        self._judges = tuple(judges)
        self._last_due_us = 0

    def reset(self) -> None:
        """Forget what is under way, for the next replication."""
        self._last_due_us = 0

    def post(self, envelope: Envelope[Any]) -> None:
        """Take a message from a turn that may still fail."""
        self._outbox.append((self, envelope))

    def release(self, envelope: Envelope[Any]) -> None:
        """Send a message whose turn has committed, as bytes if there is a codec."""
        carrier = self._carrier
        if self._codec is not None:
            envelope = self._codec.decode(self._codec.encode(envelope))
        for judge in self._judges:
            if judge.drops(envelope):
                carrier.lose(envelope, judge.name)
                return
        if self._latency_us is None:
            carrier.deliver_now(envelope)
            return
        due_us = max(carrier.now_us + self._latency_us(), self._last_due_us)
        self._last_due_us = due_us
        carrier.deliver_at(envelope, due_us)
