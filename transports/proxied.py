"""One proxied connection: its two sockets, its two flows, and how it ends.

It ends as its peers end it: a half-close is passed on and the other direction goes on, both closed
is a close, an RST is passed on as RST. A stage may end it before.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress

import trio

from transports.faults.byte_fault import DOWN, UP, Direction, End, Stage
from transports.flow import Clock, Flow

CONNECT_LIMIT_S = 10.0  # a service that doesn't answer by then is not there
DRAIN_LIMIT_S = 1.0  # how long a peer may take to read its end of stream and close too
DRAIN_BYTES = 65_536

_NO_LINGER = struct.pack("ii", 1, 0)  # close() then sends RST and throws away what is unsent

Connect = Callable[[], Awaitable[trio.abc.HalfCloseableStream]]


def abort(stream: trio.abc.HalfCloseableStream) -> None:
    """Close a socket with RST; what is no TCP socket is closed as it can be."""
    if isinstance(stream, trio.SocketStream):
        with suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        stream.socket.close()


async def close_gently(streams: Iterable[trio.abc.HalfCloseableStream]) -> None:
    """End each stream, read what its peer still sends until it closes too, and close it.

    Closing with unread bytes would send RST, which destroys what the peer has not read yet.
    """
    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(_close_gently, stream)


async def _close_gently(stream: trio.abc.HalfCloseableStream) -> None:
    with trio.move_on_after(DRAIN_LIMIT_S), suppress(trio.BrokenResourceError):
        await stream.send_eof()
        while await stream.receive_some(DRAIN_BYTES):
            pass
    await trio.aclose_forcefully(stream)


class ProxiedConnection:
    """A client's connection on its way to the service; `number` counts a proxy's from 1.

    `stages` are put in place and taken away with `set_stages` at any time, also before it runs.
    """

    def __init__(self, number: int, client: trio.abc.HalfCloseableStream, clock: Clock) -> None:
        self.number = number
        self._client = client
        self._server: trio.abc.HalfCloseableStream | None = None
        self._clock = clock
        self._stages: dict[Direction, tuple[Stage, ...]] = {UP: (), DOWN: ()}
        self._flows: dict[Direction, Flow] = {}
        self._nursery: trio.Nursery | None = None
        self._open = trio.Event()  # set anew with the stages: may the service be reached?
        self._scope = trio.CancelScope()
        self._ending: End | None = End.RESET
        self._unfinished = 2

    async def settle(self) -> None:
        """Wait until nothing is held back on it by a stage."""
        for flow in self._flows.values():
            await flow.settle()

    def set_stages(self, stages: Mapping[Direction, tuple[Stage, ...]]) -> None:
        """Replace the stages of both directions; each new one begins to act."""
        before = self._stages
        self._stages = dict(stages)
        for way, flow in self._flows.items():
            flow.set_stages(self._stages[way])
            self._start_timers(way, [new for new in stages[way] if new not in before[way]])
        self._open.set()

    def end(self, how: End) -> None:
        """End it as a whole, from any task."""
        self._ending = how
        self._scope.cancel()

    def drop(self) -> None:
        """Close both sockets at once, as the end of a process does."""
        self._ending = None
        self._scope.cancel()

    async def run(self, connect: Connect) -> None:
        """Carry it until it has ended; a service that can't be reached is an OSError."""
        try:
            with self._scope:
                await self._wait_until_open()
                with trio.fail_after(CONNECT_LIMIT_S):
                    self._server = await connect()
                await self._carry(self._server)
        finally:
            await self._close()

    async def _wait_until_open(self) -> None:
        while any(stage.opens_late for stages in self._stages.values() for stage in stages):
            self._open = trio.Event()
            await self._open.wait()

    async def _carry(self, server: trio.abc.HalfCloseableStream) -> None:
        ways = {UP: (self._client, server), DOWN: (server, self._client)}
        async with trio.open_nursery() as self._nursery:
            for way, (source, sink) in ways.items():
                flow = Flow(source, sink, self._clock, self.end, self._finish_one)
                self._flows[way] = flow
                flow.set_stages(self._stages[way])
                self._nursery.start_soon(flow.read)
                self._nursery.start_soon(flow.write)
                self._start_timers(way, self._stages[way])

    def _finish_one(self) -> None:
        """Close it when both directions have ended."""
        self._unfinished -= 1
        if not self._unfinished:
            self.end(End.CLOSE)

    def _start_timers(self, way: Direction, stages: Iterable[Stage]) -> None:
        for stage in stages:
            if stage.due_us is not None and self._nursery is not None:
                self._nursery.start_soon(self._timer, way, stage, stage.due_us)

    async def _timer(self, way: Direction, stage: Stage, due_us: int) -> None:
        """Do what a stage does at its time, if it is still there."""
        await trio.sleep_until(self._clock.deadline(due_us))
        if stage.healed:
            return
        how = stage.on_due()
        if how is End.HALF_CLOSE:
            self._flows[way].half_close()
        else:
            self.end(how)

    async def _close(self) -> None:
        for flow in self._flows.values():
            flow.abandon()
        streams = [self._client] if self._server is None else [self._client, self._server]
        with trio.CancelScope(shield=True):  # bounded: a gentle close has its own limit
            if self._ending is End.CLOSE:
                await close_gently(streams)
            for stream in streams:
                if self._ending is End.RESET:
                    abort(stream)
                await trio.aclose_forcefully(stream)
