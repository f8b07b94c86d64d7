"""A connection with `keep_alive` beside it, which watches reads that have no time limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.transports.test_connection import TIMINGS, connected, why_it_broke
from transports.codec import FRAME_LIMIT_BYTES
from transports.connection import BrokenLinkError, Connection, Timings
from transports.frames import pack
from transports.pipe import PipeStream

Act = Callable[[Connection, PipeStream], Awaitable[None]]


async def kept(act: Act, clock: MockClock) -> float:
    """Do something with a link that is kept alive, and return how many seconds that took."""
    connection, there = connected()
    begun_s = clock.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.keep_alive)
        await wait_all_tasks_blocked()
        await act(connection, there)
        took_s = clock.current_time() - begun_s
        nursery.cancel_scope.cancel()
    return took_s


async def test_a_silent_peer_breaks_the_link(autojump_clock: MockClock) -> None:
    async def act(connection: Connection, there: PipeStream) -> None:
        await there.send(pack(b"x"))
        assert await connection.receive() == b"x"
        await trio.sleep(5)
        assert await why_it_broke(connection) == "heard nothing for 35 s"

    assert await kept(act, autojump_clock) == 40


@pytest.mark.parametrize("every_s", [1, 9, 30, 34.5])
async def test_a_peer_that_is_heard_in_time_keeps_it(
    every_s: float, autojump_clock: MockClock
) -> None:
    async def act(connection: Connection, there: PipeStream) -> None:
        async with trio.open_nursery() as nursery:

            async def speaking() -> None:
                for number in range(20):
                    await trio.sleep(every_s)
                    await there.send(pack(b"" if number % 3 else b"x"))

            nursery.start_soon(speaking)
            for _ in range(7):
                assert await connection.receive() == b"x"
        assert await why_it_broke(connection) == "heard nothing for 35 s"

    # The last message is the one but last that is sent; a heartbeat follows, and then nothing.
    assert await kept(act, autojump_clock) == every_s * 20 + 35


async def test_time_that_the_host_does_not_wait_is_no_silence(autojump_clock: MockClock) -> None:
    async def act(connection: Connection, there: PipeStream) -> None:
        await trio.sleep(1_000)
        await there.send(pack(b"x"))
        assert await connection.receive() == b"x"
        await trio.sleep(1_000)
        assert await why_it_broke(connection) == "heard nothing for 35 s"

    assert await kept(act, autojump_clock) == 2_035


async def test_silence_adds_up_over_cancelled_receives(autojump_clock: MockClock) -> None:
    async def act(connection: Connection, _there: PipeStream) -> None:
        reason = None
        while reason is None:
            with trio.move_on_after(10):
                reason = await why_it_broke(connection)
        assert reason == "heard nothing for 35 s"

    assert await kept(act, autojump_clock) == 35


async def test_a_receive_that_was_cancelled_has_lost_nothing(autojump_clock: MockClock) -> None:
    async def act(connection: Connection, there: PipeStream) -> None:
        with trio.move_on_after(30):
            await connection.receive()
        await there.send(pack(b"x") + pack(b"y")[:3])
        assert await connection.receive() == b"x"
        with trio.move_on_after(30):
            await connection.receive()
        await there.send(pack(b"y")[3:])
        assert await connection.receive() == b"y"
        assert await why_it_broke(connection) == "heard nothing for 35 s"

    assert await kept(act, autojump_clock) == 95


async def test_a_frame_that_trickles_breaks_the_link(autojump_clock: MockClock) -> None:
    async def act(connection: Connection, there: PipeStream) -> None:
        async with trio.open_nursery() as nursery:

            async def trickling() -> None:
                await trio.sleep(20)
                for byte in pack(b"x" * 100):
                    await there.send(bytes([byte]))
                    await trio.sleep(9)

            nursery.start_soon(trickling)
            assert await why_it_broke(connection) == "a frame did not finish within 60 s"
            nursery.cancel_scope.cancel()

    assert await kept(act, autojump_clock) == 80


async def test_a_peer_that_takes_nothing_is_silent_too(autojump_clock: MockClock) -> None:
    """A heartbeat that can't leave is waited for up to `frame_s`; silence is found before."""

    async def act(connection: Connection, _there: PipeStream) -> None:
        async def sending() -> None:
            with pytest.raises(BrokenLinkError, match="heard nothing for 35 s"):
                await connection.send(b"x" * FRAME_LIMIT_BYTES)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sending)
            assert await why_it_broke(connection) == "heard nothing for 35 s"

    assert await kept(act, autojump_clock) == 35
    assert TIMINGS.frame_s > 35


async def test_what_ends_a_link_ends_its_keeper(autojump_clock: MockClock) -> None:
    connection, there = connected()
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.keep_alive)
        await wait_all_tasks_blocked()
        await there.aclose()
        assert await why_it_broke(connection) == "the peer closed the connection"
    # As soon as the next heartbeat is due.
    assert autojump_clock.current_time() - begun_s == TIMINGS.heartbeat_s


@pytest.mark.parametrize("kept_alive", [False, True])
async def test_patience_without_end_ends_never_but_for_a_frame(
    kept_alive: bool, autojump_clock: MockClock
) -> None:
    connection, there = connected(Timings(frame_s=60, silence_s=inf))

    async def act() -> None:
        with trio.move_on_after(10_000) as scope:
            await connection.receive()
        assert scope.cancelled_caught
        await there.send(pack(b"x")[:2])
        assert await why_it_broke(connection) == "a frame did not finish within 60 s"

    async with trio.open_nursery() as nursery:
        if kept_alive:
            nursery.start_soon(connection.keep_alive)
        nursery.start_soon(act)
    assert autojump_clock.current_time() >= 10_060


async def test_what_came_while_all_the_process_stood_still_counts(mock_clock: MockClock) -> None:
    for _ in range(20):  # the scheduler shuffles tasks, and any may be the first
        connection, there = connected()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.keep_alive)
            await wait_all_tasks_blocked()
            found: list[bytes] = []

            async def receiving(
                connection: Connection = connection, found: list[bytes] = found
            ) -> None:
                found.append(await connection.receive())

            nursery.start_soon(receiving)
            await wait_all_tasks_blocked()
            there.send_nowait(pack(b"x"))
            mock_clock.jump(1_000)
            await wait_all_tasks_blocked()
            assert found == [b"x"]
            nursery.cancel_scope.cancel()
