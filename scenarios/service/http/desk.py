"""Where an owner is served: who that is, what is asked for them, and what came back instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from actors.accounts.messages import (
    AgentListing,
    Agents,
    Authenticate,
    Authenticated,
    DeviceListing,
    Devices,
    ListAgents,
    ListDevices,
    PrincipalRevoked,
)
from actors.messages import Failure, Message
from scenarios.service.http.asking import Asker, NotAnsweredError
from scenarios.service.http.guard import Refusal, Site
from scenarios.service.http.render import page
from scenarios.service.http.sessions import FormKeys, Links, Now, Session, Sessions, same
from scenarios.service.http.tries import Tries
from scenarios.service.http.views import names_of
from scenarios.service.http.words import plain

COOKIE = "pullcord_session"
FIELDS_LIMIT = 20  # of a form; ours have five
CURSOR_LIMIT_CHARS = 500
NAMES_PAGES = 5  # of devices and of agents that are called by name on a page, 100 each

Handler = Callable[[Request, Session], Awaitable[Response]]
AnswerT = TypeVar("AnswerT", bound=Message)
PageT = TypeVar("PageT", Devices, Agents)
SIGN_IN = "/sign-in"


class SignedOutError(Exception):
    """Whoever asks is not signed in, or no longer."""


class Desk:
    """What every page needs. `now` is monotonic, in seconds; `wall_us` is since 1970."""

    def __init__(self, asker: Asker, site: Site, now: Now, wall_us: Callable[[], int]) -> None:
        self.asker = asker
        self.site = site
        self.now = now
        self.wall_us = wall_us
        self.sessions = Sessions(now)
        self.links = Links(now)
        self.tries = Tries(now)
        self.forms = FormKeys()

    def for_owner(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers requests by a handler, to an owner who is signed in."""

        async def endpoint(request: Request) -> Response:
            session = None
            try:
                session = await self._session(request)
                response = await handler(request, session)
            except SignedOutError:
                if session is not None:
                    self.sessions.end(session)
                after = request.url.path if request.method == "GET" else ""
                return go(SIGN_IN + (f"?after={after}" if is_ours(after) else ""))
            except Refusal as refusal:
                return self.problem(refusal, session)
            except NotAnsweredError:
                sentence = "The server is busy and has not answered: reload in a few seconds."
                return self.problem(Refusal(503, sentence, {"Retry-After": "5"}), session)
            cookie = self.sessions.renewed(session)
            if cookie is not None:
                self.set_cookie(response, COOKIE, cookie)
            return response

        return endpoint

    def problem(self, refusal: Refusal, session: Session | None = None) -> Response:
        """Return a page that says why a request is refused."""
        response = self.page("problem", session, refusal.status, sentence=refusal.sentence)
        response.headers.update(refusal.headers)
        return response

    def page(
        self, template: str, /, session: Session | None, status: int = 200, **shown: Any
    ) -> Response:
        """Return a page, with what every one has."""
        me = None if session is None else plain(session.name)
        form_key = "" if session is None else session.form_key
        return page(template, status, **({"me": me, "form_key": form_key} | shown))

    def set_cookie(self, response: Response, name: str, value: str) -> None:
        """Have the browser keep a secret until it is closed, where no script can read it."""
        response.set_cookie(
            self._cookie(name), value, secure=self.site.secure, httponly=True, samesite="lax"
        )

    def drop_cookie(self, response: Response, name: str) -> None:
        """Have the browser forget a secret."""
        response.delete_cookie(
            self._cookie(name), secure=self.site.secure, httponly=True, samesite="lax"
        )

    def cookie(self, request: Request, name: str) -> str:
        """Return a secret that the browser has kept, empty if it has none."""
        return request.cookies.get(self._cookie(name), "")

    def _cookie(self, name: str) -> str:
        # The prefix keeps whoever owns a neighbouring name from setting it.
        return f"__Host-{name}" if self.site.secure else name

    async def _session(self, request: Request) -> Session:
        session = self.sessions.find(self.cookie(request, COOKIE))
        if session is None:
            raise SignedOutError
        if self.sessions.must_check(session):
            body = Authenticate(token_hash=session.token_hash, address=address_of(request))
            answer = await self.asker.ask(body)
            if not isinstance(answer, Authenticated) or answer.principal != session.principal:
                self.sessions.end(session)
                raise SignedOutError
            self.sessions.checked(session)
        return session

    async def ask(self, session: Session, body: Message, kind: type[AnswerT]) -> AnswerT:
        """Return the server's answer to an owner; Refusal with its words if it refuses."""
        answer = await self.asker.ask(body, session.principal)
        if isinstance(answer, kind):
            return answer
        if isinstance(answer, PrincipalRevoked):
            raise SignedOutError
        if isinstance(answer, Failure):
            if answer.code == "not_found":
                raise not_found()
            status = 400 if answer.code == "bad_request" else 409
            raise Refusal(status, f"The server refuses: {plain(answer.error, 500)}.")
        raise AssertionError(f"{type(body).__name__} is not answered by {type(answer).__name__}")

    async def names(self, session: Session) -> dict[str, str]:
        """Return what to call the owner's devices and agents, and the owner."""
        devices = await self.all_devices(session)
        agents = await self.all_agents(session)
        return names_of(devices, agents) | {session.principal: session.name}

    async def all_devices(self, session: Session) -> list[DeviceListing]:
        """Return the owner's devices, the newest 500."""
        pages = self._pages(session, ListDevices(limit=100), Devices)
        return [device async for page in pages for device in page.devices]

    async def all_agents(self, session: Session) -> list[AgentListing]:
        """Return the owner's agents, the newest 500."""
        pages = self._pages(session, ListAgents(limit=100), Agents)
        return [agent async for page in pages for agent in page.agents]

    async def _pages(
        self, session: Session, body: ListDevices | ListAgents, kind: type[PageT]
    ) -> AsyncIterator[PageT]:
        for _ in range(NAMES_PAGES):
            page = await self.ask(session, body, kind)
            yield page
            if not page.cursor:
                return
            body = msgspec.structs.replace(body, cursor=page.cursor)


async def read_form(request: Request, form_key: str) -> Mapping[str, str]:
    """Return the fields of a form; Refusal unless it is one of ours, made for this browser."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "This is no form of these pages: open the page and send it from there.")
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="replace", max_num_fields=FIELDS_LIMIT
        )
    except ValueError:
        raise Refusal(400, "This form can't be read: open the page and send it there.") from None
    fields = dict(pairs)
    if not same(fields.get("form_key", ""), form_key):
        sentence = "This form is from before you signed in: go back, reload, send it again."
        raise Refusal(403, sentence)
    return fields


def cursor_of(request: Request, name: str = "cursor") -> str:
    """Return where a list goes on, as a link of ours said."""
    cursor = request.query_params.get(name, "")
    if len(cursor) > CURSOR_LIMIT_CHARS:
        raise Refusal(400, "This link is broken: begin at the first page.")
    return cursor


def not_found() -> Refusal:
    """Return the one refusal for what does not exist and for what is another owner's."""
    return Refusal(404, "There is nothing here, or it is not yours.")


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    return "unknown" if request.client is None else request.client.host


def is_ours(path: str) -> bool:
    """Whether a path is that of a page that one may come to after signing in."""
    first, _, rest = path.removeprefix("/").partition("/")
    if not path.startswith("/") or "/" in rest or not path.isascii():
        return False
    if first == "runs":
        return 0 < len(rest) <= 64 and rest.replace("-", "").replace("_", "").isalnum()
    return not rest and first in ("agents", "pair", "audit")


def go(path: str) -> Response:
    """Return an answer that has the browser open another page of ours."""
    return RedirectResponse(path, status_code=303)
