"""A proxied connection ends as its peers end it, or as a stage does."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from actors.streams import HashedStream
from tests.transports.serving import LOCAL, is_reset, read_all
from transports.faults.byte_fault import DOWN, UP, ByteFault, End, Site
from transports.faults.byte_partition import BytePartition
from transports.faults.close_after import CloseAfter
from transports.faults.half_close import HalfClose
from transports.listening import listen
from transports.proxied import CONNECT_LIMIT_S, ProxiedConnection, abort, close_gently
from transports.proxy import Time
from transports.units import Duration, Size


class Pair:
    """A connection in memory: what the client and the service hold of it."""

    def __init__(self) -> None:
        self.client, near = memory_stream_pair()
        self.server, self.far = memory_stream_pair()
        self.time = Time()
        self.connection = ProxiedConnection(1, near, self.time)
        self.connected = False

    async def connect(self) -> trio.abc.HalfCloseableStream:
        await trio.lowlevel.checkpoint()
        self.connected = True
        return self.far

    def put(self, fault: ByteFault | None) -> None:
        """Put one fault in place on the way up, or take it away."""
        site = Site(self.time.now_us, HashedStream(b"k", "x"), lambda: None)
        stages = () if fault is None else (fault.stage(site),)
        self.connection.set_stages({UP: stages, DOWN: ()})

    async def run(self) -> None:
        await self.connection.run(self.connect)


async def test_a_half_close_is_passed_on_and_the_answer_still_comes() -> None:
    pair = Pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await pair.client.send_all(b"question")
        await pair.client.send_eof()
        assert await read_whole(pair.server) == b"question"
        await pair.server.send_all(b"answer")
        await pair.server.send_eof()
        assert await read_whole(pair.client) == b"answer"


async def read_whole(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([bytes(data) async for data in stream])


async def test_time_ends_it_without_bytes(autojump_clock: MockClock) -> None:
    pair = Pair()
    pair.put(CloseAfter(after=Duration(5_000_000)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        assert await pair.client.receive_some() == b""
        assert autojump_clock.current_time() == 5.0
        await pair.client.aclose()
        await pair.server.aclose()


async def test_a_fault_that_comes_to_an_open_connection_has_its_time_too(
    autojump_clock: MockClock,
) -> None:
    pair = Pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await trio.sleep(1)
        pair.put(HalfClose(after=Duration(2_000_000)))
        assert await pair.server.receive_some() == b""
        assert round(autojump_clock.current_time(), 3) == 3.0
        await pair.server.send_all(b"still there")
        assert await pair.client.receive_some() == b"still there"
        nursery.cancel_scope.cancel()


async def test_a_timer_of_a_healed_stage_does_nothing(autojump_clock: MockClock) -> None:
    pair = Pair()
    site = Site(pair.time.now_us, HashedStream(b"k", "x"), lambda: None)
    stage = CloseAfter(after=Duration(1_000_000)).stage(site)
    pair.connection.set_stages({UP: (stage,), DOWN: ()})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await wait_all_tasks_blocked()
        stage.healed = True
        pair.put(None)
        await trio.sleep(5)
        await pair.client.send_all(b"alive")
        assert await pair.server.receive_some() == b"alive"
        assert autojump_clock.current_time() == 5.0
        nursery.cancel_scope.cancel()


async def test_behind_a_partition_the_service_is_reached_when_it_heals() -> None:
    pair = Pair()
    pair.put(BytePartition())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await pair.client.send_all(b"hello")
        await wait_all_tasks_blocked()
        assert not pair.connected
        pair.put(None)
        assert await pair.server.receive_some() == b"hello"
        nursery.cancel_scope.cancel()


async def test_a_service_that_never_answers_is_given_up(autojump_clock: MockClock) -> None:
    pair = Pair()
    with pytest.raises(trio.TooSlowError):
        await pair.connection.run(trio.sleep_forever)
    assert autojump_clock.current_time() == CONNECT_LIMIT_S
    assert await pair.client.receive_some() == b"", "the client is not left waiting"


async def test_it_settles_when_nothing_is_held() -> None:
    pair = Pair()
    await pair.connection.settle()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await wait_all_tasks_blocked()
        await pair.connection.settle()
        pair.connection.end(End.RESET)


async def test_one_that_is_being_closed_holds_nothing(autojump_clock: MockClock) -> None:
    pair = Pair()
    pair.put(CloseAfter(limit=Size(1)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pair.run)
        await pair.client.send_all(b"xy")
        await trio.sleep(0.5)
        await pair.connection.settle()
        assert autojump_clock.current_time() == 0.5, "though the peers have not closed yet"


async def sockets() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Two ends of a real TCP connection."""
    (listener,), address = await listen(LOCAL)
    async with listener:
        one = await trio.open_tcp_stream(*address)
        return one, await listener.accept()


async def test_an_abort_is_an_rst_to_the_peer() -> None:
    one, other = await sockets()
    abort(one)
    assert await is_reset(other)
    await other.aclose()


async def test_a_gentle_close_loses_nothing_to_unread_bytes() -> None:
    one, other = await sockets()
    await other.send_all(b"never read")
    await one.send_all(b"to be read")

    async def read_late() -> None:
        await trio.sleep(0.02)
        assert await read_all(other) == b"to be read"
        await other.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_late)
        await close_gently([one])
    assert one.socket.fileno() == -1


async def test_a_gentle_close_of_a_reset_stream_is_quiet() -> None:
    one, other = await sockets()
    abort(other)
    await trio.sleep(0.01)
    await close_gently([one])
    assert one.socket.fileno() == -1


async def test_whoever_never_closes_is_closed(autojump_clock: MockClock) -> None:
    near, far = memory_stream_pair()
    await close_gently([near])
    assert autojump_clock.current_time() == 1.0
    with suppress(trio.BrokenResourceError):
        await far.send_all(b"x")
