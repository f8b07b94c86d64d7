"""What holds for every request, whatever answers it: bounds, whose host it is, and headers.

Theory of operation. A request's head is bounded by hypercorn, in bytes and in time. Its body is
read here, whole, within a bound and a time, before anything looks at it: so no part of the
application waits for a slow client. A name that a page somewhere made to point at this machine
(DNS rebinding) is refused by its Host; a form that another site sends, by its Origin. An error of
ours is told to whoever runs the server, and its page says nothing of it.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response

BODY_LIMIT_BYTES = 65_536  # a form has a few hundred bytes
BODY_LIMIT_S = 10.0  # for a whole body
HEAD_LIMIT_BYTES = 16_384  # a hundred headers of the usual length
HEADERS_LIMIT = 64  # browsers send some 20
REQUESTS_LIMIT = 64  # answered at once
TARGET_LIMIT_CHARS = 2_000  # of a path with its query: ours are shorter than 700

# A page of ours loads its own style and nothing else, runs no script, and is in nobody's frame.
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    # With "no-referrer" browsers would say "Origin: null" in our own forms too.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """How this server is reached. `url` is its public one, "https://pull.example.org", or empty.

    `tls` says that connections are encrypted here, `local` that only this machine can connect.
    """

    url: str = ""
    tls: bool = False
    local: bool = True

    @property
    def secure(self) -> bool:
        """Whether browsers reach it encrypted, here or at a proxy in front."""
        return self.tls or self.url.startswith("https://")

    @property
    def private(self) -> bool:
        """Whether nobody but this machine is meant to reach it."""
        return self.local and not self.url

    def knows(self, host: str) -> bool:
        """Whether a Host header may name this server: by an address, as localhost, by its URL."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name == urlsplit(self.url).hostname:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


class Refusal(Exception):  # noqa: N818  no error of ours: what a request is answered
    """A request that nothing more is done about: its status, and a sentence with the cure."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        """Keep them."""
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}


class Guard:
    """An ASGI application around another. `say` is told of errors, line by line.

    `answered` counts the answers, by status.
    """

    def __init__(
        self, app: App, site: Site, say: Callable[[str], None], answered: dict[int, int]
    ) -> None:
        self._app = app
        self._site = site
        self._say = say
        self._room = REQUESTS_LIMIT
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; there are no websockets. A start and an end are the application's."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1002})
        elif scope["type"] == "http":
            await self._answer(scope, receive, _Reply(send, self._answered))
        else:
            await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: _Reply) -> None:
        try:
            self._check_head(scope)
            self._room -= 1
            try:
                body = await _read(receive, _length(scope))
                await self._app(scope, _Given(body, receive), send)
            finally:
                self._room += 1
        except Refusal as refusal:
            await _plain(refusal)(scope, receive, send)
        except Exception as error:  # noqa: BLE001  one request must not end the server
            self._tell(scope, error)
            if not send.begun:
                sentence = "an error of the server: its log has more; try again"
                await _plain(Refusal(500, sentence))(scope, receive, send)

    def _check_head(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if not self._room:
            sentence = "too many requests at once: try again in a few seconds"
            raise Refusal(503, sentence, {"Retry-After": "5"})
        if scope["http_version"] == "2" and scope["scheme"] == "http":
            raise Refusal(505, "HTTP/2 is spoken over TLS alone: use HTTP/1.1")
        if len(scope["headers"]) > HEADERS_LIMIT:
            raise Refusal(431, f"a request has at most {HEADERS_LIMIT} headers")
        # Hypercorn looks at the size of a head only while there is more of it to come.
        if sum(len(name) + len(text) for name, text in scope["headers"]) > HEAD_LIMIT_BYTES:
            raise Refusal(431, f"a request's headers have at most {HEAD_LIMIT_BYTES:,} bytes")
        if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_LIMIT_CHARS:
            raise Refusal(414, f"an address has at most {TARGET_LIMIT_CHARS} characters")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._site.knows(hosts[0]):
            raise Refusal(
                421, "this server has no such name: start it with --http-url, or use its address"
            )
        if scope["method"] == "POST":
            _check_origin(headers, hosts[0])

    def _tell(self, scope: Scope, error: Exception) -> None:
        # The path may hold a link's secret, so only its first part is told.
        where = f"/{scope['path'].removeprefix('/').partition('/')[0][:40]}"
        self._say(f"a request for {where!r} failed: {error!r}")
        for part in traceback.format_exception(error):
            self._say(part.rstrip())


def _check_origin(headers: Headers, host: str) -> None:
    """Refuse what a page of another site has a browser send here."""
    origin = headers.get("origin")
    if origin is None:  # an old browser, or none: the form's key decides
        foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    else:
        # The scheme is that of the proxy in front, if there is one.
        foreign = origin.partition("://")[2] != host
    if foreign:
        raise Refusal(403, "this form was sent by a page of another site: open it here")


def _length(scope: Scope) -> int:
    """Return how long a body says it is, 0 if it doesn't say."""
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else 1 << 62


async def _read(receive: Receive, length_bytes: int) -> bytes:
    """Return a request's whole body."""
    body = bytearray()
    more = True
    with trio.move_on_after(BODY_LIMIT_S) as scope:
        while more:
            if max(len(body), length_bytes) > BODY_LIMIT_BYTES:
                raise Refusal(413, f"a body has at most {BODY_LIMIT_BYTES:,} bytes")
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Refusal(400, "the request ended before its body did")
            body += event.get("body", b"")
            more = event.get("more_body", False)
    if scope.cancelled_caught:
        raise Refusal(408, f"the request took longer than {BODY_LIMIT_S:g} s")
    if len(body) > BODY_LIMIT_BYTES:
        raise Refusal(413, f"a body has at most {BODY_LIMIT_BYTES:,} bytes")
    return bytes(body)


def _plain(refusal: Refusal) -> Response:
    return PlainTextResponse(
        f"{refusal.sentence}\n", status_code=refusal.status, headers=refusal.headers
    )


class _Given:
    """Hands over a body that was read, then what else comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Event:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Reply:
    """Sends an answer, with the headers that every one has."""

    def __init__(self, send: Send, answered: dict[int, int]) -> None:
        self._send = send
        self._answered = answered
        self.begun = False

    async def __call__(self, event: Event) -> None:
        if event["type"] == "http.response.start":
            self.begun = True
            status = event["status"]
            self._answered[status] = self._answered.get(status, 0) + 1
            headers = MutableHeaders(raw=event.setdefault("headers", []))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(event)
