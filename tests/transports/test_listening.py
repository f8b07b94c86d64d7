"""Addresses, and the connections that come to them."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from transports.listening import Address, ProxyError, listen, parse_address, serve_all

LOCAL = Address("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:5000", Address("127.0.0.1", 5000)),
        (" localhost:0 ", Address("localhost", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("db.example:1", Address("db.example", 1)),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert str(address) == text.strip()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5000", "write HOST:PORT"),
        ("localhost", "write HOST:PORT"),
        ("localhost:http", "write HOST:PORT"),
        ("localhost:-1", "write HOST:PORT"),
        ("localhost:\u0665", "write HOST:PORT"),
        ("localhost:65536", "the last one is 65535"),
        ("::1:80", "for IPv6"),
        (":80", 'write "127.0.0.1:80"'),
        ("a b:80", "write HOST:PORT"),
        ("a..b:80", "write HOST:PORT"),
        ("a\x00b:80", "write HOST:PORT"),
        ("x" * 300 + ":80", "write HOST:PORT"),
    ],
)
def test_what_is_no_address_is_refused_with_the_cure(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"address|host|port") as caught:
        parse_address(text)
    assert says in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert parse_address(str(address)) == address


async def test_port_0_becomes_the_port_that_it_has() -> None:
    for host in ("127.0.0.1", "localhost"):
        listeners, address = await listen(Address(host, 0))
        assert address.port == listeners[0].socket.getsockname()[1] != 0
        assert len(listeners) == 1
        await listeners[0].aclose()


async def test_a_host_of_two_addresses_has_one_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [(await listen(LOCAL))[0][0] for _ in range(2)]

    async def two(*_: object, **__: object) -> list[trio.SocketListener]:
        return list(pair)

    monkeypatch.setattr(trio, "open_tcp_listeners", two)
    listeners, address = await listen(Address("localhost", 0))
    assert listeners == pair[:1]
    assert address.port == pair[0].socket.getsockname()[1]
    assert pair[1].socket.fileno() == -1, "the other one is closed"
    await pair[0].aclose()


async def test_a_port_in_use_is_said_so() -> None:
    (listener,), address = await listen(LOCAL)
    async with listener:
        with pytest.raises(ProxyError, match="is in use by another program") as caught:
            await listen(address)
    assert caught.value.cure is not None
    assert "127.0.0.1:0 for a free one" in caught.value.cure


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EADDRNOTAVAIL, "no"), "no address of this machine"),
        (OSError(errno.EACCES, "no"), "no permission to listen"),
        (OSError(errno.EIO, "broken"), "can't listen on 127.0.0.1:0"),
        (socket.gaierror(-2, "unknown"), "there is no host 127.0.0.1"),
    ],
)
async def test_each_refusal_has_its_sentence(
    monkeypatch: pytest.MonkeyPatch, error: OSError, says: str
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(trio, "open_tcp_listeners", refuse)
    with pytest.raises(ProxyError, match=says):
        await listen(LOCAL)


async def test_no_more_are_taken_than_there_is_room() -> None:
    listeners, address = await listen(LOCAL)
    gate = trio.Event()
    handled = 0

    async def handle(stream: trio.SocketStream) -> None:
        nonlocal handled
        handled += 1
        await gate.wait()
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        room = trio.Semaphore(2)
        nursery.start_soon(serve_all, listeners, room, handle, nursery, print)
        clients = [await trio.open_tcp_stream(*address) for _ in range(3)]
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert (handled, room.value) == (2, 0)
        gate.set()
        for client in clients:
            assert await client.receive_some() == b""
            await client.aclose()
        assert handled == 3
        nursery.cancel_scope.cancel()


async def test_without_file_descriptors_it_says_so_once_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (real,), address = await listen(LOCAL)
    told: list[str] = []

    accept = real.socket.accept
    refusals = [OSError(errno.EMFILE, "Too many open files")] * 2

    async def exhausted() -> Any:
        if refusals:
            raise refusals.pop()
        return await accept()

    monkeypatch.setattr(real.socket, "accept", exhausted)

    async def handle(stream: trio.SocketStream) -> None:
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        room = trio.Semaphore(1)
        nursery.start_soon(serve_all, [real], room, handle, nursery, told.append)
        async with await trio.open_tcp_stream(*address) as client:
            assert await client.receive_some() == b""
        nursery.cancel_scope.cancel()
    assert told == ["can't take a connection: Too many open files"]
