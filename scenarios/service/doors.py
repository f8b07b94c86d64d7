"""The server's edge as it is deployed: the gateway, on a TCP address and on a local socket."""

from __future__ import annotations

import errno
import os
import resource
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio

from actors.edges.gateway import Door, Gateway
from scenarios.graph_files import refusal
from scenarios.problems import Problem, ScenarioError
from scenarios.service.files import SHORTER
from transports.envelope import Envelope
from transports.listening import Address, cannot_listen
from transports.tcp import SocketsListener, listen_tcp, listen_unix

LOCAL_LIMIT = 64  # connections over the local socket: its user alone has any
PATH_LIMIT_BYTES = 100  # of a UNIX socket; Linux takes 107, macOS 103
SPARE_FILES = 256  # what a process opens besides its connections


class Doors:
    """See the module's docstring. `address` has the port once it is open."""

    def __init__(
        self,
        gateway: Gateway,
        address: Address,
        place: str,
        tls: ssl.SSLContext | None,
        socket: Path,
        connections: int,
    ) -> None:
        self.address = address
        self._gateway = gateway
        self._place = place
        self._tls = tls
        self._socket = socket
        self._connections = connections
        self._accepting = trio.CancelScope()
        self._doors: list[tuple[Door, SocketsListener]] = []

    async def open(self) -> None:
        """Listen everywhere. ScenarioError if an address can't be had."""
        _allow_files(self._connections + SPARE_FILES)
        try:
            await self._open(await self._listen(), local=False, limit=self._connections)
            await self._open(await open_socket(self._socket), local=True, limit=LOCAL_LIMIT)
        except BaseException:
            await self._close()
            raise

    async def _open(self, listener: SocketsListener, *, local: bool, limit: int) -> None:
        door = Door(self._gateway, [listener], local=local, connection_limit=limit)
        self._doors.append((door, listener))

    async def _listen(self) -> SocketsListener:
        try:
            listener = await listen_tcp(self.address.host, self.address.port, self._tls)
        except OSError as error:
            told = cannot_listen(self.address, error)
            problem = Problem(path=self._place, message=told.message, cure=told.cure)
            raise ScenarioError([problem]) from error
        self.address = self.address._replace(port=listener.port)
        return listener

    async def live(self) -> None:
        """Accept connections until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                for door, _ in self._doors:
                    nursery.start_soon(door.serve)
        finally:
            await self._close()
            with suppress(OSError):
                self._socket.unlink()

    async def _close(self) -> None:
        with trio.CancelScope(shield=True):
            for _, listener in self._doors:
                await listener.aclose()

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send a message on its way; False if its target is nobody's here."""
        return self._gateway.take(envelope)

    def stop_reading(self) -> None:
        """Let nobody in any more, and hear nobody."""
        self._gateway.board.stop_reading()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return self._gateway.board.idle


async def open_socket(path: Path) -> SocketsListener:
    """Listen on a UNIX socket of this machine's user. ScenarioError if it can't be had."""
    if len(os.fsencode(path)) > PATH_LIMIT_BYTES:
        raise refusal(str(path), "this path is too long for a socket", SHORTER)
    try:
        return await listen_unix(path)
    except OSError as error:
        cure = "give another --folder"
        if error.errno == errno.EADDRINUSE:
            cure = f"remove what is there, or {cure}"
        raise refusal(str(path), f"the socket can't be made: {error.strerror}", cure) from None


def _allow_files(wanted: int) -> None:
    """Let this process have so many files open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
