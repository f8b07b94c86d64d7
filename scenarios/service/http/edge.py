"""The HTTP edge: hypercorn in the server's own process, on its scheduler.

Hypercorn bounds a request's head in bytes and in time; `guard` bounds the rest. The sockets are
ours, so that a port in use is told in our words, and so that the system cuts off a client that
takes nothing: hypercorn waits for those without a limit.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from actors.accounts.messages import Authenticated, AuthenticateLocal
from actors.edges.door import SignInLink
from actors.edges.gateway import Gateway
from scenarios.graph_files import refusal
from scenarios.service.http.app import application
from scenarios.service.http.asking import Asker, NotAnsweredError
from scenarios.service.http.desk import Desk
from scenarios.service.http.guard import HEAD_LIMIT_BYTES, App, Site
from scenarios.service.http.sessions import LINK_LIMIT_S
from scenarios.service.meter import Meter
from transports.envelope import Envelope
from transports.listening import Address, ProxyError, listen

HEAD_LIMIT_S = 5.0  # for a request's head, and between two of a connection
STALLED_LIMIT_S = 20.0  # for a client that takes nothing of an answer
STREAMS_LIMIT = 16  # of one HTTP/2 connection
DRAIN_S = 5.0  # for answers that are under way


class HttpPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where HTTP is served: an address, its certificate if any, and the public URL if any.

    `origin` is where the address was written, `here` whether this machine alone can reach it.
    """

    listen: Address
    origin: str = "--http"
    here: bool = True
    url: str = ""
    certificate: Path | None = None
    key: Path | None = None


class HttpEdge:
    """Serves the owner's pages, and what machines ask, beside a gateway.

    `say` is told where that is, how the first owner comes in, and what went wrong.
    """

    def __init__(
        self,
        place: HttpPlace,
        gateway: Gateway,
        wall_us: Callable[[], int],
        say: Callable[[str], None],
        meter: Meter,
    ) -> None:
        self._place = place
        self._say = say
        self._stop = trio.Event()
        self._sockets: list[socket.socket] = []
        self._asker = Asker(gateway.ask)
        site = Site(
            url=place.url,
            tls=place.certificate is not None,
            local=place.here,
        )
        self._desk = Desk(self._asker, site, trio.current_time, wall_us)
        gateway.on_revoked.append(self._desk.sessions.end_all)
        gateway.make_link = self.link
        self._app: App = application(
            self._desk, say, lambda: gateway.board.connections, self._stop.is_set, meter
        )
        self.address = place.listen

    async def open(self) -> None:
        """Take the port; ScenarioError if it can't be had."""
        try:
            listeners, self.address = await listen(self._place.listen)
        except ProxyError as error:
            raise refusal(self._place.origin, error.message, error.cure) from error
        for listener in listeners:
            taken = socket.socket(fileno=os.dup(listener.socket.fileno()))
            _cut_off_stalled(taken)
            self._sockets.append(taken)
            await listener.aclose()

    async def live(self) -> None:
        """Serve until cancelled, or until it is to read no more."""
        self._say(f"owner's page: {self.base}/")
        await self._tell_link()
        try:
            await serve(self._app, self._config(), shutdown_trigger=self._stop.wait)  # type: ignore[arg-type]  # its events are unions, ours any mappings
        finally:
            for taken in self._sockets:
                taken.close()

    @property
    def base(self) -> str:
        """The URL of the owner's page, without the slash at its end."""
        scheme = "http" if self._place.certificate is None else "https"
        host = str(self.address).replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:")
        return (self._place.url or f"{scheme}://{host}").rstrip("/")

    def link(self, principal: str, name: str) -> SignInLink:
        """Return an address that signs an owner in, once, for a short time."""
        url = f"{self.base}/link/{self._desk.links.make(principal, name)}"
        return SignInLink(url=url, expires_in_us=round(LINK_LIMIT_S * 1e6))

    def take(self, envelope: Envelope[Any]) -> bool:
        """Nothing goes out here that was not asked for."""
        return False

    def stop_reading(self) -> None:
        """Take no more requests; those that are under way are answered."""
        self._stop.set()

    @property
    def idle(self) -> bool:
        """Whether no request waits for the server's answer."""
        return self._asker.idle

    async def _tell_link(self) -> None:
        """Print a way in for whoever may read this process's console."""
        try:
            answer = await self._asker.ask(AuthenticateLocal())
        except NotAnsweredError:
            return
        if isinstance(answer, Authenticated):
            link = self.link(answer.principal, answer.name)
            self._say(f"sign in once within five minutes: {link.url}")

    def _config(self) -> Config:
        config = Config()
        # From here on the sockets are hypercorn's, which closes them once it lets nobody in.
        config.bind = [f"fd://{taken.detach()}" for taken in self._sockets]
        if self._place.certificate is not None:
            config.certfile = str(self._place.certificate)
            config.keyfile = str(self._place.key or self._place.certificate)
        config.errorlog = config.accesslog = None  # errors are told by `guard`
        config.include_server_header = False
        config.h11_max_incomplete_size = HEAD_LIMIT_BYTES
        config.h2_max_header_list_size = HEAD_LIMIT_BYTES
        config.h2_max_concurrent_streams = STREAMS_LIMIT
        config.keep_alive_timeout = config.ssl_handshake_timeout = HEAD_LIMIT_S
        config.graceful_timeout = config.shutdown_timeout = DRAIN_S
        return config


def _cut_off_stalled(listening: socket.socket) -> None:
    """Have the system end connections whose other side takes nothing; Linux alone can."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None:
        listening.setsockopt(socket.IPPROTO_TCP, option, round(STALLED_LIMIT_S * 1000))
