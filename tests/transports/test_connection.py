"""A connection under a virtual clock: heartbeats, time-outs, what breaks it, and what it says."""

from __future__ import annotations

import errno
import ssl
import tracemalloc

import anyio
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.connection import (
    BrokenLinkError,
    Connection,
    Peer,
    Timings,
    close_now,
    converse,
    what_broke,
)
from transports.frames import READ_BYTES, FrameBuffer, pack
from transports.pipe import PipeStream, open_pipe

PEER = Peer(protocol=1, name="peer", boot="1")
TIMINGS = Timings(frame_s=60, heartbeat_s=10, silence_s=35)


def connected(timings: Timings = TIMINGS) -> tuple[Connection, PipeStream]:
    """A connection, and the raw end of the stream that its peer has."""
    here, there = open_pipe()
    return Connection(here, PEER, timings, FrameBuffer()), there


async def why_it_broke(connection: Connection) -> str:
    with pytest.raises(BrokenLinkError) as caught:
        await connection.receive()
    return caught.value.reason


# Time


async def test_heartbeats_hold_a_quiet_link(autojump_clock: MockClock) -> None:
    one, other = open_pipe()
    ends = [Connection(end, PEER, TIMINGS, FrameBuffer()) for end in (one, other)]
    async with trio.open_nursery() as nursery:
        for end in ends:
            nursery.start_soon(end.keep_alive)

        async def receiving() -> None:
            assert await ends[1].receive() == b"late"

        nursery.start_soon(receiving)
        await trio.sleep(10_000)
        await ends[0].send(b"late")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() >= 10_000


async def test_a_heartbeat_comes_when_nothing_else_was_sent(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    times: list[tuple[float, bytes]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.keep_alive)

        async def reading() -> None:
            while True:
                piece = await there.receive()
                times.append((autojump_clock.current_time() - begun_s, piece))

        nursery.start_soon(reading)
        await trio.sleep(7)
        await connection.send(b"x")
        await trio.sleep(21)
        nursery.cancel_scope.cancel()
    assert times == [(7, pack(b"x")), (17, pack(b"")), (27, pack(b""))]


async def test_keep_alive_ends_with_the_link(autojump_clock: MockClock) -> None:
    connection, there = connected()
    await there.aclose()
    await connection.keep_alive()
    assert await why_it_broke(connection) == "the connection was lost"
    await connection.keep_alive()
    assert autojump_clock.current_time() > 0


async def test_a_silent_peer_breaks_the_link(autojump_clock: MockClock) -> None:
    connection, _there = connected()
    begun_s = autojump_clock.current_time()
    assert await why_it_broke(connection) == "heard nothing for 35 s"
    assert autojump_clock.current_time() - begun_s == 35


async def test_time_that_the_host_does_not_wait_is_no_silence(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    await there.send(pack(b"x") + pack(b"longer")[:5])
    assert await connection.receive() == b"x"
    await trio.sleep(1_000)
    await there.send(pack(b"longer")[5:])
    assert await connection.receive() == b"longer"
    assert await why_it_broke(connection) == "heard nothing for 35 s"
    assert autojump_clock.current_time() - begun_s == 1_035


async def test_silence_adds_up_over_cancelled_receives(autojump_clock: MockClock) -> None:
    connection, _there = connected()
    begun_s = autojump_clock.current_time()
    reason = None
    while reason is None:
        with trio.move_on_after(10):
            reason = await why_it_broke(connection)
    assert reason == "heard nothing for 35 s"
    assert autojump_clock.current_time() - begun_s == 35


async def test_a_frame_that_trickles_breaks_the_link(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:

        async def trickling() -> None:
            for byte in pack(b"x" * 100):
                await there.send(bytes([byte]))
                await trio.sleep(9)

        nursery.start_soon(trickling)
        assert await why_it_broke(connection) == "a frame did not finish within 60 s"
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() - begun_s == 60


async def test_each_frame_has_its_own_time(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:

        async def trickling() -> None:
            for byte in pack(b"one") + pack(b"") + pack(b"two"):
                await there.send(bytes([byte]))
                await trio.sleep(3)

        nursery.start_soon(trickling)
        assert await connection.receive() == b"one"
        assert await connection.receive() == b"two"
    assert autojump_clock.current_time() - begun_s > TIMINGS.frame_s


async def test_a_peer_that_takes_nothing_breaks_the_link(autojump_clock: MockClock) -> None:
    connection, _there = connected()
    begun_s = autojump_clock.current_time()
    with pytest.raises(BrokenLinkError, match="the peer took no frame within 60 s"):
        await connection.send(b"x" * FRAME_LIMIT_BYTES)
    assert autojump_clock.current_time() - begun_s == 60


async def test_a_frame_on_its_way_is_as_good_as_a_heartbeat(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.keep_alive)
        nursery.start_soon(connection.send, b"x" * 100_000)
        await trio.sleep(45)
        buffer = FrameBuffer()
        frames: list[bytes] = []
        while len(frames) < 2:
            buffer.feed(await there.receive())
            while (frame := buffer.take()) is not None:
                frames.append(frame)
        nursery.cancel_scope.cancel()
    assert frames == [b"x" * 100_000, b""]
    assert autojump_clock.current_time() - begun_s == 55  # the first due after the frame has left


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"connect_s": 0.0}, "connect_s must be more"),
        ({"frame_s": -1.0}, "frame_s must be more"),
        ({"silence_s": float("nan")}, "silence_s must be more"),
        ({"heartbeat_s": 35.0}, "shorter than silence_s"),
        ({"retry_first_s": 31.0}, "at most retry_limit_s"),
    ],
)
def test_timings_that_clash_are_refused(wrong: dict[str, float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Timings(**wrong)


# Violations and ends


async def test_a_length_over_the_limit_closes_the_stream() -> None:
    connection, there = connected()
    await there.send(pack(b"good") + b"\x7f\xff\xff\xff")
    assert await connection.receive() == b"good"
    reason = "frame of 2147483647 bytes, the limit is 1048576"
    assert await why_it_broke(connection) == reason
    with pytest.raises(BrokenLinkError, match="2147483647"):
        await connection.send(b"x")
    with pytest.raises(anyio.EndOfStream):
        await there.receive()


async def test_an_end_says_whether_it_cut_a_frame() -> None:
    connection, there = connected()
    await there.send(pack(b"good") + pack(b"cut")[:-1])
    await there.aclose()
    assert await connection.receive() == b"good"
    reason = "the peer closed the connection in the middle of a frame"
    assert await why_it_broke(connection) == reason
    connection, there = connected()
    await there.aclose()
    assert await why_it_broke(connection) == "the peer closed the connection"


async def test_the_first_reason_stays() -> None:
    connection, there = connected()
    await there.aclose()
    assert await why_it_broke(connection) == "the peer closed the connection"
    await connection.aclose()
    assert await why_it_broke(connection) == "the peer closed the connection"


async def test_two_receivers_are_a_mistake_that_breaks_nothing() -> None:
    connection, there = connected()
    async with trio.open_nursery() as nursery:

        async def receiving() -> None:
            assert await connection.receive() == b"x"

        nursery.start_soon(receiving)
        await wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await connection.receive()
        await there.send(pack(b"x"))


async def test_frames_that_have_come_leave_others_their_turn() -> None:
    connection, there = connected()
    await there.send(pack(b"x") * 1_000)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        for _ in range(1_000):
            await connection.receive()
        nursery.cancel_scope.cancel()
    assert turns > 900


async def test_what_a_peer_sends_is_not_piled_up() -> None:
    connection, there = connected()
    frame = pack(b"x" * FRAME_LIMIT_BYTES)
    async with trio.open_nursery() as nursery:

        async def sending() -> None:
            for _ in range(6):
                await there.send(frame + pack(b"") * 1_000)

        nursery.start_soon(sending)
        tracemalloc.start()
        for _ in range(6):
            await connection.receive()
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    # The buffer, its growth by an eighth, the content that is handed over, and the pipe's own.
    assert peak_bytes < 3 * FRAME_LIMIT_BYTES + 6 * READ_BYTES


# A handler on a connection


async def idle(_connection: Connection) -> None:
    await trio.sleep_forever()


async def test_a_handler_that_returns_closes_the_link() -> None:
    connection, there = connected()

    async def handle(given: Connection) -> None:
        assert given is connection
        await given.send(b"x")

    assert await converse(connection, handle) == "closed on this side"
    assert await there.receive() == pack(b"x")
    with pytest.raises(anyio.EndOfStream):
        await there.receive()


async def test_a_handler_gets_heartbeats_beside_it(autojump_clock: MockClock) -> None:
    connection, there = connected()

    async def handle(_given: Connection) -> None:
        await trio.sleep(25)

    assert await converse(connection, handle) == "closed on this side"
    assert await there.receive() == pack(b"") * 2
    assert autojump_clock.current_time() > 0


async def test_a_broken_link_and_a_bad_frame_are_reasons() -> None:
    connection, there = connected()
    await there.aclose()

    async def receiving(given: Connection) -> None:
        await given.receive()

    assert await converse(connection, receiving) == "the peer closed the connection"
    connection, there = connected()

    async def decoding(_given: Connection) -> None:
        raise FrameError("not an envelope")

    assert await converse(connection, decoding) == "not an envelope"
    with pytest.raises(anyio.EndOfStream):
        await there.receive()


async def test_reasons_come_out_of_nurseries() -> None:
    connection, there = connected()

    async def handle(given: Connection) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(given.receive)
            nursery.start_soon(trio.sleep_forever)
            await there.aclose()

    assert await converse(connection, handle) == "the peer closed the connection"


async def test_a_link_may_break_while_its_host_is_cancelled() -> None:
    connection, there = connected()
    with trio.CancelScope() as host:

        async def handle(given: Connection) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await there.aclose()
                host.cancel()
                with trio.CancelScope(shield=True):
                    await given.receive()

        await converse(connection, handle)
    assert host.cancelled_caught


@pytest.mark.parametrize("others", [[], [BrokenLinkError("gone")]])
async def test_a_mistake_of_the_host_is_raised(others: list[Exception]) -> None:
    connection, there = connected()

    async def handle(_given: Connection) -> None:
        raise ExceptionGroup("tasks", [*others, KeyError("mistake")])

    with pytest.RaisesGroup(KeyError, *map(type, others), flatten_subgroups=True):
        await converse(connection, handle)
    with pytest.raises(anyio.EndOfStream):
        await there.receive()


async def test_a_cancelled_handler_closes_the_stream() -> None:
    connection, there = connected()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(converse, connection, idle)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    with pytest.raises(anyio.EndOfStream):
        await there.receive()


async def test_a_link_that_breaks_while_all_is_cancelled_ends_nothing_else() -> None:
    connection, _there = connected()
    with trio.CancelScope() as scope:

        async def handle(_given: Connection) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await wait_all_tasks_blocked()
                scope.cancel()
                raise BrokenLinkError("gone")

        await converse(connection, handle)
    assert scope.cancelled_caught


class SlowStream(PipeStream):
    """Waits a moment before it closes."""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self._closed = True


async def test_a_cancelled_task_closes_its_stream_too() -> None:
    one, _ = open_pipe()
    slow = SlowStream(one._incoming, one._outgoing)
    with trio.CancelScope() as scope:
        scope.cancel()
        await close_now(slow)
    assert slow._closed


class StubbornStream(PipeStream):
    """Waits for a goodbye that never comes."""

    async def aclose(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._closed = True


async def test_closing_waits_for_nobody(autojump_clock: MockClock) -> None:
    one, _ = open_pipe()
    stubborn = StubbornStream(one._incoming, one._outgoing)
    begun_s = autojump_clock.current_time()
    await close_now(stubborn)
    assert stubborn._closed
    assert autojump_clock.current_time() - begun_s == 1


def lost(cause: BaseException | None) -> anyio.BrokenResourceError:
    error = anyio.BrokenResourceError()
    error.__cause__ = cause
    return error


REFUSED = "the peer's certificate is refused: certificate is not yet valid"


def certificate(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "text")
    error.verify_code, error.verify_message = code, "certificate is not yet valid"
    return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (anyio.EndOfStream(), "the peer closed the connection"),
        (anyio.ClosedResourceError(), "closed on this side"),
        (lost(None), "the connection was lost"),
        (lost(OSError(errno.ECONNRESET, "Connection reset by peer")), "Connection reset by peer"),
        (OSError("no address"), "no address"),
        (
            certificate(9),
            f"{REFUSED} (or this machine's clock is wrong)",
        ),
        (certificate(18), REFUSED),
        (ssl.SSLError(1, "[SSL] bad"), "TLS failed: [SSL] bad"),
    ],
)
def test_a_lost_connection_is_told_in_words(error: Exception, text: str) -> None:
    assert what_broke(error) == text
