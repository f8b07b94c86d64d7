"""A link in memory: in order, at most once, nothing before its turn has committed."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.messages import GetGraphRun
from transports.codec import Codec
from transports.envelope import Envelope
from transports.memory import Link, Post, Ways
from transports.verdict import LOST, Verdict


class Wire:
    """A host that delivers what links hand it, by time and then in the order of handing over."""

    def __init__(self) -> None:
        self.now_us = 0
        self.outbox: list[tuple[Link, Envelope[Any]]] = []
        self.heap: list[tuple[int, int, Envelope[Any]]] = []
        self.lost: list[tuple[Any, str]] = []
        self.serial = 0

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        self.deliver_at(envelope, self.now_us)

    def deliver_at(self, envelope: Envelope[Any], due_us: int) -> None:
        assert due_us >= self.now_us, "a message can't arrive in the past"
        self.serial += 1
        heappush(self.heap, (due_us, self.serial, envelope))

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        self.lost.append((envelope.body, fault))

    def commit(self) -> None:
        """End a turn."""
        for link, envelope in self.outbox:
            link.release(envelope)
        self.outbox.clear()

    def arrivals(self) -> list[tuple[int, Any]]:
        """When each message arrives, and which, in the order of arrival."""
        found = []
        while self.heap:
            due_us, _, envelope = heappop(self.heap)
            found.append((due_us, envelope.body))
        return found


class Loses:
    """A judge that loses the messages with these bodies and counts what it saw."""

    def __init__(self, name: str, *bodies: Any) -> None:
        self.name = name
        self.bodies = bodies
        self.seen: list[Any] = []

    def judge(self, envelope: Envelope[Any]) -> Verdict | None:
        self.seen.append(envelope.body)
        return LOST if envelope.body in self.bodies else None


def message(body: Any) -> Envelope[Any]:
    return Envelope(1, "a", "b", 0, 0, body)


def test_a_message_is_held_until_its_turn_has_committed() -> None:
    wire = Wire()
    for link in (Link(wire, wire.outbox), Link(wire, wire.outbox, latency_us=lambda: 5)):
        link.post(message("hello"))
        assert wire.arrivals() == []
        wire.outbox.clear()  # the turn failed
        wire.commit()
        assert wire.arrivals() == []
        link.post(message("again"))
        wire.commit()
        assert [body for _, body in wire.arrivals()] == ["again"]
        wire.commit()
        assert wire.arrivals() == [], "at most once"


def test_latency_counts_from_the_commit() -> None:
    wire = Wire()
    link = Link(wire, wire.outbox, latency_us=lambda: 30)
    wire.now_us = 100
    link.post(message("hello"))
    wire.commit()
    assert wire.arrivals() == [(130, "hello")]


def test_no_latency_is_this_instant() -> None:
    wire = Wire()
    wire.now_us = 100
    link = Link(wire, wire.outbox)
    link.post(message(1))
    link.post(message(2))
    wire.commit()
    assert wire.arrivals() == [(100, 1), (100, 2)]


SENDS = st.tuples(st.integers(0, 50), st.integers(0, 1_000), st.booleans())


@given(st.lists(SENDS, max_size=30))
def test_jitter_never_reorders_and_loses_nothing_else(
    sends: list[tuple[int, int, bool]],
) -> None:
    wire = Wire()
    latencies = iter([latency for _, latency, lost in sends if not lost])
    judge = Loses("drop", *[n for n, (_, _, lost) in enumerate(sends) if lost])
    link = Link(wire, wire.outbox, latency_us=lambda: next(latencies), judges=[judge])
    sent_at = {}
    for number, (wait_us, _, _) in enumerate(sends):
        wire.now_us += wait_us
        sent_at[number] = wire.now_us
        link.post(message(number))
        wire.commit()
    arrived = wire.arrivals()
    numbers = [body for _, body in arrived]
    assert numbers == [n for n, (_, _, lost) in enumerate(sends) if not lost]
    assert wire.lost == [(n, "drop") for n, (_, _, lost) in enumerate(sends) if lost]
    for due_us, number in arrived:
        earliest = max(sent_at[m] + sends[m][1] for m in numbers if m <= number)
        assert due_us == earliest, "as soon as its own latency and the order allow"


def test_judges_are_asked_in_order_until_one_drops() -> None:
    wire = Wire()
    first, second = Loses("first", 1), Loses("second", 1, 2)
    link = Link(wire, wire.outbox, judges=[first, second])
    for body in (1, 2, 3):
        link.post(message(body))
    assert first.seen == [], "a turn that may still fail is not judged"
    wire.commit()
    assert (first.seen, second.seen) == ([1, 2, 3], [2, 3])
    assert wire.lost == [(1, "first"), (2, "second")]
    assert wire.arrivals() == [(0, 3)]


@pytest.mark.parametrize("reset", [False, True])
def test_reset_forgets_what_is_under_way(reset: bool) -> None:
    wire = Wire()
    latencies = iter([1_000, 1])
    link = Link(wire, wire.outbox, latency_us=lambda: next(latencies))
    link.post(message("slow"))
    wire.commit()
    if reset:
        link.reset()
    link.post(message("fast"))
    wire.commit()
    assert (1 if reset else 1_000, "fast") in wire.arrivals()


def test_a_way_is_made_once_when_it_is_first_taken() -> None:
    made: list[tuple[str, str]] = []
    sent: list[Envelope[Any]] = []

    def make(source: str, target: str) -> Post:
        made.append((source, target))
        return sent.append

    ways = Ways("a", ["a", "b", "c"], make)
    assert made == []
    ways["b"](message(1))
    ways["b"](message(2))
    assert made == [("a", "b")]
    assert [envelope.body for envelope in sent] == [1, 2]
    with pytest.raises(KeyError):
        ways["nobody"]
    assert made == [("a", "b")]


@pytest.mark.parametrize(
    ("how", "plain"),
    [
        ({}, True),
        ({"latency_us": lambda: 0}, False),
        ({"judges": [Loses("drop")]}, False),
        ({"codec": Codec([GetGraphRun])}, False),
    ],
)
def test_a_link_is_plain_if_it_only_hands_over(how: dict[str, Any], plain: bool) -> None:
    wire = Wire()
    assert Link(wire, wire.outbox, **how).is_plain is plain
