"""Connections to an ASGI application: hypercorn speaks HTTP on them, we accept and end them.

Hypercorn's own loop knows no limit to connections, waits for ever for a client that takes nothing,
and is ended as a whole by an error in one connection, which a client can bring about. So each is
given to it alone, and what goes wrong there ends that connection. HTTP/2 isn't offered: such an
error is a body that comes after its answer. (A client may ask for it unasked, in plain; `guard`
refuses that.)
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from scenarios.service.http.guard import HEAD_LIMIT_BYTES, App
from transports.listening import serve_all

CONNECTIONS_LIMIT = 256  # browsers hold a few each; more wait in the system's backlog
HEAD_LIMIT_S = 5.0  # for a request's head, and between two of a connection
STALLED_LIMIT_S = 20.0  # for a client that takes nothing of an answer
DRAIN_S = 5.0  # for answers that are under way
TOLD_S = 60.0  # errors of connections are told once in so long: a client can make any number


class Connections:
    """See the module's docstring. `say` is told, now and then, of what went wrong."""

    def __init__(self, app: App, tls: ssl.SSLContext | None, say: Callable[[str], None]) -> None:
        self._config = configured()
        self._app = wrap_app(app, self._config.wsgi_max_body_size, "asgi")  # type: ignore[arg-type]  # its events are unions, ours any mappings
        self._tls = tls
        self._say = say
        self._told_s = float("-inf")
        self._context = WorkerContext(None)

    async def serve(self, listeners: list[trio.SocketListener], stop: trio.Event) -> None:
        """Answer until told to stop, and then what is under way; the listeners are closed."""
        async with trio.open_nursery() as talking:
            async with trio.open_nursery() as accepting:
                room = trio.Semaphore(CONNECTIONS_LIMIT)
                accepting.start_soon(serve_all, listeners, room, self._talk, talking, self._tell)
                await stop.wait()
                accepting.cancel_scope.cancel()
            await self._context.terminated.set()
            talking.cancel_scope.deadline = trio.current_time() + DRAIN_S

    async def _talk(self, socket: trio.SocketStream) -> None:
        """Be a connection's life. Whatever it ends by is its own."""
        patient = _Patient(socket)
        stream: trio.abc.Stream = patient
        if self._tls is not None:
            stream = trio.SSLStream(patient, self._tls, server_side=True, https_compatible=True)
        state = ConnectionState({})
        try:
            await TCPServer(self._app, self._config, self._context, state, stream)  # type: ignore[arg-type]  # it takes sockets without TLS too
        except* Exception as errors:  # noqa: BLE001  one connection must not end the server
            self._tell(f"a connection was ended by an error in it: {_first(errors)!r}")
        finally:
            await trio.aclose_forcefully(socket)

    def _tell(self, line: str) -> None:
        if trio.current_time() - self._told_s >= TOLD_S:
            self._told_s = trio.current_time()
            self._say(line)


def configured() -> Config:
    """Return hypercorn's bounds for a connection; it says nothing by itself."""
    config = Config()
    config.errorlog = config.accesslog = None  # errors are told by `guard`
    config.include_server_header = False
    config.h11_max_incomplete_size = HEAD_LIMIT_BYTES
    config.keep_alive_timeout = config.ssl_handshake_timeout = HEAD_LIMIT_S
    return config


def _first(errors: BaseExceptionGroup[Exception]) -> BaseException:
    """Return what is at the bottom of groups of groups."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Patient(trio.abc.HalfCloseableStream):
    """A socket whose other side may take its time, but not for ever."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket = stream.socket  # hypercorn asks it for its addresses
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        with trio.move_on_after(STALLED_LIMIT_S) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError(f"it took nothing for {STALLED_LIMIT_S:g} s")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
