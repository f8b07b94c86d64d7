"""The accepting side: every connection for itself, whatever its peer does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
import trio.lowlevel
from anyio.abc import ByteStream, Listener, TaskGroup
from trio.testing import MockClock, wait_all_tasks_blocked

from transports.acceptor import GREETING_LIMIT, address_of, serve
from transports.codec import FrameError
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.frames import pack
from transports.handshake import (
    NOT_KNOWN,
    PROTOCOL,
    Hello,
    RefusedError,
    accept_tokens,
    greet,
    verdict,
)
from transports.pipe import PipeStream, open_pipe

WORD = "open sesame"
SERVER = Peer(protocol=PROTOCOL, name="server", boot="s1")
TIMINGS = Timings(handshake_s=10)
ACCEPT = accept_tokens({"one": WORD, "two": WORD})


class PipeListener(Listener[ByteStream]):
    """Accepts what `connect` makes."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[PipeStream](1_000)

    def connect(self) -> PipeStream:
        """A new stream's dialling end."""
        here, there = open_pipe()
        self._send.send_nowait(there)
        return here

    async def serve(
        self, handler: Callable[[ByteStream], Any], task_group: TaskGroup | None = None
    ) -> None:
        assert task_group is None
        async with anyio.create_task_group() as tasks:
            async for stream in self._receive:
                tasks.start_soon(handler, stream)

    async def aclose(self) -> None:
        """Nothing is open."""

    @property
    def extra_attributes(self) -> dict[Any, Callable[[], Any]]:
        return {}


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, **fields: Any) -> None:
        self.records.append((event, fields))

    def told(self, event: str, field: str = "reason") -> list[Any]:
        """A field of every record of an event."""
        return [fields[field] for name, fields in self.records if name == event]


async def echo(connection: Connection) -> None:
    """Send back what comes; a frame that says so is malformed, or a mistake of the host."""
    while True:
        frame = await connection.receive()
        if frame == b"malformed":
            raise FrameError("not an envelope")
        if frame == b"mistake":
            raise KeyError("mistake")
        await connection.send(frame)


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[PipeListener, Log]]:
    listener, log = PipeListener(), Log()
    settings: dict[str, Any] = {"accept": ACCEPT, "handle": echo, "log": log, "timings": TIMINGS}
    settings |= options

    async def run() -> None:
        await serve(listener, SERVER, **settings)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield listener, log
        nursery.cancel_scope.cancel()


async def dial(listener: PipeListener, name: str = "one", word: str = WORD) -> Connection:
    return await greet(listener.connect(), Hello(name=name, boot="b", token=word), TIMINGS)


async def echoes(connection: Connection) -> bool:
    await connection.send(b"still there?")
    return await connection.receive() == b"still there?"


async def test_a_connection_is_logged_from_beginning_to_end() -> None:
    async with serving() as (listener, log):
        connection = await dial(listener)
        assert await echoes(connection)
        await connection.aclose()
        await wait_all_tasks_blocked()
    who = {"peer": "one", "boot": "b", "address": ""}
    reason = {"reason": "the peer closed the connection"}
    assert log.records == [("link.up", who), ("link.down", who | reason)]


async def test_whoever_is_refused_hears_why_and_it_is_logged() -> None:
    async with serving() as (listener, log):
        with pytest.raises(RefusedError, match=f"refused: {NOT_KNOWN}"):
            await dial(listener, word="guess")
        await wait_all_tasks_blocked()
    assert log.records == [("link.refused", {"peer": "one", "address": "", "reason": NOT_KNOWN})]
    assert "guess" not in repr(log.records)


async def test_what_one_does_ends_only_its_own_connection() -> None:
    """Garbage, too much, a bad frame, a wrong token, an end in the middle: the other goes on."""
    async with serving() as (listener, log):
        good = await dial(listener, "two")
        for garbage in (b"GET / HTTP/1.1\r\n", b"\xff" * 70_000, pack(b"\xc1"), b"\0\0"):
            stream = listener.connect()
            await stream.send(garbage)
            await wait_all_tasks_blocked()
            await stream.aclose()
            assert await echoes(good)
        bad = await dial(listener)
        await bad.send(b"malformed")
        with pytest.raises(BrokenLinkError):
            await bad.receive()
        bad = await dial(listener)
        await bad._stream.send(b"\xff" * 8)
        with pytest.raises(BrokenLinkError):
            await bad.receive()
        bad = await dial(listener)
        await bad._stream.send(pack(b"cut")[:-1])
        await bad.aclose()
        await wait_all_tasks_blocked()
        assert await echoes(good)
    assert log.told("link.down") == [
        "not an envelope",
        "frame of 4294967295 bytes, the limit is 1048576",
        "the peer closed the connection in the middle of a frame",
    ]
    assert len(log.told("link.refused")) == 4
    assert "this is HTTP, no frame" in log.told("link.refused")[0]


async def test_a_mistake_of_the_host_is_not_hidden() -> None:
    listener = PipeListener()

    async def dialling() -> None:
        connection = await dial(listener)
        await connection.send(b"mistake")

    with pytest.RaisesGroup(KeyError, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dialling)
            await serve(listener, SERVER, accept=ACCEPT, handle=echo, log=Log())


async def test_a_stranger_that_says_nothing_is_logged(autojump_clock: MockClock) -> None:
    async with serving() as (listener, log):
        stream = listener.connect()
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
        await wait_all_tasks_blocked()
    assert log.told("link.refused") == ["no greeting within 10 s"]
    assert autojump_clock.current_time() > 0


async def test_the_oldest_stranger_gives_way_to_one_more() -> None:
    async with serving() as (listener, log):
        strangers = [listener.connect() for _ in range(GREETING_LIMIT)]
        await wait_all_tasks_blocked()
        assert log.records == []
        assert await echoes(await dial(listener))
        with pytest.raises(anyio.EndOfStream):
            await strangers[0].receive()
        await strangers[1].send(b"\0")  # is still heard
    assert log.told("link.refused") == ["others connected before it had said hello"]


async def test_connections_have_a_limit_and_places_come_free() -> None:
    async with serving(connection_limit=2) as (listener, log):
        first, second = [await dial(listener) for _ in range(2)]
        assert await echoes(first)
        assert await echoes(second)
        with pytest.raises(RefusedError, match="server has 2 connections, which is its limit"):
            await dial(listener)
        with pytest.raises(RefusedError, match=NOT_KNOWN):  # not told how many there are
            await dial(listener, word="guess")
        await first.aclose()
        await wait_all_tasks_blocked()
        assert await echoes(await dial(listener))
    assert len(log.told("link.refused")) == 2


async def test_a_server_that_stops_closes_every_connection() -> None:
    async with serving() as (listener, _log):
        connection = await dial(listener)
        stranger = listener.connect()
        await wait_all_tasks_blocked()
    with pytest.raises(BrokenLinkError, match="the peer closed"):
        await connection.receive()
    with pytest.raises(anyio.EndOfStream):
        await stranger.receive()


def test_a_stream_without_an_address_has_none() -> None:
    async def check() -> str:
        return address_of(open_pipe()[0])

    assert trio.run(check) == ""


async def test_who_is_asked_may_take_its_time_within_that_of_the_greeting() -> None:
    async def ask(hello: Hello) -> str | None:
        await trio.lowlevel.checkpoint()
        return await verdict(ACCEPT, hello)

    async def ask_for_ever(_hello: Hello) -> str | None:
        await trio.sleep_forever()

    async with serving(accept=ask) as (listener, _log):
        assert await echoes(await dial(listener))
        with pytest.raises(RefusedError, match=NOT_KNOWN):
            await dial(listener, word="guess")
    short = Timings(handshake_s=0.05)
    async with serving(accept=ask_for_ever, timings=short) as (listener, log):
        with pytest.raises(BrokenLinkError):
            await dial(listener)
        await wait_all_tasks_blocked()
        assert log.told("link.refused") == ["no greeting within 0.05 s"]
