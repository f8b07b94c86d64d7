"""Transports for actors of one process: how each two of them are joined, in memory or over TCP.

Two actors share one connection, both ways. Over TCP the one with the higher rank dials, as relays
and agents dial a server that they can reach while it can't reach them.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import trio
from anyio.abc import ByteStream

from transports.acceptor import serve
from transports.codec import FrameError
from transports.connection import BrokenLinkError, Connection, Log, Peer, Timings
from transports.detour import Detour, WorldTime
from transports.dialer import stay_connected
from transports.frames import FrameBuffer
from transports.handshake import PROTOCOL, Hello, accept_tokens
from transports.pipe import open_pipe
from transports.proxied import Connect
from transports.tcp import (
    SocketsListener,
    connect_tcp,
    connect_unix,
    listen_tcp,
    listen_unix,
)
from transports.wiring import Wiring

# By an actor's kind.
RANKS = {
    "server": 0, "model": 0, "tools": 0,
    "engine": 1, "relay": 2, "owner": 3, "approver": 3, "agent": 4,
}  # fmt: skip
LOOPBACK = "127.0.0.1"

# Nobody in memory is half-open, and a virtual clock may jump by days while a mailbox is full.
PATIENT = Timings(frame_s=inf, silence_s=inf)


class Wire(Protocol):
    """One connection between two actors, as one of them has it; see `transports.connection`."""

    async def send(self, frame: bytes) -> None:
        """Send a frame; waits under back-pressure. BrokenLinkError if the link breaks."""

    def send_nowait(self, frame: bytes) -> bool:
        """Send a frame if that needs no waiting; if False, `send` it before any other."""

    async def receive(self) -> bytes:
        """Return the next frame; BrokenLinkError if the link breaks."""


# (me, peer, my end of the wire): drives it until it breaks, then raises BrokenLinkError or
# FrameError with the reason.
Handle = Callable[[str, str, Wire], Awaitable[None]]


class Transport(Protocol):
    """Joins actors of one process by wires that keep the contract of a link."""

    eager: bool  # whether all are joined before the first turn, since joining takes time
    in_real_time: bool  # whether bytes take real time, which no virtual clock waits for

    async def open(self, nursery: trio.Nursery, names: Sequence[str], handle: Handle) -> None:
        """Prepare to join these actors; `handle` drives each end of each wire.

        All that the transport starts lives in the nursery, and is gone with it.
        """

    def join(self, one: str, other: str) -> None:
        """Join two of them, for as long as the nursery lives; each end is handled before long."""


class MemoryTransport:
    """Joins actors by byte streams in memory, which take no time at all and never break."""

    eager = False
    in_real_time = False

    _nursery: trio.Nursery
    _handle: Handle

    async def open(self, nursery: trio.Nursery, names: Sequence[str], handle: Handle) -> None:
        """Prepare to join these actors."""
        self._nursery, self._handle = nursery, handle
        await trio.lowlevel.checkpoint()

    def join(self, one: str, other: str) -> None:
        """Join two of them."""
        near, far = open_pipe()
        self._nursery.start_soon(self._hold, one, other, near)
        self._nursery.start_soon(self._hold, other, one, far)

    async def _hold(self, me: str, peer: str, stream: ByteStream) -> None:
        """Let one end be handled; when that is over, the other end learns it."""
        known = Peer(protocol=PROTOCOL, name=peer, boot="")
        connection = Connection(stream, known, PATIENT, FrameBuffer())
        try:
            with suppress(BrokenLinkError, FrameError):
                await self._handle(me, peer, connection)
        finally:
            await connection.aclose()


class TcpTransport:
    """Joins actors by TCP over the loopback interface, greeted with a token that nobody else has.

    `ranks` says who dials: the higher rank the lower, equal ones by name; a name that is missing
    has rank 0. `log` is told of links that come up, break and are refused. Two actors that a byte
    fault names are joined by a detour through it, the others directly.
    """

    eager = True
    in_real_time = True

    _nursery: trio.Nursery
    _handle: Handle

    def __init__(
        self,
        ranks: Mapping[str, int] | None = None,
        *,
        log: Log | None = None,
        timings: Timings | None = None,
    ) -> None:
        self._ranks = ranks or {}
        self._log: Log = log or _say_nothing
        self._timings = timings
        self._ports: dict[str, int] = {}
        self._token = self._boot = ""
        self._guests: dict[str, str] = {}  # tokens of peers that dial in by themselves, by name
        self._wiring: Wiring | None = None
        self._speed = 1.0

    def interpose(self, wiring: Wiring, speed: float) -> None:
        """Let byte faults act from now on, in a world that goes `speed` times as fast."""
        self._wiring, self._speed = wiring, speed
        self._timings = (self._timings or Timings()).at_speed(speed)

    async def open(self, nursery: trio.Nursery, names: Sequence[str], handle: Handle) -> None:
        """Listen for each actor that may be dialled; OSError if the machine has no port left."""
        self._nursery, self._handle = nursery, handle
        self._token, self._boot = secrets.token_hex(), secrets.token_hex(8)  # of this replication
        tokens = dict.fromkeys(names, self._token) | self._guests
        for name in sorted(names, key=self._rank)[:-1]:
            nursery.start_soon(self._listen, name, await self._listener(name), tokens)

    async def _listener(self, name: str) -> SocketsListener:
        """Listen for those who dial an actor."""
        listener = await listen_tcp(LOOPBACK, 0)
        self._ports[name] = listener.port
        return listener

    def _way_to(self, name: str) -> Callable[[], Awaitable[ByteStream]]:
        """Return what connects to an actor."""
        return partial(connect_tcp, LOOPBACK, self._ports[name])

    async def _detour_to(self, me: str, name: str) -> Callable[[], Awaitable[ByteStream]]:
        """Return what connects to an actor through the byte faults."""
        return partial(connect_tcp, LOOPBACK, await self._open_detour(me, name))

    def is_faulty(self, one: str, other: str) -> bool:
        """Whether a byte fault may ever act between two actors."""
        return self._wiring is not None and self._wiring.concerns(one, other)

    def culprit(self, one: str, other: str) -> str | None:
        """Return the fault that was the last to do something between them, if any was."""
        return None if self._wiring is None else self._wiring.culprit(one, other)

    async def _open_detour(self, me: str, name: str) -> int:
        """Return the port on which an actor is reached through the byte faults."""
        (listener,) = await trio.open_tcp_listeners(0, host=LOOPBACK)
        port: int = listener.socket.getsockname()[1]
        self._serve_detour(
            me, name, listener, partial(trio.open_tcp_stream, LOOPBACK, self._ports[name])
        )
        return port

    def _serve_detour(
        self, me: str, name: str, listener: trio.SocketListener, connect: Connect
    ) -> None:
        assert self._wiring is not None, "a detour is for a byte fault"
        time = WorldTime(self._wiring, self._speed)
        detour = Detour(me, name, connect, self._wiring, time)
        self._nursery.start_soon(detour.serve, listener)

    def join(self, one: str, other: str) -> None:
        """Let the higher rank dial the lower, again and again when the connection breaks."""
        lower, higher = sorted((one, other), key=self._rank)
        self._nursery.start_soon(self._dial, higher, lower)

    def _rank(self, name: str) -> tuple[int, str]:
        return self._ranks.get(name, 0), name

    async def _listen(self, me: str, listener: SocketsListener, tokens: dict[str, str]) -> None:
        async def handle(connection: Connection) -> None:
            await self._handle(me, connection.peer.name, connection)

        async with listener:
            await serve(
                listener,
                Peer(protocol=PROTOCOL, name=me, boot=self._boot),
                accept=accept_tokens(tokens),
                handle=handle,
                log=partial(self._log, actor=me),
                timings=self._timings,
            )

    async def _dial(self, me: str, peer: str) -> None:
        async def handle(connection: Connection) -> None:
            await self._handle(me, peer, connection)

        detour = self.is_faulty(me, peer)
        await stay_connected(
            await self._detour_to(me, peer) if detour else self._way_to(peer),
            Hello(name=me, boot=self._boot, token=self._token),
            handle=handle,
            log=partial(self._log, actor=me),
            random=random.random,
            timings=self._timings,
        )


class UnixTransport(TcpTransport):
    """The same over UNIX sockets, in a folder of their own that is gone when the world ends."""

    async def open(self, nursery: trio.Nursery, names: Sequence[str], handle: Handle) -> None:
        """Listen for each actor that may be dialled; OSError if a socket can't be made."""
        self._folder: Path = await nursery.start(self._keep_folder)
        self._files = {name: str(number) for number, name in enumerate(names)}
        await super().open(nursery, names, handle)

    async def _keep_folder(self, task_status: trio.TaskStatus[Path]) -> None:
        with TemporaryDirectory(prefix="pullcord-") as folder:
            task_status.started(Path(folder))
            await trio.sleep_forever()

    async def _listener(self, name: str) -> SocketsListener:
        return await listen_unix(self._folder / self._files[name])

    def _way_to(self, name: str) -> Callable[[], Awaitable[ByteStream]]:
        return partial(connect_unix, self._folder / self._files[name])

    async def _detour_to(self, me: str, name: str) -> Callable[[], Awaitable[ByteStream]]:
        path = self._folder / f"{self._files[me]}-{self._files[name]}"
        socket = trio.socket.socket(trio.socket.AF_UNIX)
        await socket.bind(str(path))
        socket.listen()
        there = str(self._folder / self._files[name])
        self._serve_detour(
            me, name, trio.SocketListener(socket), partial(trio.open_unix_socket, there)
        )
        return partial(connect_unix, path)


def _say_nothing(_event: str, /, **_fields: Any) -> None:
    pass
