"""TCP, TLS, UNIX sockets and the pipes of a process keep the contract of streams."""

from __future__ import annotations

import errno
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import anyio
import pytest
import trio
import trustme
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from anyio.streams.stapled import StapledByteStream
from anyio.streams.tls import TLSStream
from trio.testing import MockClock

from tests.contracts.stream import Ends, StreamContract, greeted
from transports.acceptor import address_of
from transports.connection import LOST, BrokenLinkError, Timings, what_broke
from transports.handshake import Hello, answer, greet
from transports.tcp import (
    SocketsListener,
    _AcceptedTls,
    connect_tcp,
    connect_unix,
    listen_tcp,
    listen_unix,
)

Dial = Callable[[], Awaitable[ByteStream]]


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def server_tls(name: str = "localhost") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(name).configure_cert(context)
    return context


@cache
def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


@asynccontextmanager
async def accepted(listener: SocketsListener, dial: Dial) -> AsyncIterator[Ends]:
    """Both ends of one connection to a listener; `dial` opens the dialler's.

    The accepting end of TLS is read from at once, as the greeting does, so that both can agree.
    """
    send, receive = trio.open_memory_channel[ByteStream](1)

    async def take(stream: ByteStream) -> None:
        if isinstance(stream, _AcceptedTls):
            await stream.send(b"!")
        await send.send(stream)

    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, take)
        dialled = await dial()
        there = await receive.receive()
        if isinstance(there, _AcceptedTls):
            assert await dialled.receive(1) == b"!"
        async with dialled, there:
            yield dialled, there
        nursery.cancel_scope.cancel()


class TestTcp(StreamContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        listener = await listen_tcp("127.0.0.1", 0)
        async with accepted(listener, lambda: connect_tcp("127.0.0.1", listener.port)) as ends:
            yield ends

    async def test_small_frames_are_not_held_back(self) -> None:
        async with self.open() as ends:
            for end in ends:
                raw = end.extra(SocketAttribute.raw_socket)  # noqa: S610  no database here
                assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    async def test_an_end_knows_where_the_other_is(self) -> None:
        async with self.open() as (there, here):
            local = there.extra(SocketAttribute.local_address)  # noqa: S610  no database here
            assert address_of(here) == f"127.0.0.1:{local[1]}"


class TestTls(StreamContract):
    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        listener = await listen_tcp("127.0.0.1", 0, server_tls())

        async def dial() -> ByteStream:
            return await connect_tcp("127.0.0.1", listener.port, client_tls(), tls_name="localhost")

        async with accepted(listener, dial) as ends:
            yield ends


class TestUnix(StreamContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "socket"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        listener = await listen_unix(self.path)
        async with accepted(listener, lambda: connect_unix(self.path)) as ends:
            yield ends


class TestProcessPipe(StreamContract):
    """Two `cat`s, one for each direction."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Ends]:
        processes = [await anyio.open_process(["cat"], stderr=subprocess.DEVNULL) for _ in range(2)]
        there, back = processes
        assert there.stdin
        assert there.stdout
        assert back.stdin
        assert back.stdout
        one = StapledByteStream(there.stdin, back.stdout)
        other = StapledByteStream(back.stdin, there.stdout)
        try:
            async with one, other:
                yield one, other
        finally:
            for process in processes:
                process.kill()
                await process.wait()


# What is TCP's own


async def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but it doesn't listen
        with pytest.raises(OSError, match="failed") as caught:
            await connect_tcp("127.0.0.1", taken.getsockname()[1])
    assert what_broke(caught.value).endswith("Connection refused")


async def test_one_port_serves_every_address_of_a_host() -> None:
    async with await listen_tcp("localhost", 0) as listener, trio.open_nursery() as nursery:
        found: list[ByteStream] = []
        nursery.start_soon(listener.serve, _keep(found))
        async with await connect_tcp("localhost", listener.port) as stream:
            await trio.testing.wait_all_tasks_blocked(0.02)
            assert len(found) == 1
            assert stream is not found[0]
        await found[0].aclose()
        nursery.cancel_scope.cancel()


def _keep(found: list[ByteStream]) -> Callable[[ByteStream], Awaitable[None]]:
    async def keep(stream: ByteStream) -> None:
        found.append(stream)

    return keep


class FailingListener(SocketListener):
    """Fails with an error number before each connection that it would accept."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    async def accept(self) -> anyio.abc.SocketStream:
        raise anyio.BrokenResourceError from OSError(self.numbers.pop(0), "no")

    async def aclose(self) -> None:
        """Nothing is open."""

    @property
    def _raw_socket(self) -> socket.socket:
        raise NotImplementedError


async def test_accepting_goes_on_when_files_run_out(autojump_clock: MockClock) -> None:
    begun_s = autojump_clock.current_time()
    failing = FailingListener(errno.EMFILE, errno.ECONNABORTED, errno.EBADF)
    with pytest.RaisesGroup(anyio.BrokenResourceError):
        await SocketsListener([failing]).serve(_keep([]))
    assert failing.numbers == []
    assert autojump_clock.current_time() - begun_s == pytest.approx(0.2)


# TLS


async def greet_over(server: ssl.SSLContext | None, client: ssl.SSLContext | None) -> str:
    """Why a dialler and an acceptor that disagree on TLS can't greet each other."""
    reasons: list[str] = []
    listener = await listen_tcp("127.0.0.1", 0, server)

    async def take(stream: ByteStream) -> None:
        try:
            connection = await answer(stream, Hello(name="s", boot="1"), lambda _h: None, Timings())
        except BrokenLinkError as error:
            reasons.append(error.reason)
        else:
            await connection.aclose()

    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, take)
        try:
            stream = await connect_tcp("127.0.0.1", listener.port, client)
            await greet(stream, Hello(name="d", boot="1"), Timings())
        except LOST as error:
            reasons.append(what_broke(error))
        except BrokenLinkError as error:
            reasons.append(error.reason)
        await trio.testing.wait_all_tasks_blocked(0.02)
        nursery.cancel_scope.cancel()
    return " / ".join(sorted(reasons))


async def test_a_certificate_for_another_name_is_refused() -> None:
    reasons = await greet_over(server_tls(), client_tls())
    assert "the peer's certificate is refused: IP address mismatch" in reasons


async def test_a_certificate_of_an_unknown_authority_is_refused() -> None:
    reasons = await greet_over(server_tls(), ssl.create_default_context())
    assert "the peer's certificate is refused" in reasons


async def test_plain_to_tls_and_tls_to_plain_are_told_apart() -> None:
    assert "TLS failed" in await greet_over(server_tls(), None)
    reasons = await greet_over(None, client_tls())
    assert "this is TLS, no frame" in reasons
    assert "TLS failed" in reasons


async def test_tls_is_agreed_on_once_when_both_ways_are_used_at_once() -> None:
    found: list[ByteStream] = []
    listener = await listen_tcp("127.0.0.1", 0, server_tls())
    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, _keep(found))
        raw = await connect_tcp("127.0.0.1", listener.port)
        await trio.testing.wait_all_tasks_blocked(0.02)
        async with trio.open_nursery() as using:
            using.start_soon(found[0].receive)
            using.start_soon(found[0].send, b"from the server")
            await trio.testing.wait_all_tasks_blocked()
            stream = await TLSStream.wrap(
                raw, hostname="localhost", ssl_context=client_tls(), standard_compatible=False
            )
            await stream.send(b"from the client")
            assert await stream.receive() == b"from the server"
        await stream.aclose()
        await found[0].aclose()
        nursery.cancel_scope.cancel()


# UNIX sockets


async def test_a_socket_is_for_its_owner_and_a_dead_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with await listen_unix(path):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(OSError, match="another process listens"):
            await listen_unix(path)
    with pytest.raises(OSError, match="refused"):
        await connect_unix(path)
    async with accepted(await listen_unix(path), lambda: connect_unix(path)) as ends:
        there, here = await greeted(ends)
        await there.send(b"x")
        assert await here.receive() == b"x"
