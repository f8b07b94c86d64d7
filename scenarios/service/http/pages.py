"""What an owner sees: devices and runs, a run's timeline, agents, and the audit."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from actors.accounts.messages import (
    Agents,
    Audit,
    Devices,
    ExplainRun,
    GetServerStatus,
    ListAgents,
    ListAudit,
    ListDevices,
    ListRuns,
    RunExplained,
    Runs,
    RunShown,
    ServerStatus,
    ShowRun,
)
from actors.messages import TERMINAL
from scenarios.service.http.desk import Desk, cursor_of, not_found
from scenarios.service.http.sessions import Session
from scenarios.service.http.views import (
    STATUSES,
    agent_rows,
    audit_rows,
    home,
    more,
    run_page,
)

RUNS_SHOWN = 25  # a screen or two
DEVICES_SHOWN = 25
AUDIT_SHOWN = 50
ID_LIMIT_CHARS = 100  # ours have 36


class Pages:
    """The pages that change nothing."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def home(self, request: Request, session: Session) -> Response:
        """Show devices and runs."""
        chosen = request.query_params.get("status", "")
        if chosen and chosen not in STATUSES:
            raise not_found()
        at, cursor = cursor_of(request, "devices"), cursor_of(request)
        ask = self._desk.ask
        status = await ask(session, GetServerStatus(), ServerStatus)
        devices = await ask(session, ListDevices(cursor=at, limit=DEVICES_SHOWN), Devices)
        runs = await ask(session, ListRuns(status=chosen, cursor=cursor, limit=RUNS_SHOWN), Runs)
        names = await self._desk.names(session)
        shown = home(status, devices, runs, names, chosen, at)
        return self._desk.page("home", session, view=shown)

    async def run(self, request: Request, session: Session) -> Response:
        """Show a run with its timeline."""
        shown = await self.shown_run(request, session)
        names = await self._desk.names(session)
        told = None
        if shown.run.status not in TERMINAL:
            body = ExplainRun(command_id=shown.run.command_id)
            told = await self._desk.ask(session, body, RunExplained)
        view = run_page(shown, names, self._desk.wall_us(), told)
        return self._desk.page("run", session, view=view)

    async def shown_run(self, request: Request, session: Session) -> RunShown:
        """Return the run that a path names."""
        body = ShowRun(command_id=named(request))
        return await self._desk.ask(session, body, RunShown)

    async def agents(self, request: Request, session: Session) -> Response:
        """Show the agents, and a form for another."""
        cursor = cursor_of(request)
        agents = await self._desk.ask(session, ListAgents(cursor=cursor), Agents)
        return self._desk.page(
            "agents",
            session,
            agents=agent_rows(agents),
            more=more("/agents", agents.cursor),
            me_id=session.principal,
        )

    async def pair(self, request: Request, session: Session) -> Response:
        """Show a form that makes a pairing code."""
        return self._desk.page("pair", session, code="", minutes=0)

    async def audit(self, request: Request, session: Session) -> Response:
        """Show who did what."""
        body = ListAudit(cursor=cursor_of(request), limit=AUDIT_SHOWN)
        audit = await self._desk.ask(session, body, Audit)
        names = await self._desk.names(session)
        return self._desk.page(
            "audit",
            session,
            entries=audit_rows(audit, names),
            more=more("/audit", audit.cursor),
        )


def named(request: Request) -> str:
    """Return the id in a path; what can't be one is not found."""
    name = str(request.path_params["id"])
    if not name or len(name) > ID_LIMIT_CHARS or not name.isprintable():
        raise not_found()
    return name
