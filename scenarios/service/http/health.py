"""What machines ask: does the process live, can it do its work, and how much waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from actors.accounts.messages import Authenticate, Authenticated, GetServerStatus, ServerStatus
from actors.edges.door import hash_token
from scenarios.service.http.asking import NotAnsweredError
from scenarios.service.http.desk import Desk, address_of
from scenarios.service.http.metrics import CONTENT_TYPE, Exposition, Seen
from scenarios.service.meter import Meter

FRESH_S = 1.0  # how old an answer may be
READY_LIMIT_S = 1.0  # who balances load asks every few seconds
TOKEN_LIMIT_CHARS = 200


class Health:
    """Answers /healthz, /readyz and /metrics.

    `connections` tells how many there are of each principal, `answered` how many HTTP answers of
    each status, `meter` how long turns took; `stopping` tells whether the process drains.
    """

    def __init__(
        self,
        desk: Desk,
        connections: Callable[[], Mapping[str, int]],
        answered: Mapping[int, int],
        stopping: Callable[[], bool],
        meter: Meter,
    ) -> None:
        self._desk = desk
        self._connections = connections
        self._answered = answered
        self._stopping = stopping
        self._meter = meter
        self._asking = trio.Lock()
        self._asked_s = float("-inf")
        self._known: ServerStatus | None = None
        self._exposition = Exposition()

    async def alive(self, request: Request) -> Response:
        """Answer as long as the process does; for who would start it again."""
        return PlainTextResponse("ok\n")

    async def ready(self, request: Request) -> Response:
        """Answer whether it takes work: its actor answers within a second, its store is written."""
        status = await self._status()
        if self._stopping():
            problem = "it is shutting down"
        elif status is None:
            problem = f"the server's actor has not answered within {READY_LIMIT_S:g} s"
        elif not status.writable:
            problem = "the store can't be written"
        else:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(f"not ready: {problem}\n", 503, {"Retry-After": "5"})

    async def metrics(self, request: Request) -> Response:
        """Answer with metrics. Beyond this machine they need an owner's token as the bearer's."""
        if not self._desk.site.private and not await self._is_owner(request):
            sentence = "metrics need an owner's token: send Authorization: Bearer pc_own_...\n"
            return PlainTextResponse(sentence, 401, {"WWW-Authenticate": "Bearer"})
        kinds: dict[str, int] = {"agent": 0, "device": 0, "owner": 0}
        for principal, count in self._connections().items():
            kind = _KINDS.get(principal.partition("_")[0])
            if kind is not None:
                kinds[kind] += count
        seen = Seen(kinds, self._answered, self._desk.sessions.count, self._meter)
        text = self._exposition.text(await self._status(), seen)
        return Response(text, media_type=CONTENT_TYPE)

    async def _status(self) -> ServerStatus | None:
        """Return how the server is, at most a second ago; None if it does not answer.

        Anybody may ask for it, so however often that is, the server is asked once a second.
        """
        async with self._asking:
            if self._desk.now() - self._asked_s >= FRESH_S:
                try:
                    answer = await self._desk.asker.ask(GetServerStatus(), limit_s=READY_LIMIT_S)
                except NotAnsweredError:
                    self._known = None
                else:
                    self._known = answer if isinstance(answer, ServerStatus) else None
                self._asked_s = self._desk.now()
            return self._known

    async def _is_owner(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        address = address_of(request)
        if scheme.lower() != "bearer" or self._desk.tries.wait_s(address):
            return False
        proof = hash_token(token.strip()[:TOKEN_LIMIT_CHARS])
        try:
            answer = await self._desk.asker.ask(Authenticate(token_hash=proof, address=address))
        except NotAnsweredError:
            return False
        if isinstance(answer, Authenticated) and answer.kind == "owner":
            return True
        self._desk.tries.failed(address)
        return False


_KINDS = {"own": "owner", "agt": "agent", "dev": "device"}
