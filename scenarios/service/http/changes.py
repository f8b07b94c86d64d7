"""What an owner does. Each change is a form that is sent, after a page that says what it means."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from actors.accounts.messages import (
    AddAgent,
    CancelRun,
    Changed,
    ForgetRun,
    NewPairingCode,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    Scope,
)
from actors.edges.door import PairingCode, PrincipalToken, hash_token
from actors.messages import Message
from scenarios.service.http.desk import Desk, go, not_found, read_form
from scenarios.service.http.guard import Refusal
from scenarios.service.http.pages import Pages, named
from scenarios.service.http.sessions import Session
from scenarios.service.http.words import S, plain
from scenarios.service.owner import pair_command

NAME_LIMIT_CHARS = 100  # of a new agent
MAY: dict[str, tuple[Scope, ...]] = {
    "run": ("graphs:read", "graphs:run"),
    "look": ("graphs:read",),
}


class Sure(msgspec.Struct, frozen=True):
    """What an owner is asked before a change, what it means, and what the button says."""

    question: str
    meaning: str
    button: str


CANCEL = Sure(
    "Cancel this run?",
    "If it waits it is cancelled at once. If it runs, its desktop is told to stop it.",
    "Cancel the run",
)
FORGET = Sure(
    "Forget this run?",
    "Its arguments and its result are deleted now, and its agent is told that there is no such "
    "run. This can't be undone.",
    "Forget the run",
)
REVOKE_DEVICE = Sure(
    "Revoke this desktop?",
    "It is cut off at once and its token ends. Runs that wait for it, or run on it, are closed. "
    "To use it again, pair it again.",
    "Revoke the desktop",
)
REVOKE_AGENT = Sure(
    "Revoke this agent?",
    "It is cut off at once and its token ends. What it queued is cancelled, and what it runs is "
    "stopped.",
    "Revoke the agent",
)
RENEW = Sure(
    "Make a new token?",
    "The token that is in use ends at once, and whatever uses it is cut off until it has the new "
    "one.",
    "Make a new token",
)


class Changes:
    """The pages that change something."""

    def __init__(self, desk: Desk, pages: Pages) -> None:
        self._desk = desk
        self._pages = pages

    # Runs

    async def cancel(self, request: Request, session: Session) -> Response:
        """Cancel a run, once the owner is sure."""
        back = f"/runs/{quote(named(request), safe='')}"
        if request.method == "GET":
            return self._sure(CANCEL, session, await self._run(request, session), back)
        return await self._do(request, session, CancelRun(command_id=named(request)), back)

    async def forget(self, request: Request, session: Session) -> Response:
        """Forget a run, once the owner is sure."""
        if request.method == "GET":
            back = f"/runs/{quote(named(request), safe='')}"
            return self._sure(FORGET, session, await self._run(request, session), back)
        return await self._do(request, session, ForgetRun(command_id=named(request)), "/#runs")

    async def _run(self, request: Request, session: Session) -> str:
        run = (await self._pages.shown_run(request, session)).run
        return f"{run.slug}, {run.command_id}"

    # Devices and agents

    async def revoke_device(self, request: Request, session: Session) -> Response:
        """Revoke a desktop, once the owner is sure."""
        if request.method == "GET":
            return self._sure(REVOKE_DEVICE, session, await self._name(request, session), "/")
        return await self._do(request, session, RevokeDevice(device=named(request)), "/")

    async def revoke_agent(self, request: Request, session: Session) -> Response:
        """Revoke an agent, once the owner is sure."""
        if request.method == "GET":
            return self._sure(REVOKE_AGENT, session, await self._name(request, session), "/agents")
        return await self._do(request, session, RevokeAgent(agent=named(request)), "/agents")

    async def renew(self, request: Request, session: Session) -> Response:
        """Give an agent, or the owner, another token, and show it this once."""
        if request.method == "GET":
            return self._sure(RENEW, session, await self._name(request, session), "/agents")
        await read_form(request, session.form_key)
        body = RenewToken(principal=named(request))
        told = await self._desk.ask(session, body, PrincipalToken)
        mine = told.principal == session.principal
        if mine and session.token_hash:  # else this browser, too, would be signed out
            session.token_hash = hash_token(told.token)
        return self._token(session, told, mine=mine)

    async def _name(self, request: Request, session: Session) -> str:
        names = await self._desk.names(session)
        name = names.get(named(request))
        if name is None:
            raise not_found()
        return name

    async def add_agent(self, request: Request, session: Session) -> Response:
        """Add an agent, and show its token this once."""
        fields = await read_form(request, session.form_key)
        name = " ".join(fields.get("name", "").split())
        if not name or len(name) > NAME_LIMIT_CHARS:
            raise Refusal(400, f"An agent's name has 1 to {NAME_LIMIT_CHARS} characters: go back.")
        scopes = MAY.get(fields.get("may", "run"))
        if scopes is None:
            raise Refusal(400, "An agent may run Graphs, or look alone: go back.")
        body = AddAgent(name=name, scopes=scopes)
        return self._token(session, await self._desk.ask(session, body, PrincipalToken))

    async def pair(self, request: Request, session: Session) -> Response:
        """Make a pairing code, and show it with the command to type."""
        await read_form(request, session.form_key)
        told = await self._desk.ask(session, NewPairingCode(), PairingCode)
        minutes = told.expires_in_us // (60 * S)
        command = pair_command(told)
        return self._desk.page("pair", session, code=told.code, command=command, minutes=minutes)

    def _token(self, session: Session, told: PrincipalToken, *, mine: bool = False) -> Response:
        return self._desk.page("token", session, name=plain(told.name), token=told.token, mine=mine)

    def _sure(self, sure: Sure, session: Session, subject: str, back: str) -> Response:
        shown = plain(subject, 200)
        return self._desk.page("sure", session, sure=sure, subject=shown, back=back)

    async def _do(self, request: Request, session: Session, body: Message, after: str) -> Response:
        await read_form(request, session.form_key)
        await self._desk.ask(session, body, Changed)
        return go(after)
