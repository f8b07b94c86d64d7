"""The control API's HTTP: h11 on a trio stream, with a bound on everything a client may send.

One task a connection reads a request, has it answered, and goes on with the next. A request is
small and comes at once; whoever is slower, larger or no HTTP is refused and closed.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus

import h11
import msgspec
import trio

from scenarios.control_api import Answer, ControlApi, error_answer
from transports.listening import Report, serve_all
from transports.proxied import close_gently
from transports.proxy import Proxies

CLIENTS_LIMIT = 32  # tests change a proxy from a few processes; more wait in the system's backlog
HEAD_LIMIT_BYTES = 16_384  # a hundred headers of the usual length
HEADERS_LIMIT = 64  # browsers send some 20
BODY_LIMIT_BYTES = 262_144  # a hundred proxies take a tenth of it
REQUEST_LIMIT_S = 10.0  # for a whole request, and for a client that sends none
ANSWER_LIMIT_S = 10.0  # for a client that doesn't read
READ_BYTES = 16_384


class _RefusedError(Exception):
    """A request that is refused before it was read whole, so the connection is over."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.answer = error_answer(status, message)


async def serve_control(
    proxies: Proxies, listeners: list[trio.SocketListener], report: Report
) -> None:
    """Answer requests on these listeners until cancelled; they are closed then."""
    api = ControlApi(proxies)

    async def talk(stream: trio.SocketStream) -> None:
        await talk_control(api, stream)

    async with trio.open_nursery() as nursery:
        room = trio.Semaphore(CLIENTS_LIMIT)
        await serve_all(listeners, room, talk, nursery, report)


async def talk_control(api: ControlApi, stream: trio.abc.HalfCloseableStream) -> None:
    """Answer the requests of one connection, and close it."""
    await _Client(api, stream).talk()


class _Client:
    """One connection of a client."""

    def __init__(self, api: ControlApi, stream: trio.abc.HalfCloseableStream) -> None:
        self._api = api
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT_BYTES)
        self._is_head = False  # an answer to HEAD has no body

    async def talk(self) -> None:
        """Answer requests until either side has had enough, then close."""
        try:
            with suppress(trio.BrokenResourceError):
                while await self._answer_one():
                    self._http.start_next_cycle()
                await close_gently([self._stream])
        finally:
            await trio.aclose_forcefully(self._stream)

    async def _answer_one(self) -> bool:
        """Answer one request; return whether another may follow."""
        try:
            with trio.fail_after(REQUEST_LIMIT_S):
                request, body = await self._receive()
            if request is None:
                return False
            method, target = request.method.decode("latin-1"), request.target.decode("latin-1")
            answer = await self._api.answer(method, target, body)
        except _RefusedError as error:
            answer = error.answer
        except h11.RemoteProtocolError as error:
            answer = error_answer(error.error_status_hint, f"this is not HTTP/1.1: {error}")
        except trio.TooSlowError:
            if self._http.trailing_data[0] or self._http.their_state is not h11.IDLE:
                answer = error_answer(408, f"the request took longer than {REQUEST_LIMIT_S:g} s")
            else:
                return False
        try:
            with trio.fail_after(ANSWER_LIMIT_S):
                await self._send(answer)
        except trio.TooSlowError:
            return False
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _receive(self) -> tuple[h11.Request | None, bytes]:
        """Return the next request with its body; None if the client has closed."""
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._ask_for_more()
            elif isinstance(event, h11.Request):
                request = event
                self._check_head(event)
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_LIMIT_BYTES:
                    raise _RefusedError(413, f"a body has at most {BODY_LIMIT_BYTES} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return request, bytes(body)
            else:  # ConnectionClosed, or PAUSED by a client that has ended the connection
                return None, b""

    async def _ask_for_more(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            head = h11.InformationalResponse(status_code=100, headers=[])
            await self._stream.send_all(self._http.send(head) or b"")
        self._http.receive_data(bytes(await self._stream.receive_some(READ_BYTES)))

    def _check_head(self, request: h11.Request) -> None:
        self._is_head = request.method == b"HEAD"
        headers = dict(request.headers)
        if len(request.headers) > HEADERS_LIMIT:
            raise _RefusedError(431, f"a request has at most {HEADERS_LIMIT} headers")
        length = headers.get(b"content-length", b"0")
        if int(length) > BODY_LIMIT_BYTES:
            raise _RefusedError(413, f"a body has at most {BODY_LIMIT_BYTES} bytes")
        # A page in the user's browser could reach this port: no page may steer the proxy.
        if b"origin" in headers or headers.get(b"user-agent", b"").startswith(b"Mozilla/"):
            raise _RefusedError(403, "browsers are refused: use curl or a client library")

    async def _send(self, answer: Answer) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        content = b"" if answer.data is None else msgspec.json.encode(answer.data) + b"\n"
        headers = [("Cache-Control", "no-store")]
        if answer.status != HTTPStatus.NO_CONTENT:
            headers += [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
        if answer.allow:
            headers.append(("Allow", ", ".join(answer.allow)))
        if self._http.their_state is not h11.DONE:  # the rest of the request is never read
            headers.append(("Connection", "close"))
        reason = HTTPStatus(answer.status).phrase
        head = h11.Response(status_code=answer.status, headers=headers, reason=reason.encode())
        sent = self._http.send(head) or b""
        if content and not self._is_head:
            sent += self._http.send(h11.Data(data=content)) or b""
        sent += self._http.send(h11.EndOfMessage()) or b""
        await self._stream.send_all(sent)
