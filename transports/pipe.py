"""A byte stream in memory: what TCP is to two machines, for tests and hosts in one process.

It has TCP's guarantees and TCP's rudeness: bytes in order, cut and joined as it likes, a bounded
buffer that makes a sender wait, an end that the reader sees after what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
from anyio.abc import ByteStream

BUFFER_BYTES = 1 << 16  # one way; a sender waits for a reader beyond it


class _Way:
    """One direction."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = bytearray()
        self.ended = False  # nothing more is sent
        self.gone = False  # nobody reads any more
        self.changed = anyio.Event()

    def change(self) -> None:
        """Wake whoever waits for this way to change."""
        self.changed.set()
        self.changed = anyio.Event()


class PipeStream(ByteStream):
    """One end. Raises what anyio's sockets raise."""

    def __init__(self, incoming: _Way, outgoing: _Way) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False
        self._receiving = anyio.ResourceGuard("reading from")
        self._sending = anyio.ResourceGuard("writing to")

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return some bytes; EndOfStream after the last, ClosedResourceError if closed here."""
        way = self._incoming
        with self._receiving:
            await anyio.lowlevel.checkpoint()
            while not (way.bytes or way.ended or self._closed):
                await way.changed.wait()
            if self._closed:
                raise anyio.ClosedResourceError
            if not way.bytes:
                raise anyio.EndOfStream
            piece = bytes(way.bytes[:max_bytes])
            del way.bytes[:max_bytes]
            way.change()
            return piece

    def send_nowait(self, item: bytes) -> int:
        """Send what there is room for now, and return how many bytes that was; raises as `send`."""
        with self._sending:
            return self._put(item)

    def _put(self, item: bytes | memoryview) -> int:
        """Put in as much as there is room for."""
        way = self._outgoing
        if self._closed or way.ended:
            raise anyio.ClosedResourceError
        if way.gone:
            raise anyio.BrokenResourceError
        taken = item[: max(way.limit_bytes - len(way.bytes), 0)]
        if taken:
            way.bytes += taken
            way.change()
        return len(taken)

    async def send(self, item: bytes) -> None:
        """Send all; BrokenResourceError if the other end is closed."""
        view = memoryview(item)
        with self._sending:
            await anyio.lowlevel.checkpoint()
            while True:
                view = view[self._put(view) :]
                if not view:
                    return
                await self._outgoing.changed.wait()

    async def send_eof(self) -> None:
        """End this direction; the other stays."""
        self._outgoing.ended = True
        self._outgoing.change()
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Close both directions; the other end still reads what was sent."""
        self._closed = self._incoming.gone = True
        self._incoming.change()
        await self.send_eof()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """None: there is no socket."""
        return {}


def open_pipe(limit_bytes: int = BUFFER_BYTES) -> tuple[PipeStream, PipeStream]:
    """Return the two ends of a new pipe, each with a buffer of `limit_bytes` towards the other."""
    there, back = _Way(limit_bytes), _Way(limit_bytes)
    return PipeStream(back, there), PipeStream(there, back)
