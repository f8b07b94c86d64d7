"""How an owner comes in, by a token or by a link that works once, and goes out."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import Response

from actors.accounts.messages import Authenticate, Authenticated, Denied
from actors.edges.door import hash_token
from scenarios.service.http.asking import NotAnsweredError
from scenarios.service.http.desk import (
    COOKIE,
    SIGN_IN,
    Desk,
    address_of,
    go,
    is_ours,
    not_found,
    read_form,
)
from scenarios.service.http.guard import Refusal
from scenarios.service.http.sessions import Session
from scenarios.service.http.words import counted

VISIT = "pullcord_visit"  # the cookie of a browser that is not signed in: its forms' key
TOKEN_LIMIT_CHARS = 200
WRONG = "This is not the token of an owner: copy the whole of it, it begins with pc_own_."


class Doorway:
    """The pages for those who are not signed in."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show the form for a token."""
        return self._form(request, "")

    async def enter(self, request: Request) -> Response:
        """Take a token; the owner is signed in, or told that it is wrong."""
        address = address_of(request)
        wait_s = self._desk.tries.wait_s(address)
        if wait_s:
            return self._desk.problem(_too_many(wait_s))
        try:
            fields = await read_form(request, self._key(request))
        except Refusal as refusal:
            return self._form(request, refusal.sentence, refusal.status)
        token = fields.get("token", "").strip()[:TOKEN_LIMIT_CHARS]
        proof = hash_token(token)
        try:
            answer = await self._desk.asker.ask(Authenticate(token_hash=proof, address=address))
        except NotAnsweredError:
            return self._form(request, "The server is busy: try again in a few seconds.", 503)
        if isinstance(answer, Authenticated) and answer.kind == "owner":
            after = fields.get("after", "")
            return self._welcome(answer.principal, answer.name, proof, after)
        self._desk.tries.failed(address)
        revoked = isinstance(answer, Denied) and answer.reason in ("revoked", "superseded")
        return self._form(request, answer.error if revoked else WRONG, 403)  # type: ignore[attr-defined]  # it is Denied

    async def show_link(self, request: Request) -> Response:
        """Show what a link does. Opening it uses nothing up: programs look at links, too."""
        code = str(request.path_params["code"])
        return self._visit(request, "link", code=code)

    async def enter_by_link(self, request: Request) -> Response:
        """Use a link up; the owner for whom it was made is signed in."""
        address = address_of(request)
        wait_s = self._desk.tries.wait_s(address)
        if wait_s:
            return self._desk.problem(_too_many(wait_s))
        try:
            await read_form(request, self._key(request))
        except Refusal as refusal:
            return self._desk.problem(refusal)
        found = self._desk.links.take(str(request.path_params["code"]))
        if found is None:
            self._desk.tries.failed(address)
            sentence = "This link was used, or is older than five minutes: ask for another."
            return self._desk.problem(Refusal(403, sentence))
        principal, name = found
        return self._welcome(principal, name)

    async def leave(self, request: Request, session: Session) -> Response:
        """Sign an owner out."""
        await read_form(request, session.form_key)
        self._desk.sessions.end(session)
        response = go(SIGN_IN)
        self._desk.drop_cookie(response, COOKIE)
        return response

    async def nothing(self, request: Request) -> Response:
        """Answer for an address that no page has."""
        return self._desk.problem(not_found())

    def _welcome(self, principal: str, name: str, proof: str = "", after: str = "") -> Response:
        _, cookie = self._desk.sessions.begin(principal, name, proof)
        response = go(after if is_ours(after) else "/")
        self._desk.set_cookie(response, COOKIE, cookie)
        self._desk.drop_cookie(response, VISIT)
        return response

    def _form(self, request: Request, error: str, status: int = 200) -> Response:
        after = request.query_params.get("after", "")
        shown = after if is_ours(after) else ""
        return self._visit(request, "sign_in", status, error=error, after=shown)

    def _key(self, request: Request) -> str:
        """The key of this browser's forms; that of one without a cookie is on no page."""
        return self._desk.forms.key(self._desk.cookie(request, VISIT))

    def _visit(self, request: Request, name: str, status: int = 200, **shown: str) -> Response:
        """Return a page with a form, and a cookie that goes with it."""
        cookie = self._desk.cookie(request, VISIT)
        fresh = cookie or secrets.token_urlsafe(32)
        form_key = self._desk.forms.key(fresh)
        response = self._desk.page(name, None, status, form_key=form_key, **shown)
        if not cookie:
            self._desk.set_cookie(response, VISIT, fresh)
        return response


def _too_many(wait_s: int) -> Refusal:
    sentence = f"Too many tries that failed: try again in {counted(wait_s // 60 + 1, 'minute')}."
    return Refusal(429, sentence, {"Retry-After": str(wait_s)})
