"""Byte streams between machines and processes: TCP, with or without TLS, and UNIX sockets."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import trio
from anyio.abc import (
    ByteStream,
    Listener,
    SocketAttribute,
    SocketListener,
    TaskGroup,
)
from anyio.abc import (
    SocketStream as AnyioSocketStream,
)
from anyio.streams.tls import TLSStream

ACCEPT_PAUSE_S = 0.1  # while the machine is out of what a connection takes

# accept() may fail because of one connection that is gone, or for want of files or memory; neither
# is a reason to take no more connections.
_PASSING = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM,
        errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENETDOWN, errno.ENOPROTOOPT,
        errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH,
    }
)  # fmt: skip


class SocketStream(ByteStream):
    """A plain socket's stream, with two short cuts around the layers that anyio puts on it.

    `send_nowait` is one system call, and enough unless the peer is behind. `receive` waits before
    it reads: whoever asks and waits for an answer would always try in vain first.
    """

    def __init__(self, inner: AnyioSocketStream) -> None:
        self._inner = inner
        self._raw = inner.extra(SocketAttribute.raw_socket)  # noqa: S610  no database here

    def send_nowait(self, item: bytes) -> int:
        """Send what the socket takes at once, and return how many bytes that was.

        OSError if the connection is no more. Not while a `send` is under way.
        """
        try:
            return self._raw.send(item)
        except (BlockingIOError, InterruptedError):
            return 0

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return some bytes; EndOfStream after the last."""
        while True:
            try:
                await trio.lowlevel.wait_readable(self._raw)
            except trio.ClosedResourceError as error:
                raise anyio.ClosedResourceError from error
            except trio.BusyResourceError as error:
                raise anyio.BusyResourceError("reading from") from error
            try:
                piece: bytes = self._raw.recv(max_bytes)
            except (BlockingIOError, InterruptedError):
                continue  # it was not for us, as a packet whose checksum is wrong
            except OSError as error:
                raise anyio.BrokenResourceError from error
            if not piece:
                raise anyio.EndOfStream
            return piece

    async def send(self, item: bytes) -> None:
        """Send all; waits while the peer doesn't read."""
        await self._inner.send(item)

    async def send_eof(self) -> None:
        """End this direction; the other stays."""
        await self._inner.send_eof()

    async def aclose(self) -> None:
        """Close both directions."""
        await self._inner.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """What anyio tells of the socket."""
        return self._inner.extra_attributes


class SocketsListener(Listener[ByteStream]):
    """Accepts from one or more sockets, and goes on when a single accept fails.

    With an SSL context, TLS is agreed on when a stream is first used: its time is then that of the
    greeting, and what goes wrong is that connection's own.
    """

    def __init__(
        self, listeners: Sequence[SocketListener], ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._listeners = listeners
        self._ssl_context = ssl_context

    @property
    def port(self) -> int:
        """The TCP port, the same on every address."""
        first = self._listeners[0]
        return int(first.extra(SocketAttribute.local_port))  # noqa: S610  no database here

    async def serve(
        self, handler: Callable[[ByteStream], Any], task_group: TaskGroup | None = None
    ) -> None:
        """Start `handler` with each accepted stream, for ever."""
        async with anyio.create_task_group() as accepting:
            for listener in self._listeners:
                accepting.start_soon(self._accept, listener, handler, task_group or accepting)

    async def _accept(
        self, listener: SocketListener, handler: Callable[[ByteStream], Any], tasks: TaskGroup
    ) -> None:
        while True:
            try:
                stream: ByteStream = SocketStream(await listener.accept())
            except anyio.BrokenResourceError as error:
                cause = error.__cause__
                if not isinstance(cause, OSError) or cause.errno not in _PASSING:
                    raise
                await anyio.sleep(ACCEPT_PAUSE_S)
                continue
            if self._ssl_context is not None:
                stream = _AcceptedTls(stream, self._ssl_context)
            tasks.start_soon(handler, stream)

    async def aclose(self) -> None:
        """Accept no more; streams that were accepted stay."""
        for listener in self._listeners:
            await listener.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """What anyio tells of the first socket."""
        return self._listeners[0].extra_attributes


class _AcceptedTls(ByteStream):
    """The accepting end of TLS, agreed on at the first use."""

    def __init__(self, raw: ByteStream, context: ssl.SSLContext) -> None:
        self._raw = raw
        self._context = context
        self._agreeing = anyio.Lock()
        self._tls: TLSStream | None = None

    async def _agreed(self) -> TLSStream:
        if self._tls is None:
            async with self._agreeing:
                if self._tls is None:
                    self._tls = await TLSStream.wrap(
                        self._raw,
                        server_side=True,
                        ssl_context=self._context,
                        # Frames have lengths and a link may break anywhere, so an end without
                        # TLS's own farewell says nothing wrong; and nobody waits for one.
                        standard_compatible=False,
                    )
        return self._tls

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await (await self._agreed()).receive(max_bytes)

    async def send(self, item: bytes) -> None:
        await (await self._agreed()).send(item)

    async def send_eof(self) -> None:
        await (await self._agreed()).send_eof()

    async def aclose(self) -> None:
        await self._raw.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        return (self._tls or self._raw).extra_attributes


async def listen_tcp(
    host: str | None, port: int, ssl_context: ssl.SSLContext | None = None
) -> SocketsListener:
    """Listen on a host's addresses, on all of this machine's without one; port 0 takes a free one.

    OSError if an address can't be had.
    """
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    return SocketsListener(_sockets(listener), ssl_context)


async def connect_tcp(
    host: str,
    port: int,
    ssl_context: ssl.SSLContext | None = None,
    *,
    tls_name: str | None = None,
) -> ByteStream:
    """Connect, over TLS with an SSL context; the certificate must be for `tls_name` or `host`.

    OSError (an SSLError is one) or anyio's BrokenResourceError if it can't be done. It may wait as
    long as the network does: bound it from outside.
    """
    stream = SocketStream(await anyio.connect_tcp(host, port))  # it sets TCP_NODELAY
    if ssl_context is None:
        return stream
    try:
        return await TLSStream.wrap(
            stream,
            server_side=False,
            hostname=tls_name or host,
            ssl_context=ssl_context,
            standard_compatible=False,  # as on the accepting end
        )
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def listen_unix(path: str | os.PathLike[str]) -> SocketsListener:
    """Listen on a UNIX socket at `path`, which this machine's user alone may connect to.

    A socket that a dead process left there is replaced; OSError if a living one listens on it, or
    it can't be made.
    """
    try:
        await anyio.aclose_forcefully(await anyio.connect_unix(path))
    except OSError:
        pass  # nobody is there, and anyio removes what is left
    else:
        raise OSError(errno.EADDRINUSE, "another process listens on this socket", os.fspath(path))
    listener = await anyio.create_unix_listener(path, mode=0o600)
    return SocketsListener(_sockets(listener))


async def connect_unix(path: str | os.PathLike[str]) -> ByteStream:
    """Connect to the UNIX socket at `path`; OSError if nobody listens."""
    return SocketStream(await anyio.connect_unix(path))


def _sockets(listener: Any) -> Sequence[SocketListener]:
    """Return anyio's listeners one by one; several versions give one or many of them."""
    found: Sequence[SocketListener] = getattr(listener, "listeners", [listener])
    return found
