"""The accepting side: greets everybody who connects, and runs the host's handler on each.

What a stranger does ends that stranger's connection, with a reason in the log, and no other one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import ByteStream, Listener, SocketAttribute

from transports.connection import BrokenLinkError, Connection, Log, Peer, Timings, converse
from transports.handshake import Accept, Hello, RefusedError, answer, verdict

GREETING_LIMIT = 64  # not greeted yet, some 80 KB each; the oldest gives way to one more
CONNECTION_LIMIT = 512  # greeted, some 1.1 MB each at worst; half of a usual limit on open files

Handle = Callable[[Connection], Awaitable[None]]


async def serve(
    listener: Listener[ByteStream],
    me: Peer,
    *,
    accept: Accept,
    handle: Handle,
    log: Log,
    timings: Timings | None = None,
    connection_limit: int = CONNECTION_LIMIT,
) -> None:
    """Accept connections for ever, each in a task of its own; the caller closes the listener.

    `accept` returns why a hello is refused, None if it is not. `handle` runs as long as it wants
    the connection, and should be in `receive` whenever it can; its BrokenLinkError or FrameError
    ends that connection, any other exception is a mistake of the host and ends `serve`.
    Events: `link.up` (peer, boot, address), `link.down` and `link.refused` (with reason).
    """
    acceptor = _Given(me, log, timings, connection_limit, accept, handle)
    await listener.serve(acceptor.take)


class Acceptor:
    """Greets whoever connects, within bounds; subclasses say whom they take, and what for."""

    def __init__(self, me: Peer, log: Log, timings: Timings | None, connection_limit: int) -> None:
        self._me = me
        self._log = log
        self._timings = timings or Timings()
        self._connection_limit = connection_limit
        self._greeted = 0
        self._greeting: dict[ByteStream, anyio.CancelScope] = {}  # the oldest first

    async def admit(self, hello: Hello, stream: ByteStream) -> str | None:
        """Return why a hello is refused, None if it is not."""
        raise NotImplementedError

    async def attend(self, connection: Connection, stream: ByteStream) -> None:
        """Run a connection; its BrokenLinkError or FrameError ends that one alone."""
        raise NotImplementedError

    async def take(self, stream: ByteStream) -> None:
        """Greet whoever is at the other end of `stream`, and run the connection."""
        address = address_of(stream)
        connection = await self._greet(stream, address)
        if connection is None:
            return
        peer = connection.peer
        self._greeted += 1
        try:
            self._log("link.up", peer=peer.name, boot=peer.boot, address=address)
            reason = await converse(connection, lambda one: self.attend(one, stream))
        finally:
            self._greeted -= 1
        self._log("link.down", peer=peer.name, boot=peer.boot, address=address, reason=reason)

    async def _greet(self, stream: ByteStream, address: str) -> Connection | None:
        if len(self._greeting) >= GREETING_LIMIT:
            next(iter(self._greeting.values())).cancel()
        connection: Connection | None = None
        name, reason = "", "others connected before it had said hello"

        async def admit(hello: Hello) -> str | None:
            refusal = await self.admit(hello, stream)
            # Only who may come in is told that there is no room.
            if refusal is None and self._greeted >= self._connection_limit:
                return f"{self._me.name} has {self._greeted} connections, which is its limit"
            return refusal

        with anyio.CancelScope() as scope:
            self._greeting[stream] = scope
            try:
                connection = await answer(stream, self._me, admit, self._timings)
            except RefusedError as error:
                name, reason = error.name, error.reason
            except BrokenLinkError as error:
                reason = error.reason
            finally:
                del self._greeting[stream]
        if connection is None:
            self._log("link.refused", peer=name, address=address, reason=reason)
        return connection


class _Given(Acceptor):
    """One whose decisions are functions."""

    def __init__(
        self,
        me: Peer,
        log: Log,
        timings: Timings | None,
        connection_limit: int,
        accept: Accept,
        handle: Handle,
    ) -> None:
        super().__init__(me, log, timings, connection_limit)
        self._accept = accept
        self._handle = handle

    async def admit(self, hello: Hello, _stream: ByteStream) -> str | None:
        return await verdict(self._accept, hello)

    async def attend(self, connection: Connection, _stream: ByteStream) -> None:
        await self._handle(connection)


def address_of(stream: ByteStream) -> str:
    """Return where the other end of a stream is, as far as the stream knows."""
    address = stream.extra(SocketAttribute.remote_address, None)  # noqa: S610  no database here
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return str(address or "")
