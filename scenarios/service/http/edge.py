"""The HTTP edge: pages, health and metrics in the server's own process, beside its gateway."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import msgspec
import trio

from actors.accounts.messages import Authenticated, AuthenticateLocal
from actors.edges.door import SignInLink
from actors.edges.gateway import Gateway
from scenarios.graph_files import refusal
from scenarios.service.http.app import application
from scenarios.service.http.asking import Asker, NotAnsweredError
from scenarios.service.http.desk import Desk
from scenarios.service.http.guard import Site
from scenarios.service.http.serving import Connections
from scenarios.service.http.sessions import LINK_LIMIT_S
from scenarios.service.meter import Meter
from transports.envelope import Envelope
from transports.listening import Address, ProxyError, listen


class HttpPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where HTTP is served: an address, TLS with its certificate if any, the public URL if any.

    `origin` is where the address was written, `here` whether this machine alone can reach it.
    """

    listen: Address
    origin: str = "--http"
    here: bool = True
    url: str = ""
    tls: ssl.SSLContext | None = None


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
        self._listeners: list[trio.SocketListener] = []
        self._asker = Asker(gateway.ask)
        site = Site(
            url=place.url,
            tls=place.tls is not None,
            local=place.here,
        )
        self._desk = Desk(self._asker, site, trio.current_time, wall_us)
        gateway.on_revoked.append(self._desk.sessions.end_all)
        gateway.make_link = self.link
        app = application(
            self._desk, say, lambda: gateway.board.connections, self._stop.is_set, meter
        )
        self._connections = Connections(app, place.tls, say)
        self.address = place.listen

    async def open(self) -> None:
        """Take the port; ScenarioError if it can't be had."""
        try:
            self._listeners, self.address = await listen(self._place.listen)
        except ProxyError as error:
            raise refusal(self._place.origin, error.message, error.cure) from error

    async def live(self) -> None:
        """Serve until cancelled, or until it is to read no more."""
        self._say(f"owner's page: {self.base}/")
        await self._tell_link()
        await self._connections.serve(self._listeners, self._stop)

    @property
    def base(self) -> str:
        """The URL of the owner's page, without the slash at its end."""
        scheme = "http" if self._place.tls is None else "https"
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
