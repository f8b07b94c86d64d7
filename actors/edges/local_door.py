"""A desktop's door for its owner: a local socket that this machine's user alone may open.

Whoever opens it is the owner, so nobody is asked who they are; what an owner may say is a list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from anyio.abc import ByteStream, Listener

from actors.edges.line import Inside, Line
from actors.edges.switchboard import Switchboard
from actors.messages import Message
from transports.acceptor import Acceptor
from transports.codec import FrameError
from transports.connection import Connection, Log, Peer
from transports.envelope import Envelope
from transports.handshake import Hello
from transports.wire import WireCodec

OWNER = "owner"  # the source of what comes in
CONNECTION_LIMIT = 64


class LocalDoor(Acceptor):
    """See the module's docstring. `said` is what may be said, to any of `targets`."""

    def __init__(
        self,
        me: Peer,
        inside: Inside,
        said: Iterable[type[Message]],
        targets: Collection[str],
        log: Log,
    ) -> None:
        super().__init__(me, log, None, CONNECTION_LIMIT)
        self._codec = WireCodec(said)
        self._targets = targets
        self.board = Switchboard(inside, self._codec)

    async def serve(self, listener: Listener[ByteStream]) -> None:
        """Accept connections until cancelled; the caller closes the listener."""
        await listener.serve(self.take)

    async def admit(self, _hello: Hello, _stream: ByteStream) -> str | None:
        """Let everybody in unless it is too late."""
        return "the desktop is shutting down: try again" if self.board.stopped else None

    async def attend(self, connection: Connection, _stream: ByteStream) -> None:
        """Run a connection."""
        await self.board.run(OWNER, connection, self._hear)

    async def _hear(self, line: Line, frame: bytes) -> None:
        told: Envelope[Any] = self._codec.decode(frame, OWNER)
        if told.target not in self._targets:
            raise FrameError(f"a message to {told.target}, which no owner speaks to")
        await self.board.enter(line, told)
