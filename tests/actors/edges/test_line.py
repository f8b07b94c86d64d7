"""One connection of an edge: what is posted is written, in order, and it ends with a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio
from trio.testing import wait_all_tasks_blocked

from actors.edges.line import QUEUE_LIMIT, Line
from transports.codec import FrameError
from transports.connection import BrokenLinkError, Connection, Peer, Timings, converse
from transports.frames import FrameBuffer
from transports.pipe import open_pipe

TIMINGS = Timings()
PEER = Peer(protocol=2, name="peer", boot="b")


class Ends:
    """A line, what it heard, why it ended, and the other end of its connection."""

    def __init__(self) -> None:
        here, there = open_pipe()
        self.near = Connection(here, PEER, TIMINGS, FrameBuffer())
        self.far = Connection(there, PEER, TIMINGS, FrameBuffer())
        self.line = Line(self.near)
        self.heard: list[bytes] = []
        self.reason = ""

    async def hear(self, frame: bytes) -> None:
        if frame == b"malformed":
            raise FrameError("not an envelope")
        self.heard.append(frame)

    async def run(self) -> None:
        self.reason = await converse(self.near, lambda _connection: self.line.run(self.hear))


@asynccontextmanager
async def running() -> AsyncIterator[Ends]:
    ends = Ends()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.run)
        await wait_all_tasks_blocked()
        yield ends
        nursery.cancel_scope.cancel()


async def test_what_is_posted_is_written_in_order() -> None:
    async with running() as it:
        for number in range(10):
            assert it.line.post(b"%d" % number)
        assert not it.line.idle
        assert [await it.far.receive() for _ in range(10)] == [b"%d" % n for n in range(10)]
        await wait_all_tasks_blocked()
        assert it.line.idle


async def test_what_comes_is_heard_until_it_is_stopped_and_what_waits_is_still_written() -> None:
    async with running() as it:
        await it.far.send(b"one")
        await wait_all_tasks_blocked()
        it.line.stop_reading()
        await wait_all_tasks_blocked()
        await it.far.send(b"two")
        assert it.line.post(b"three")
        assert await it.far.receive() == b"three"
        assert (it.heard, it.reason) == ([b"one"], "")


async def test_a_line_that_is_stopped_before_it_runs_hears_nothing() -> None:
    ends = Ends()
    ends.line.stop_reading()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends.run)
        await ends.far.send(b"one")
        await wait_all_tasks_blocked()
        assert ends.heard == []
        nursery.cancel_scope.cancel()


async def test_it_takes_no_more_than_its_queue_holds() -> None:
    async with running() as it:
        frames = 0
        while it.line.post(b"x" * 60_000):
            frames += 1
            await wait_all_tasks_blocked()
        assert QUEUE_LIMIT <= frames <= QUEUE_LIMIT + 3


async def test_it_ends_with_the_reason_for_which_it_is_closed() -> None:
    async with running() as it:
        it.line.post(b"one")
        it.line.close("revoked: by its owner")
        it.line.close("another reason")
        assert not it.line.post(b"two")
        with suppress(BrokenLinkError):
            assert await it.far.receive() == b"one", "it may have left before"
            await it.far.receive()
        await wait_all_tasks_blocked()
        assert it.reason == "revoked: by its owner"


async def test_it_ends_with_its_link_and_with_what_is_malformed() -> None:
    async with running() as it:
        await it.far.aclose()
        await wait_all_tasks_blocked()
        assert it.reason == "the peer closed the connection"
        assert not it.line.post(b"one")
    async with running() as it:
        await it.far.send(b"malformed")
        await wait_all_tasks_blocked()
        assert it.reason == "not an envelope"
