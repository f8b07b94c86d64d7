"""A connection whose stream takes a frame, or a part of one, without waiting."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.frames import FrameBuffer
from transports.pipe import PipeStream, open_pipe

PEER = Peer(protocol=1, name="peer", boot="1")
TIMINGS = Timings(frame_s=60, heartbeat_s=10, silence_s=35)


def takes_at_once(room_bytes: int) -> tuple[Connection, PipeStream]:
    """A connection over a stream that takes so many bytes at once, and no more than once."""
    here, there = open_pipe()
    connection = Connection(here, PEER, TIMINGS, FrameBuffer())
    left = [room_bytes]

    def take(item: bytes) -> int:
        taken = item[: left.pop() if left else 0]
        here._outgoing.bytes += taken
        here._outgoing.change()
        return len(taken)

    connection._take = take
    return connection, there


async def read_frames(there: PipeStream, count: int) -> list[bytes]:
    buffer = FrameBuffer()
    frames: list[bytes] = []
    while len(frames) < count:
        buffer.feed(await there.receive())
        while (frame := buffer.take()) is not None:
            frames.append(frame)
    return frames


async def test_a_frame_that_is_taken_at_once_needs_no_waiting() -> None:
    connection, there = takes_at_once(100)
    assert connection.send_nowait(b"first")
    assert not connection.send_nowait(b"second")
    await connection.send(b"second")
    assert await read_frames(there, 2) == [b"first", b"second"]


@pytest.mark.parametrize("room_bytes", [0, 1, 4, 7, 8])
async def test_send_goes_on_where_send_nowait_stopped(
    room_bytes: int, autojump_clock: MockClock
) -> None:
    begun_s = autojump_clock.current_time()
    connection, there = takes_at_once(room_bytes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.keep_alive)
        assert not connection.send_nowait(b"first")
        await trio.sleep(15 if room_bytes else 5)  # no heartbeat comes between a frame's parts
        await connection.send(b"first")
        await connection.send(b"second")
        assert await read_frames(there, 2) == [b"first", b"second"]
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() > begun_s


async def test_no_heartbeat_comes_into_a_frame_that_begins_at_its_instant(
    autojump_clock: MockClock,
) -> None:
    for _ in range(20):  # the scheduler shuffles tasks, and either may be the first
        due_s = autojump_clock.current_time() + TIMINGS.heartbeat_s
        connection, there = takes_at_once(6)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.keep_alive)
            await trio.sleep_until(due_s)
            assert not connection.send_nowait(b"first")
            await trio.sleep(5)
            await connection.send(b"first")
            assert await read_frames(there, 1) == [b"first"]
            nursery.cancel_scope.cancel()


async def test_nothing_is_sent_at_once_between_the_parts_of_a_frame() -> None:
    connection, there = takes_at_once(3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.send, b"x" * 100_000)
        await wait_all_tasks_blocked()
        connection._take = len
        assert not connection.send_nowait(b"between")
        assert await read_frames(there, 1) == [b"x" * 100_000]
    assert connection.send_nowait(b"after")
    await connection.aclose()
    assert not connection.send_nowait(b"after the end")


async def test_a_stream_that_is_lost_takes_nothing_and_send_says_so() -> None:
    connection, _there = takes_at_once(0)

    def take(_item: bytes) -> int:
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    connection._take = take
    assert not connection.send_nowait(b"x")
    with pytest.raises(BrokenLinkError, match="Connection reset by peer"):
        await connection.send(b"x")
