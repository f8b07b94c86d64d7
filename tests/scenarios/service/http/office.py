"""A server's actor as the HTTP side meets it, answering from tables that a test fills."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from actors.accounts.messages import (
    GATEWAY,
    AddAgent,
    AgentListing,
    Agents,
    Audit,
    AuditEntry,
    Authenticate,
    Authenticated,
    AuthenticateLocal,
    CancelRun,
    Changed,
    CodeAccepted,
    Denied,
    DeviceListing,
    DevicePresence,
    Devices,
    ExplainRun,
    ForgetRun,
    GetServerStatus,
    ListAgents,
    ListAudit,
    ListDevices,
    ListRuns,
    NewPairingCode,
    PrincipalAdded,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    RunExplained,
    RunListing,
    Runs,
    RunShown,
    ServerStatus,
    ShowRun,
)
from actors.edges.door import hash_token
from actors.edges.grants import with_secret
from actors.messages import NOT_FOUND, Completion, Failure
from scenarios.service.http.app import application
from scenarios.service.http.asking import Ask, Asker
from scenarios.service.http.desk import Desk
from scenarios.service.http.guard import Guard, Site
from scenarios.service.meter import Meter

S = 1_000_000
NOW_US = 1_772_366_405 * S  # 2026-03-01 12:00:05 UTC
ANNA, BEN = "own_anna", "own_ben"
TOKENS = {"pc_own_" + "a" * 43: ANNA, "pc_own_" + "b" * 43: BEN, "pc_agt_" + "c" * 43: "agt_1"}
TOKEN, OTHER_TOKEN, AGENT_TOKEN = TOKENS
RUN, BENS_RUN = "0b" * 16, "be" * 16
ORIGIN = "http://127.0.0.1:8787"
KEY = b"what pairing codes are hashed with"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": ORIGIN}


def listing(command_id: str = RUN, **fields: Any) -> RunListing:
    """A run that waits, unless the fields say otherwise."""
    run = RunListing(
        command_id=command_id,
        agent="agt_1",
        device="dev_1",
        session="gs_" + "0" * 32,
        slug="nightly-report",
        status="queued",
        delivery=0,
        cancel_requested=False,
        queued_ago_us=90 * S,
        started_ago_us=None,
        finished_ago_us=None,
        total_tokens=0,
        reported_cost=0.0,
        error=None,
    )
    return msgspec.structs.replace(run, **fields)


def device(principal: str = "dev_1", name: str = "laptop", **fields: Any) -> DeviceListing:
    """A desktop that is there, unless the fields say otherwise."""
    told = DeviceListing(
        device=principal,
        name=name,
        paired_ago_us=86_400 * S,
        synced_ago_us=7 * S,
        poll_us=20 * S,
        sessions=3,
        open_runs=1,
        open_limit=10_000,
        revoked=False,
        reused=False,
    )
    return msgspec.structs.replace(told, **fields)


def agent(principal: str = "agt_1", name: str = "night shift", **fields: Any) -> AgentListing:
    """An agent that may do everything, unless the fields say otherwise."""
    told = AgentListing(
        principal=principal,
        name=name,
        scopes=("graphs:read", "graphs:run"),
        added_ago_us=3 * 86_400 * S,
        seen_ago_us=40 * S,
        open_runs=1,
        open_limit=1_000,
        revoked=False,
    )
    return msgspec.structs.replace(told, **fields)


class Office:
    """What the server knows, by owner; `asked` is what it was asked, and by whom."""

    def __init__(self) -> None:
        self.devices = {ANNA: [device()], BEN: [device("dev_2", "tower")]}
        self.agents = {ANNA: [agent()], BEN: [agent("agt_2", "day shift")]}
        self.runs: dict[str, list[RunShown]] = {
            ANNA: [RunShown(run=listing(), arguments={"day": 1}, completion=None, late=None)],
            BEN: [RunShown(run=listing(BENS_RUN), arguments={}, completion=None, late=None)],
        }
        self.audit = [
            AuditEntry(
                at_us=NOW_US - 5 * S,
                ago_us=5 * S,
                who="agt_1",
                act="run",
                subject=RUN,
                outcome="ok",
                address="192.0.2.7",
                count=1,
            )
        ]
        self.writable = True
        self.silent = False
        self.tokens = {hash_token(token): owner for token, owner in TOKENS.items()}
        self.asked: list[tuple[str, Any]] = []
        self.refuse: Failure | None = None

    async def ask(self, body: Any, source: str, limit_s: float) -> Any:
        """Answer as the gateway does."""
        self.asked.append((source, body))
        if self.silent:
            return None
        if source != GATEWAY and self.refuse is not None:
            return self.refuse
        _, amend = with_secret(body, KEY)
        answer = self.answers()[type(body)](body, source)
        return answer if amend is None else amend(answer)

    def answers(self) -> dict[type[Any], Callable[[Any, str], Any]]:
        return {
            Authenticate: self._authenticate,
            AuthenticateLocal: lambda _b, _s: self._principal(ANNA),
            GetServerStatus: lambda _b, _s: self.status(),
            ListDevices: lambda _b, s: Devices(devices=tuple(self.devices[s])),
            ListAgents: lambda _b, s: Agents(agents=tuple(self.agents[s])),
            ListRuns: self._list_runs,
            ShowRun: lambda b, s: self._run(b.command_id, s) or NOT_FOUND,
            ExplainRun: lambda b, _s: RunExplained(command_id=b.command_id, reason="away"),
            CancelRun: self._cancel,
            ForgetRun: self._forget,
            ListAudit: lambda _b, _s: Audit(entries=tuple(self.audit)),
            NewPairingCode: lambda _b, _s: CodeAccepted(expires_in_us=600 * S),
            AddAgent: lambda b, _s: PrincipalAdded(principal="agt_9", name=b.name),
            RenewToken: lambda b, s: self._of(
                s, b.principal, PrincipalAdded(principal=b.principal, name="x")
            ),
            RevokeDevice: lambda b, s: self._of(s, b.device, Changed(subject=b.device)),
            RevokeAgent: lambda b, s: self._of(s, b.agent, Changed(subject=b.agent)),
        }

    def status(self) -> ServerStatus:
        runs = [shown.run for told in self.runs.values() for shown in told]
        counts: dict[str, int] = {}
        for run in runs:
            counts[run.status] = counts.get(run.status, 0) + 1
        waits = [run.queued_ago_us for run in runs if run.status == "queued"]
        return ServerStatus(
            counts=counts,
            oldest_queued_us=max(waits, default=None),
            devices=tuple(
                DevicePresence(
                    device=one.device,
                    name=one.name,
                    synced_ago_us=one.synced_ago_us,
                    open_runs=one.open_runs,
                )
                for told in self.devices.values()
                for one in told
            ),
            swept_ago_us=S,
            writable=self.writable,
        )

    def _principal(self, principal: str) -> Authenticated:
        kind: Any = "owner" if principal.startswith("own_") else "agent"
        return Authenticated(
            principal=principal, kind=kind, owner=principal, name=principal[4:].title()
        )

    def _of(self, owner: str, principal: str, answer: Any) -> Any:
        """The answer, if the principal is the owner's."""
        mine = {one.device for one in self.devices[owner]} | {owner}
        mine |= {one.principal for one in self.agents[owner]}
        return answer if principal in mine else NOT_FOUND

    def _authenticate(self, body: Authenticate, _source: str) -> Any:
        principal = self.tokens.get(body.token_hash)
        if principal is None:
            return Denied(reason="unknown", error="unknown name or wrong token")
        return self._principal(principal)

    def _run(self, command_id: str, owner: str) -> RunShown | None:
        return next((one for one in self.runs[owner] if one.run.command_id == command_id), None)

    def _list_runs(self, body: ListRuns, owner: str) -> Runs:
        told = [one.run for one in self.runs[owner]]
        found = [run for run in told if body.status in ("", run.status)]
        first = int(body.cursor or 0)
        last = first + body.limit
        cursor = str(last) if last < len(found) else ""
        return Runs(runs=tuple(found[first:last]), cursor=cursor)

    def _cancel(self, body: CancelRun, owner: str) -> Any:
        shown = self._run(body.command_id, owner)
        if shown is None:
            return NOT_FOUND
        run = msgspec.structs.replace(shown.run, status="cancelled", finished_ago_us=S)
        self.put(owner, msgspec.structs.replace(shown, run=run))
        return Changed(subject=body.command_id)

    def _forget(self, body: ForgetRun, owner: str) -> Any:
        shown = self._run(body.command_id, owner)
        if shown is None:
            return NOT_FOUND
        self.runs[owner].remove(shown)
        return Changed(subject=body.command_id)

    def put(self, owner: str, shown: RunShown) -> None:
        """Put a run in the place of the one with its id, or before all others."""
        told = self.runs[owner]
        ids = [one.run.command_id for one in told]
        if shown.run.command_id in ids:
            told[ids.index(shown.run.command_id)] = shown
        else:
            told.insert(0, shown)


class House:
    """The application around an office, with a clock that a test moves."""

    def __init__(self, site: Site | None = None, ask: Ask | None = None) -> None:
        self.office = Office()
        self.now_s = 1_000.0
        self.said: list[str] = []
        self.stopping = False
        self.connections = {"dev_1": 1, "agt_1": 2}
        asker = Asker(ask or self.office.ask)
        self.desk = Desk(asker, site or Site(), lambda: self.now_s, lambda: NOW_US)
        self.app: Guard = application(
            self.desk, self.said.append, lambda: self.connections, lambda: self.stopping, Meter()
        )

    @asynccontextmanager
    async def visit(self, base: str = ORIGIN) -> AsyncIterator[Browser]:
        """Open a browser that is not signed in."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            yield Browser(client, base)

    @asynccontextmanager
    async def sign_in(self, token: str = TOKEN) -> AsyncIterator[Browser]:
        """Open a browser that an owner has signed in."""
        async with self.visit() as browser:
            done = await browser.enter(token)
            assert done.status_code == 303, done.text
            yield browser


class Browser:
    """Opens pages and sends their forms as a browser does, without script."""

    def __init__(self, client: httpx.AsyncClient, base: str) -> None:
        self.client = client
        self.base = base

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Open a page."""
        return await self.client.get(path, headers=headers)

    async def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send fields as a form of this site."""
        sent = FORM | {"Origin": self.base} | headers
        return await self.client.post(path, data=fields, headers=sent)

    async def key(self, path: str) -> str:
        """The key of the forms on a page."""
        text = (await self.get(path)).text
        return text.split('name="form_key" value="')[-1].split('"')[0]

    async def submit(self, path: str, page: str = "", **fields: str) -> httpx.Response:
        """Open the page that has a form, fill it in and send it."""
        key = await self.key(page or path)
        return await self.post(path, {"form_key": key} | fields)

    async def enter(self, token: str, **fields: str) -> httpx.Response:
        """Sign in by a token."""
        return await self.submit("/sign-in", token=token, **fields)


def completed(**fields: Any) -> RunShown:
    """A run that ended well, with what it gave."""
    run = listing(
        status="completed", delivery=1, started_ago_us=70 * S, finished_ago_us=10 * S,
        total_tokens=1234, reported_cost=0.0421,
    )  # fmt: skip
    done = Completion(
        execution_id="x-1", status="completed", result={"sum": 7}, total_tokens=1234,
        reported_cost=0.0421,
    )  # fmt: skip
    shown = RunShown(run=run, arguments={"day": 1}, completion=done, late=None)
    return msgspec.structs.replace(shown, **fields)
