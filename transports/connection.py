"""One greeted connection: frames in order and at most once, until it breaks.

The contract of a link, which every byte stream under it keeps (TCP, TLS, UNIX socket, pipe,
memory):

- Frames arrive whole, in the order in which they were sent, and at most once.
- Or the link breaks. A break loses an unknown suffix of what was sent, in either direction; whether
  a frame arrived is then unknown. Nothing is sent again: who needs that asks again.
- `send` waits while the peer doesn't read. A host whose mailbox is full stops calling `receive`,
  and its peers wait; nothing piles up between them.
- A half-open connection is found: each side sends something at least every `heartbeat_s`, and a
  side that waits for a frame and hears nothing for `silence_s` breaks the link. Only time spent
  waiting counts, so a host that is slow to call `receive` blames nobody.
- A frame takes at most `frame_s`, in either direction, and at most the frame limit in memory.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, NoReturn, Protocol, runtime_checkable

import anyio
import msgspec
import trio
from anyio.abc import ByteStream

from transports.codec import FrameError
from transports.frames import READ_BYTES, FrameBuffer, pack

# What the streams of anyio raise when the connection is no more; an SSLError is an OSError. Busy is
# a TLS stream that has to answer its peer's change of keys while a frame is being sent.
LOST = (
    OSError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.BusyResourceError,
)
CLOSED_HERE = "closed on this side"
STALL_S = 1.0  # what a machine that is busy may take for anything
FAREWELL_S = 1.0  # for a stream that says goodbye when it closes; those of ours don't


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """How long a link waits for what, in seconds of the host's clock. ValueError if they clash."""

    connect_s: float = 10.0  # name look-up, TCP and TLS
    handshake_s: float = 10.0  # the greeting, and on the accepting side TLS before it
    frame_s: float = 60.0  # a frame at the limit over 20 KB/s
    heartbeat_s: float = 10.0  # three may be late before `silence_s` is over
    silence_s: float = 35.0
    retry_first_s: float = 0.5  # the longest first delay before connecting again; it doubles
    retry_limit_s: float = 30.0  # up to this; attempts have no limit

    def __post_init__(self) -> None:
        """Refuse times that would end a healthy connection, or try again without a pause."""
        for field in self.__struct_fields__:
            if not getattr(self, field) > 0:
                raise ValueError(f"{field} must be more than 0 seconds")
        if self.heartbeat_s >= self.silence_s:
            raise ValueError("heartbeat_s must be shorter than silence_s")
        if self.retry_first_s > self.retry_limit_s:
            raise ValueError("retry_first_s must be at most retry_limit_s")

    def at_speed(self, speed: float) -> Timings:
        """Return these as seconds of a world that goes `speed` times as fast.

        But what a machine that is busy for a moment could miss is a second at least; heartbeats
        keep their share of the silence.
        """
        silence_s = max(self.silence_s / speed, min(self.silence_s, STALL_S))
        return Timings(
            connect_s=max(self.connect_s / speed, min(self.connect_s, STALL_S)),
            handshake_s=max(self.handshake_s / speed, min(self.handshake_s, STALL_S)),
            frame_s=max(self.frame_s / speed, min(self.frame_s, STALL_S)),
            heartbeat_s=silence_s * (self.heartbeat_s / self.silence_s),
            silence_s=silence_s,
            retry_first_s=self.retry_first_s / speed,
            retry_limit_s=self.retry_limit_s / speed,
        )


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a connection: the protocol that it speaks, its name, and this boot of it."""

    protocol: int
    name: str
    boot: str


class Log(Protocol):
    """Takes what happened: a dotted event and fields of plain data."""

    def __call__(self, event: str, /, **fields: Any) -> None:
        """Write one record."""


class BrokenLinkError(Exception):
    """The link is broken; whether what was sent last has arrived is unknown."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@runtime_checkable
class TakesAtOnce(Protocol):
    """A stream that can say what it takes without waiting."""

    def send_nowait(self, item: bytes) -> int:
        """Send what can be sent at once, and return how many bytes that was; one of LOST."""


class Connection:
    """A link to `peer`, as the module's docstring promises it. Made by the handshake.

    One task may receive while others send. `keep_alive` runs beside them.
    """

    def __init__(
        self, stream: ByteStream, peer: Peer, timings: Timings, buffer: FrameBuffer
    ) -> None:
        self.peer = peer
        self._stream = stream
        self._timings = timings
        self._buffer = buffer
        self._broken: str | None = None
        self._take: Callable[[bytes], int] = _nothing
        if isinstance(stream, TakesAtOnce):
            self._take = stream.send_nowait
        self._begun_bytes = 0  # of a frame that `send_nowait` could not finish
        self._sending = anyio.Lock(fast_acquire=True)  # a free lock costs no turn of the scheduler
        self._receiving = anyio.ResourceGuard("receiving from")
        self._sent_s = trio.current_time()
        self._watched = timings.silence_s == inf  # so that no read needs a time limit of its own
        self._reads_since_s: float | None = None  # when the read that it watches began
        self._silent_s = 0.0  # waited since anything was heard
        self._partial_s = 0.0  # waited for the rest of the frame that has begun

    async def send(self, frame: bytes) -> None:
        """Send one frame; returns once the stream has taken it, which says nothing of the peer.

        FrameError, and the link stays, if it is empty or over the limit. BrokenLinkError if the
        link is broken or breaks. Cancelled half way the link breaks too, since a part of the frame
        may have left: give it up rather than cancel a send.
        """
        if not frame:
            raise FrameError("an empty frame is a heartbeat: it carries no message")
        await self._write(pack(frame))

    def send_nowait(self, frame: bytes) -> bool:
        """Send one frame if that needs no waiting; False if it does, or the link is broken.

        After False, `send` the same frame before any other: a part of it may have left.
        """
        if self._broken is not None or self._begun_bytes or self._sending.locked() or not frame:
            return False
        packed = pack(frame)
        try:
            taken_bytes = self._take(packed)
        except LOST:
            return False  # `send` will say so
        if taken_bytes < len(packed):
            self._begun_bytes = taken_bytes
            return False
        self._sent_s = trio.current_time()
        return True

    async def _write(self, packed: bytes) -> None:
        """Send bytes at once if the stream takes them all so and no other frame is under way."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._check()
        taken_bytes, self._begun_bytes = self._begun_bytes, 0
        if not (taken_bytes or self._sending.locked()):
            try:
                taken_bytes = self._take(packed)
            except LOST as error:
                await self._break(what_broke(error), error)
        if taken_bytes < len(packed):
            # If some were taken the lock is free, so nobody comes between them and the rest.
            await self._write_rest(packed[taken_bytes:])
        self._sent_s = trio.current_time()

    async def _write_rest(self, rest: bytes) -> None:
        async with self._sending:
            self._check()
            try:
                with anyio.move_on_after(self._timings.frame_s) as scope:
                    await self._stream.send(rest)
            except LOST as error:
                await self._break(what_broke(error), error)
            except BaseException:
                await self._close("a frame was cut short on this side")
                raise
            if scope.cancelled_caught:
                await self._break(f"the peer took no frame within {self._timings.frame_s:g} s")

    async def receive(self) -> bytes:
        """Return the next frame; heartbeats are taken in silence.

        BrokenLinkError if the link is broken, the peer closes it, is silent, is too slow with a
        frame or announces one over the limit. May be cancelled and called again: nothing is lost.
        """
        with self._receiving:
            if self._buffer.is_partial:
                await (
                    trio.lowlevel.checkpoint()
                )  # frames that came already must not starve the other tasks
            while True:
                self._check()
                try:
                    frame = self._buffer.take()
                except FrameError as error:
                    await self._break(str(error), error)
                if frame is None:
                    await self._read()
                    continue
                self._partial_s = 0.0
                if frame:
                    return frame

    async def _read(self) -> None:
        """Wait for the next piece, no longer than what is left of silence and frame time."""
        if self._watched and not self._silent_s and not self._buffer.is_partial:
            await self._read_watched()
            return
        timings, partial = self._timings, self._buffer.is_partial
        left_s = silence_s = timings.silence_s - self._silent_s
        if partial:
            left_s = min(left_s, timings.frame_s - self._partial_s)
        since_s = trio.current_time()
        piece = b""
        try:
            with trio.CancelScope(deadline=since_s + max(left_s, 0.0)):
                piece = await self._stream.receive(READ_BYTES)
        except LOST as error:
            cut = " in the middle of a frame" if partial else ""
            await self._break(what_broke(error) + cut, error)
        finally:
            waited_s = trio.current_time() - since_s
            self._silent_s += waited_s
            self._partial_s += waited_s if partial else 0.0
        if not piece:
            if left_s < silence_s:
                await self._break(f"a frame did not finish within {timings.frame_s:g} s")
            await self._break(f"heard nothing for {timings.silence_s:g} s")
        self._silent_s = 0.0
        self._buffer.feed(piece)

    async def _read_watched(self) -> None:
        """Wait for the first piece of a frame, while `_watch` looks at the time or nobody need.

        Nearly every read is one of these, and a time limit for each cost a third of all a frame's
        way over TCP.
        """
        since_s = self._reads_since_s = trio.current_time()
        try:
            self._buffer.feed(await self._stream.receive(READ_BYTES))
        except LOST as error:
            await self._break(what_broke(error), error)
        except BaseException:
            self._silent_s = trio.current_time() - since_s
            raise
        finally:
            self._reads_since_s = None

    async def keep_alive(self) -> None:
        """Keep the link, and find out when it is lost; ends with the link.

        Send a heartbeat whenever nothing was sent for `heartbeat_s`. While this runs it also
        watches how long `receive` waits, which costs less than a time limit for each read; it
        breaks the link by closing the stream, which must end a `receive` that waits.
        """
        self._watched = True
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch)
                await self._send_heartbeats()
                tasks.cancel_scope.cancel()
        finally:
            self._watched = self._timings.silence_s == inf

    async def _watch(self) -> None:
        """Break the link once a read that has no time limit of its own takes too long."""
        silence_s = self._timings.silence_s
        while self._broken is None:
            since_s = self._reads_since_s
            await anyio.sleep_until(
                silence_s + (trio.current_time() if since_s is None else since_s)
            )
            # What came while the whole process stood still is read first.
            await trio.lowlevel.checkpoint()
            if since_s is not None and self._reads_since_s == since_s:
                await self._close(f"heard nothing for {silence_s:g} s")

    async def _send_heartbeats(self) -> None:
        heartbeat_s = self._timings.heartbeat_s
        while self._broken is None:
            due_s = self._sent_s + heartbeat_s
            if trio.current_time() < due_s:
                await anyio.sleep_until(due_s)
                for _ in range(2):  # what ends at this instant ends first, and is read
                    await trio.lowlevel.checkpoint()
            elif self._sending.locked() or self._begun_bytes:
                await anyio.sleep(heartbeat_s)  # a frame is on its way, which says as much
            else:
                try:
                    await self._write(pack(b""))
                except BrokenLinkError:
                    return

    async def aclose(self) -> None:
        """Break the link from this side. What was sent and not yet read by the peer may be lost."""
        await self._close(CLOSED_HERE)

    def _check(self) -> None:
        if self._broken is not None:
            raise BrokenLinkError(self._broken)

    async def _break(self, reason: str, cause: Exception | None = None) -> NoReturn:
        await self._close(reason)
        assert self._broken is not None
        raise BrokenLinkError(self._broken) from cause

    async def _close(self, reason: str) -> None:
        """Close at once. The first reason stays: what fails afterwards fails because of it."""
        if self._broken is None:
            self._broken = reason
        await close_now(self._stream)


def _nothing(_item: bytes) -> int:
    """Send nothing at once, as a stream that can't know whether it would have to wait."""
    return 0


async def close_now(stream: ByteStream) -> None:
    """Close a stream whatever its peer does, also when this task is cancelled.

    Not by `aclose_forcefully`: of a stream that is stapled from two it would close the first only.
    """
    with anyio.move_on_after(FAREWELL_S, shield=True), suppress(*LOST):
        await stream.aclose()


async def converse(connection: Connection, handle: Callable[[Connection], Awaitable[None]]) -> str:
    """Run `handle` on a connection with heartbeats beside it, close, and return why it ended.

    A BrokenLinkError or FrameError of `handle` is such a reason, also from inside task groups of
    its own. Anything else is a mistake on this side and is raised.
    """
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.keep_alive)
            try:
                await handle(connection)
                reason = CLOSED_HERE
            except (BrokenLinkError, FrameError) as error:
                reason = str(error)
            except BaseExceptionGroup as group:
                reason = _only_reason(group)
            tasks.cancel_scope.cancel()
    finally:
        await connection.aclose()
    return reason


def _only_reason(group: BaseExceptionGroup[Any]) -> str:
    """Return the first reason of a group that holds nothing but broken links; raise it if not.

    Of one that broke at the moment when all was cancelled the cancellation alone is raised: the
    broken link would outlive the scope that is cancelled, and end what has to go on.
    """
    broken, others = group.split((BrokenLinkError, FrameError))
    if others is not None and others.split(trio.Cancelled)[1] is None:
        raise others
    if others is not None or broken is None:
        raise group
    first: BaseException = broken
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return str(first)


def what_broke(error: BaseException) -> str:
    """Return in words what a stream's exception means."""
    if isinstance(error, anyio.EndOfStream):
        return "the peer closed the connection"
    if isinstance(error, anyio.ClosedResourceError):
        return CLOSED_HERE
    if isinstance(error, ssl.SSLCertVerificationError):
        clock = " (or this machine's clock is wrong)" if error.verify_code in (9, 10) else ""
        return f"the peer's certificate is refused: {error.verify_message}{clock}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {getattr(error, 'reason', None) or error.strerror}"
    if isinstance(error, OSError):
        inner = error.__cause__
        if isinstance(inner, OSError):
            return what_broke(inner)
        if (error.errno or 0) > 0 and not isinstance(error, socket.gaierror):
            return os.strerror(error.errno or 0)  # the system's word, without the address before it
        return error.strerror or str(error)
    inner = error.__cause__
    return what_broke(inner) if isinstance(inner, OSError) else "the connection was lost"
