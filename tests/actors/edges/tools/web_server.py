"""A web server on loopback that says what a test wants, and tells what it was asked."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio


@dataclass
class WebServer:
    """Answers every request with the bytes of its path."""

    pages: dict[str, bytes] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, stream: Any) -> None:
        """Serve one connection, which has one request."""
        raw = b""
        try:
            while b"\r\n\r\n" not in raw:
                chunk = await stream.receive_some(65_536)
                if not chunk:
                    return
                raw += chunk
            text = raw.decode("latin-1")
            self.seen.append(text)
            await stream.send_all(self.pages[text.split()[1]])
            await stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


def page(body: str | bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A response whose end is its connection's."""
    usual = {"Content_Type": "text/html; charset=utf-8", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{key.replace('_', '-')}: {usual[key]}" for key in usual)]
    raw = body if isinstance(body, bytes) else body.encode()
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + raw


@asynccontextmanager
async def serving(
    pages: dict[str, bytes], context: ssl.SSLContext | None = None
) -> AsyncIterator[WebServer]:
    """Serve these pages."""
    server = WebServer(pages)
    async with trio.open_nursery() as nursery:
        serve: Any
        listeners: Sequence[Any]
        if context is None:
            serve = partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1")
        else:
            serve = partial(
                trio.serve_ssl_over_tcp, server.serve, 0, context, host="127.0.0.1",
                https_compatible=True,
            )  # fmt: skip
        listeners = await nursery.start(serve)
        transport = getattr(listeners[0], "transport_listener", listeners[0])
        server.port = transport.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()
