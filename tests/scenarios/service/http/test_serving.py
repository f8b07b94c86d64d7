"""Connections over real sockets: each is bounded, and what goes wrong in one ends that one."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamEnded

from scenarios.service.http import serving
from scenarios.service.http.guard import Guard, Site
from scenarios.service.http.serving import Connections, configured

PATIENCE_S = 20.0  # real time; an answer takes milliseconds
ASKED = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
LAST = ASKED + b"Connection: close\r\n\r\n"


class Server:
    """An application on a port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.said: list[str] = []
        self.stop = trio.Event()

    async def open(self) -> trio.SocketStream:
        """Connect."""
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def raw(self, text: bytes) -> bytes:
        """Send bytes, and return all that comes before the connection ends."""
        async with await self.open() as stream:
            await stream.send_all(text)
            return await rest(stream)


async def rest(stream: trio.SocketStream) -> bytes:
    """All that still comes; a connection that is reset ends as well."""
    parts = b""
    try:
        async for part in stream:
            parts += part
    except trio.BrokenResourceError:
        pass
    return parts


async def hello(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def large(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer with more than sockets hold."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(2_000):
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})


@asynccontextmanager
async def served(app: Any = hello) -> AsyncIterator[Server]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = Server(listener.socket.getsockname()[1])
    guard = Guard(app, Site(), server.said.append, {})
    connections = Connections(guard, None, server.said.append)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connections.serve, [listener], server.stop)
            yield server
            server.stop.set()


async def test_a_request_is_answered_and_the_connection_kept() -> None:
    async with served() as server:
        told = await server.raw(ASKED + b"\r\n" + LAST)
    assert told.count(b"HTTP/1.1 200 ") == told.count(b"hello") == 2
    assert b"server:" not in told.lower()


async def test_a_body_after_its_answer_ends_no_other_connection() -> None:
    async with served() as server, await server.open() as stream:
        http = H2Connection(H2Configuration(client_side=True))
        http.initiate_connection()
        headers = [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        http.send_headers(1, headers)
        await stream.send_all(http.data_to_send())
        answered = False
        while not answered:
            events = http.receive_data(bytes(await stream.receive_some()))
            statuses = [one.headers for one in events if isinstance(one, ResponseReceived)]
            assert all((b":status", b"505") in headers for headers in statuses)
            answered = any(isinstance(one, StreamEnded) for one in events)
        http.send_data(1, b"late", end_stream=True)
        await stream.send_all(http.data_to_send())
        await rest(stream)
        assert b"hello" in await server.raw(LAST)


async def test_errors_of_connections_are_told_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(*_given: object) -> None:
        raise ExceptionGroup("deep", [ExceptionGroup("deeper", [KeyError("\x1b")])])

    monkeypatch.setattr(serving, "TCPServer", broken)
    async with served() as server:
        for _ in range(3):
            assert await server.raw(LAST) == b""
    assert server.said == ["a connection was ended by an error in it: KeyError('\\x1b')"]


async def test_a_client_that_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "STALLED_LIMIT_S", 0.3)
    monkeypatch.setattr(serving, "DRAIN_S", 2 * PATIENCE_S)
    async with served(large) as server:
        stream = await server.open()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        await stream.send_all(LAST)
        # On its way out it waits for this answer's end, and would for longer than this test.
    await stream.aclose()


async def test_connections_beyond_the_limit_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CONNECTIONS_LIMIT", 2)
    monkeypatch.setattr(serving, "HEAD_LIMIT_S", 0.5)
    async with served() as server:
        first, second = await server.open(), await server.open()
        third = await server.open()
        await third.send_all(LAST)
        assert b"hello" in await rest(third)
        with trio.move_on_after(0.1) as scope:
            assert await rest(first) == b""
        assert not scope.cancelled_caught, "it was idle, and gave way before"
        for stream in (first, second, third):
            await stream.aclose()


async def test_a_drain_lets_idle_connections_go_and_answers_the_others() -> None:
    asked, answer = trio.Event(), trio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await answer.wait()
        await hello(scope, receive, send)

    async with served(slow) as server:
        idle, busy = await server.open(), await server.open()
        await busy.send_all(ASKED + b"\r\n")
        await asked.wait()
        server.stop.set()
        assert await rest(idle) == b""
        answer.set()
        assert b"hello" in await rest(busy)
        with pytest.raises(OSError, match="all attempts to connect"):
            await server.open()
        await idle.aclose()
        await busy.aclose()


async def test_a_drain_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "DRAIN_S", 0.1)
    asked = trio.Event()

    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        asked.set()
        await trio.sleep_forever()

    async with served(never) as server, await server.open() as stream:
        await stream.send_all(LAST)
        await asked.wait()


def test_hypercorn_is_told_the_bounds() -> None:
    config = configured()
    assert config.keep_alive_timeout == config.ssl_handshake_timeout == serving.HEAD_LIMIT_S
    assert config.h11_max_incomplete_size == 16_384
    assert config.accesslog is config.errorlog is None
