"""One connection as an edge has it: what waits to be written to it, and an end with a reason.

A turn never waits for a connection: what it sends goes into the line's queue, which a task writes.
Who reads too slowly loses what goes beyond the queue, and that is recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from transports.connection import BrokenLinkError, Connection
from transports.envelope import Envelope

QUEUE_LIMIT = 256  # messages that wait to be written to one connection, as many as a mailbox holds


class Inside(Protocol):
    """What an edge needs of its host."""

    async def enter(self, envelope: Envelope[Any]) -> None:
        """Bring a message in; waits while its target is behind with its mail."""

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        """Record that a message is lost."""

    def number(self) -> int:
        """Return an id for a message that comes from outside."""


class Line:
    """A connection's two directions; `run` is its life."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: deque[bytes] = deque()
        self._more = trio.Event()
        self._writing = False
        self._closed: str | None = None
        self._life = trio.CancelScope()
        self._reading = trio.CancelScope()
        self.nursery: trio.Nursery | None = None  # for what lives no longer than the line

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not (self._queue or self._writing)

    def post(self, frame: bytes) -> bool:
        """Let a frame be written; False if it is closed, or too much waits already."""
        if self._closed is not None or len(self._queue) >= QUEUE_LIMIT:
            return False
        self._queue.append(frame)
        self._more.set()
        return True

    def stop_reading(self) -> None:
        """Read no more; what waits is still written."""
        self._reading.cancel()

    def close(self, reason: str) -> None:
        """End it at once; what waits is not written."""
        if self._closed is None:
            self._closed = reason
            self._queue.clear()
            self._life.cancel()

    async def run(self, hear: Callable[[bytes], Awaitable[None]]) -> None:
        """Hand every frame to `hear`, one after another, and write what is posted.

        BrokenLinkError when the link breaks or the line is closed; what `hear` raises is raised.
        """
        try:
            with self._life:
                async with trio.open_nursery() as self.nursery:
                    self.nursery.start_soon(self._write)
                    with self._reading:
                        while True:
                            await hear(await self._connection.receive())
                    await trio.sleep_forever()
        finally:
            reason, self._closed = self._closed, self._closed or "it has ended"
        raise BrokenLinkError(reason or "it was closed")

    async def _write(self) -> None:
        while True:
            while self._queue:
                self._writing = True
                await self._connection.send(self._queue.popleft())
                self._writing = False
            self._more = trio.Event()
            await self._more.wait()
