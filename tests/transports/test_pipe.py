"""The stream in memory keeps the contract of streams, and what is its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.stream import Ends, StreamContract
from transports.pipe import open_pipe


class TestPipe(StreamContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        one, other = open_pipe()
        async with one, other:
            yield one, other


class TestNarrowPipe(StreamContract):
    """A buffer smaller than most frames: they are cut anywhere."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        one, other = open_pipe(limit_bytes=997)
        async with one, other:
            yield one, other


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.integers(1, 16),
    st.booleans(),
)
def test_bytes_arrive_in_order_however_they_are_cut(
    items: list[bytes], limit_bytes: int, at_once: bool
) -> None:
    async def check() -> bytes:
        one, other = open_pipe(limit_bytes)

        async def sending() -> None:
            for item in items:
                taken_bytes = one.send_nowait(item) if at_once else 0
                if taken_bytes < len(item):
                    await one.send(item[taken_bytes:])
            await one.send_eof()

        found = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sending)
            async for piece in other:
                assert 0 < len(piece) <= limit_bytes
                found += piece
        return found

    assert trio.run(check) == b"".join(items)


async def test_what_was_sent_before_a_close_is_still_read() -> None:
    one, other = open_pipe()
    await one.send(b"bye")
    await one.aclose()
    assert await other.receive(2) == b"by"
    assert await other.receive() == b"e"
    with pytest.raises(anyio.EndOfStream):
        await other.receive()
    with pytest.raises(anyio.BrokenResourceError):
        await other.send(b"x")
    with pytest.raises(anyio.BrokenResourceError):
        other.send_nowait(b"x")
    with pytest.raises(anyio.ClosedResourceError):
        await one.receive()
    with pytest.raises(anyio.ClosedResourceError):
        await one.send(b"x")
    with pytest.raises(anyio.ClosedResourceError):
        one.send_nowait(b"x")


async def test_what_is_sent_at_once_wakes_the_reader_and_is_bounded() -> None:
    one, other = open_pipe(limit_bytes=3)
    found: list[bytes] = []

    async def reading() -> None:
        found.append(await other.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reading)
        await trio.testing.wait_all_tasks_blocked()
        assert [one.send_nowait(item) for item in (b"ab", b"cd", b"e")] == [2, 1, 0]
    assert found == [b"abc"]
    assert one.send_nowait(b"f") == 1


async def test_a_half_closed_pipe_still_carries_the_other_way() -> None:
    one, other = open_pipe()
    await one.send_eof()
    with pytest.raises(anyio.EndOfStream):
        await other.receive()
    await other.send(b"back")
    assert await one.receive() == b"back"


async def test_two_readers_or_two_writers_are_a_mistake() -> None:
    one, _other = open_pipe(limit_bytes=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stopped, one.receive)
        nursery.start_soon(_stopped, one.send, b"too long")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await one.receive()
        with pytest.raises(anyio.BusyResourceError):
            await one.send(b"x")
        with pytest.raises(anyio.BusyResourceError):
            one.send_nowait(b"x")
        await one.aclose()


async def _stopped(call: Callable[..., Awaitable[object]], *args: object) -> None:
    with pytest.raises(anyio.ClosedResourceError):
        await call(*args)
