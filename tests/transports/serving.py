"""Services for the proxy's tests: an echo over real TCP, and what a socket says of its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import trio

from actors.chance import Durations
from transports.faults.byte_fault import DOWN, UP, ByteFault, Direction
from transports.listening import Address
from transports.proxy import Proxies, Proxy, open_proxies
from transports.toxic import Toxic

LOCAL = Address("127.0.0.1", 0)
Handler = Callable[[trio.SocketStream], Awaitable[None]]


async def echo(stream: trio.SocketStream) -> None:
    """Answer everything with itself; end when the client does."""
    with suppress(trio.BrokenResourceError):
        async for data in stream:
            await stream.send_all(data)


@asynccontextmanager
async def service(handler: Handler = echo) -> AsyncIterator[Address]:
    """A service on a free port of this machine."""
    async with trio.open_nursery() as nursery:
        serve = trio.serve_tcp
        listeners = await nursery.start(serve, handler, 0)
        yield Address("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


class Line:
    """A proxy in front of a service."""

    def __init__(self, proxies: Proxies, proxy: Proxy, told: list[str]) -> None:
        self.proxies = proxies
        self.proxy = proxy
        self.told = told

    async def connect(self) -> trio.SocketStream:
        """A client's connection to the proxy."""
        return await trio.open_tcp_stream(*self.proxy.address)

    def put(self, fault: ByteFault, *ways: Direction) -> Toxic:
        """Put a fault in place, both ways if none is named."""
        kind = str(type(fault).__struct_config__.tag)
        toxic = Toxic(fault, ways or (UP, DOWN), type=kind, attributes={})
        self.proxy.add_toxic(toxic)
        return toxic


@asynccontextmanager
async def line(handler: Handler = echo, seed: int = 1) -> AsyncIterator[Line]:
    """A service behind a proxy."""
    told: list[str] = []
    async with service(handler) as upstream, open_proxies(seed, told.append) as proxies:
        yield Line(proxies, await proxies.add("echo", LOCAL, upstream), told)


async def ask(stream: trio.SocketStream, data: bytes) -> bytes:
    """Send and read as many bytes back; fewer when the stream ends before."""
    await stream.send_all(data)
    answer = b""
    while len(answer) < len(data) and (more := await stream.receive_some()):
        answer += more
    return answer


async def read_all(stream: trio.SocketStream) -> bytes:
    """Read up to the end of the stream; raises BrokenResourceError for a reset."""
    answer = b""
    async for data in stream:
        answer += data
    return answer


async def is_reset(stream: trio.SocketStream) -> bool:
    """Whether the stream ends in RST instead of its end."""
    try:
        await read_all(stream)
    except trio.BrokenResourceError as error:
        return isinstance(error.__cause__, ConnectionResetError)
    return False


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; at most two seconds, so that a failure is one."""
    with trio.fail_after(2):
        while not holds():  # noqa: ASYNC110  what it waits for has no event
            await trio.sleep(0.001)


def millis(text: str) -> Durations:
    """A distribution of durations."""
    return Durations.parse(text)
