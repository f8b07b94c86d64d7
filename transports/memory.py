"""The simulator's network: ways between actors in memory.

A perfect way is not in this file: it is the append of the host's queue, so what a scenario does not
configure costs nothing. A `Link` stands where a way has latency or faults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from transports.codec import Codec
from transports.envelope import Envelope
from transports.verdict import Judge

Post = Callable[[Envelope[Any]], None]
DOWN = "down"  # what loses a message to an actor that is down


class Everywhere(dict[str, Post]):
    """The ways out of an actor that are all alike, whatever the target's name."""

    def __init__(self, post: Post) -> None:
        self._post = post

    def __missing__(self, _name: str) -> Post:
        return self._post


class Carrier(Protocol):
    """What a link needs of its host."""

    @property
    def now_us(self) -> int:
        """What time it is, in microseconds."""

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
    before it. Only a fault brings copies, and lets one message be overtaken by others.
    """

    __slots__ = (
        "_carrier", "_codec", "_diverted", "_judges", "_last_due_us", "_latency_us", "_outbox",
    )  # fmt: skip

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
        self._last_due_us = -1  # of those that did not arrive at once
        self._diverted = False  # to a connection in the place of the host

    @property
    def is_plain(self) -> bool:
        """Whether it only hands over to its host: it has no latency, fault, codec or connection."""
        judged = bool(self._judges) or self._latency_us is not None or self._codec is not None
        return not (judged or self._diverted)

    def over(self, carrier: Carrier) -> Link:
        """Deliver through a connection in the place of the host itself; return the link."""
        self._carrier, self._diverted = carrier, True
        return self

    def reset(self) -> None:
        """Forget what is under way, for the next replication."""
        self._last_due_us = -1

    def post(self, envelope: Envelope[Any]) -> None:
        """Take a message from a turn that may still fail."""
        self._outbox.append((self, envelope))

    def release(self, envelope: Envelope[Any]) -> None:
        """Send a message whose turn has committed, as bytes if there is a codec."""
        carrier = self._carrier
        if self._codec is not None:
            envelope = self._codec.decode(self._codec.encode(envelope))
        later_us = copies = 0
        overtaken = False
        for judge in self._judges:
            verdict = judge.judge(envelope)
            if verdict is None:
                continue
            if verdict.lost:
                carrier.lose(envelope, judge.name)
                return
            later_us += verdict.later_us
            copies += verdict.copies
            overtaken |= verdict.overtaken
        if self._latency_us is not None:
            later_us += self._latency_us()
        due_us = carrier.now_us + later_us
        if not overtaken:
            due_us = max(due_us, self._last_due_us)
        # One that was held until this very instant may not have arrived yet, so it is waited for.
        waits = due_us > carrier.now_us or self._latency_us is not None
        waits |= not overtaken and due_us == self._last_due_us
        if waits and not overtaken:
            self._last_due_us = due_us
        for _ in range(1 + copies):
            if waits:
                carrier.deliver_at(envelope, due_us)
            else:
                carrier.deliver_now(envelope)


class Ways(dict[str, Post]):
    """The ways from one actor to `targets`, each made by `make` when it is first taken.

    Looked up by `[]`; KeyError for whoever is no target.
    """

    def __init__(
        self, source: str, targets: Collection[str], make: Callable[[str, str], Post]
    ) -> None:
        super().__init__()
        self._source, self._targets, self._make = source, targets, make

    def __missing__(self, target: str) -> Post:
        if target not in self._targets:
            raise KeyError(target)
        way = self[target] = self._make(self._source, target)
        return way
