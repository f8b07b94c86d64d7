"""The dialling side: it comes back for ever, later and later, never at once, and says why."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable

import anyio
import pytest
import trio
from anyio.abc import ByteStream
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.transports.test_acceptor import Log
from transports.codec import FrameError
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.dialer import Backoff, stay_connected
from transports.handshake import PROTOCOL, Hello, answer
from transports.pipe import open_pipe

ME = Hello(name="relay", boot="r1", token="")
SERVER = Peer(protocol=PROTOCOL, name="server", boot="s1")
TIMINGS = Timings(retry_first_s=1, retry_limit_s=8)
UP = ("link.up", {"peer": "server", "boot": "s1"})


async def idle(connection: Connection) -> None:
    await connection.receive()


async def run_for(
    seconds: float,
    connect: Callable[[], Awaitable[ByteStream]],
    handle: Callable[[Connection], Awaitable[None]] = idle,
) -> Log:
    """What a dialler logs in some seconds; its delays are the longest of each window."""
    log = Log()
    with trio.move_on_after(seconds):
        await stay_connected(
            connect, ME, handle=handle, log=log, random=lambda: 1.0, timings=TIMINGS
        )
    return log


async def nobody() -> ByteStream:
    raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


async def test_it_tries_for_ever_and_ever_later(autojump_clock: MockClock) -> None:
    begun_s = autojump_clock.current_time()
    log = await run_for(10_000, nobody)
    assert autojump_clock.current_time() - begun_s == 10_000
    delays = log.told("link.failed", "retry_s")
    assert delays[:5] == [1, 2, 4, 8, 8]
    assert len(delays) > 1_200
    assert set(log.told("link.failed")) == {"cannot connect: Connection refused"}


async def test_who_is_in_a_hurry_waits_no_longer_and_begins_anew(
    autojump_clock: MockClock,
) -> None:
    backoff, log = Backoff(TIMINGS, lambda: 1.0), Log()
    backoff.hurry()

    async def dial() -> None:
        await stay_connected(nobody, ME, handle=idle, log=log, random=lambda: 1.0, backoff=backoff)

    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dial)
        await trio.sleep(24)  # the pauses are the longest by now
        backoff.hurry()
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() - begun_s == 26
    assert log.told("link.failed", "retry_s") == [1, 2, 4, 8, 8, 8, 1, 2]


async def test_a_connect_that_hangs_is_given_up(autojump_clock: MockClock) -> None:
    async def hanging() -> ByteStream:
        await trio.sleep_forever()
        raise AssertionError

    log = await run_for(10.5, hanging)
    assert log.told("link.failed") == ["cannot connect: no answer within 10 s"]
    assert autojump_clock.current_time() > 0


class Server:
    """Accepts streams of its dialler; each connection lives as long as `lives` says in turn."""

    def __init__(self, nursery: trio.Nursery, *lives: float, refusal: str | None = None) -> None:
        self.nursery = nursery
        self.lives = list(lives)
        self.refusal = refusal
        self.greeted_s: list[float] = []

    async def connect(self) -> ByteStream:
        here, there = open_pipe()
        self.nursery.start_soon(self.accept, there)
        return here

    async def accept(self, stream: ByteStream) -> None:
        try:
            connection = await answer(stream, SERVER, lambda _hello: self.refusal, TIMINGS)
        except BrokenLinkError:
            return
        self.greeted_s.append(trio.current_time())
        await trio.sleep(self.lives.pop(0) if self.lives else 30)
        await connection.aclose()


async def test_it_comes_back_when_the_link_breaks(autojump_clock: MockClock) -> None:
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        server = Server(nursery, 20, 20)
        log = await run_for(45, server.connect)
        nursery.cancel_scope.cancel()
    assert [moment - begun_s for moment in server.greeted_s] == [0, 21, 42]
    fields = {"peer": "server", "boot": "s1", "reason": "the peer closed the connection"}
    down = ("link.down", {**fields, "retry_s": 1})
    assert log.records == [UP, down, UP, down, UP]


async def test_a_server_that_breaks_at_once_is_not_hammered(autojump_clock: MockClock) -> None:
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        server = Server(nursery, 0, 0, 0, 0, 9, 0)
        log = await run_for(35, server.connect)
        nursery.cancel_scope.cancel()
    assert log.told("link.down", "retry_s") == [1, 2, 4, 8, 1, 2]
    assert autojump_clock.current_time() - begun_s == 35


async def test_a_refusal_is_no_end(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        server = Server(nursery, refusal="full")
        log = await run_for(2, server.connect)
        assert log.told("link.refused") == ["refused: full", "refused: full"]
        assert log.told("link.refused", "retry_s") == [1, 2]
        server.refusal = None
        log = await run_for(1, server.connect)
        nursery.cancel_scope.cancel()
    assert log.records == [UP]
    assert autojump_clock.current_time() > 0


async def test_a_handler_may_end_a_connection(autojump_clock: MockClock) -> None:
    async def handle(_connection: Connection) -> None:
        await trio.sleep(3)
        raise FrameError("not an envelope")

    async with trio.open_nursery() as nursery:
        server = Server(nursery)
        log = await run_for(6.5, server.connect, handle)
        nursery.cancel_scope.cancel()
    assert log.told("link.down") == ["not an envelope"]
    assert log.told("link.up", "peer") == ["server", "server"]
    assert autojump_clock.current_time() > 0


async def test_a_mistake_of_the_host_is_raised() -> None:
    async def handle(_connection: Connection) -> None:
        raise KeyError("mistake")

    async with trio.open_nursery() as nursery:
        server = Server(nursery)
        with pytest.RaisesGroup(KeyError):
            await run_for(1, server.connect, handle)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("error", [anyio.EndOfStream(), anyio.BrokenResourceError()])
async def test_a_connect_that_breaks_is_tried_again(
    error: Exception, autojump_clock: MockClock
) -> None:
    async def breaking() -> ByteStream:
        raise error

    log = await run_for(1.5, breaking)
    assert len(log.told("link.failed")) == 2
    assert autojump_clock.current_time() > 0


@given(st.lists(st.floats(0, 100), max_size=40), st.floats(0, 1, exclude_max=True))
def test_delays_lie_in_their_window(lasted: list[float], chance: float) -> None:
    backoff = Backoff(TIMINGS, lambda: chance)
    window = 0.0
    for lasted_s in lasted:
        window = 1.0 if lasted_s >= window else min(2 * window, 8.0)
        delay_s = backoff.after(lasted_s)
        assert window / 2 <= delay_s < window or chance > 0.999
