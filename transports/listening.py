"""Listening on a TCP address: what an address is, why one can't be had, and taking connections."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import trio

HOST_LIMIT_CHARS = 253  # the longest name that DNS has
RETRY_S = 0.1  # how long to wait for a free file descriptor

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Report = Callable[[str], None]
Handler = Callable[[trio.SocketStream], Awaitable[None]]


class ProxyError(Exception):
    """Something that was asked of the proxies can't be done: a sentence, and its cure."""

    def __init__(self, message: str, cure: str | None = None) -> None:
        """Keep both."""
        super().__init__(message)
        self.message = message
        self.cure = cure


class Address(NamedTuple):
    """Where something listens; port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the address that `text` says: "127.0.0.1:5000", "localhost:0", "[::1]:5000".

    Raises ValueError with the cure.
    """
    host, colon, port = text.strip().rpartition(":")
    example = 'write HOST:PORT, as in "127.0.0.1:5000"'
    if not colon or not port.isascii() or not port.isdecimal() or len(port) > 5:
        raise ValueError(f'"{text[:60]}" is not an address: {example}')
    if int(port) > 65_535:
        raise ValueError(f'"{text[:60]}" has the port {port}: the last one is 65535')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f'"{text[:60]}" is not an address: for IPv6 write it as in "[::1]:5000"')
    if not host:
        raise ValueError(
            f'"{text[:60]}" names no host: write "127.0.0.1:{port}", '
            f'or "0.0.0.0:{port}" for the whole network'
        )
    if not _may_be_host(host):
        raise ValueError(f'"{text[:60]}" is not an address: {example}')
    return Address(host, int(port))


def _may_be_host(host: str) -> bool:
    if len(host) > HOST_LIMIT_CHARS or any(c.isspace() or not c.isprintable() for c in host):
        return False
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


async def listen(address: Address) -> tuple[list[trio.SocketListener], Address]:
    """Listen on an address; return the listeners, and the address with the port that it has.

    Raises ProxyError with the reason when that can't be done.
    """
    try:
        listeners = await trio.open_tcp_listeners(address.port, host=address.host)
    except OSError as error:
        raise cannot_listen(address, error) from error
    if not address.port:  # each has a port of its own: keep one, as an address has one port
        for listener in listeners[1:]:
            await listener.aclose()
        del listeners[1:]
    port = listeners[0].socket.getsockname()[1]
    return listeners, Address(address.host, port)


def cannot_listen(address: Address, error: OSError) -> ProxyError:
    """Return why an address can't be had, and what to do about it."""
    number = error.errno
    if isinstance(error, socket.gaierror):
        return ProxyError(f"there is no host {address.host}", "check its spelling")
    if number == errno.EADDRINUSE:
        cure = f"stop it, choose another port, or write {address._replace(port=0)} for a free one"
        return ProxyError(f"{address} is in use by another program", cure)
    if number == errno.EACCES:
        return ProxyError(f"no permission to listen on {address}", "choose a port from 1024 on")
    if number == errno.EADDRNOTAVAIL:
        return ProxyError(f"{address.host} is no address of this machine", "try 127.0.0.1")
    return ProxyError(f"can't listen on {address}: {error}")


async def serve_all(
    listeners: list[trio.SocketListener],
    room: trio.Semaphore,
    handler: Handler,
    nursery: trio.Nursery,
    report: Report,
) -> None:
    """Take connections for ever, no more at a time than there is room; close the listeners then.

    Each connection is handled in `nursery`. Those without room wait in the system's backlog.
    """
    async with trio.open_nursery() as accepting:
        for listener in listeners:
            accepting.start_soon(_serve_one, listener, room, handler, nursery, report)


async def _serve_one(
    listener: trio.SocketListener,
    room: trio.Semaphore,
    handler: Handler,
    nursery: trio.Nursery,
    report: Report,
) -> None:
    async def handle(stream: trio.SocketStream) -> None:
        try:
            await handler(stream)
        finally:
            room.release()

    told = False
    async with listener:
        while True:
            await room.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                room.release()
                if error.errno not in _EXHAUSTED:
                    raise
                if not told:
                    report(f"can't take a connection: {error.strerror}")
                told = True
                await trio.sleep(RETRY_S)
            else:
                told = False
                nursery.start_soon(handle, stream)
