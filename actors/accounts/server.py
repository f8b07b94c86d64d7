"""The server of a deployment: every message is checked, every act is in the audit.

Theory of operation. The gateway proves who a connection is, and what comes on it has that
principal's id as its source. Before anything else the server looks the principal up, in the turn of
the message: revoked ones are told so, a kind may say its own messages alone, an agent needs the
scope. A run, a session, a device belong to one owner; what is another's is answered as what does
not exist, after the same look-ups. The turn that changes something writes the audit's row.

Several servers may share one database: nothing here is truth but what the store holds. What another
process changed is seen by looking again every second, while somebody waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from actors.accounts.audit import NOBODYS, AuditLog
from actors.accounts.desk import OwnersDesk
from actors.accounts.messages import (
    GATEWAY,
    LOCAL,
    MAY_SEND,
    Authenticate,
    Authenticated,
    AuthenticateLocal,
    BeginRotation,
    ExplainRun,
    GetServerStatus,
    ListAgents,
    ListAudit,
    ListDevices,
    ListOwners,
    ListRuns,
    Pair,
    PrincipalRevoked,
    RunExplained,
    Scope,
)
from actors.accounts.pairing import Pairing
from actors.accounts.reasons import explained
from actors.accounts.rows import (
    OWNED_RUNS,
    OWNED_SESSIONS,
    OwnedRun,
    OwnedShared,
    Principal,
    newest_first,
)
from actors.accounts.tokens import REVOKED, UNKNOWN, Accounts
from actors.actor import Context, Handler, Place, TableSpec
from actors.ledger import Run, Shared
from actors.messages import (
    NOT_FOUND,
    TERMINAL,
    CancelGraphRun,
    Complete,
    Completion,
    Control,
    Failure,
    GetGraphRun,
    GraphRun,
    ListGraphSessions,
    Message,
    RunGraphSession,
    SessionMeta,
    Start,
)
from actors.server import SWEEP_LIMIT, SWEEP_PAUSE_US, Server
from transports.envelope import Envelope
from transports.units import Duration, parse_duration

RELOOK_US = 1_000_000  # how old what another process changed may be for who waits
KEEP_US = 60_000_000  # how often what is over is deleted, and others' deadlines are looked at

SCOPES: Mapping[type[Message], Scope] = {
    ListGraphSessions: "graphs:read",
    GetGraphRun: "graphs:read",
    RunGraphSession: "graphs:run",
    CancelGraphRun: "graphs:run",
    ExplainRun: "graphs:read",
}
# What is answered while the disk is full.
READS: tuple[type[Message], ...] = (
    ListGraphSessions, GetGraphRun, ExplainRun, ListDevices, ListAgents, ListOwners, ListRuns,
    ListAudit, GetServerStatus,
)  # fmt: skip
NOT_WRITABLE = Failure(
    code="not_writable", error="the server's disk is full or can't be written: try again later"
)
SUBJECTS = ("graph_session_id", "project_id", "command_id", "principal", "device", "agent", "owner")
SIGN_IN = Failure(code="denied", error=UNKNOWN.error)
NOT_YOURS = Failure(code="denied", error="this connection may not send this message")

_fields = msgspec.structs.asdict


class AccountedServer(Server):
    """See the module's docstring."""

    class Config(Server.Config, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What may be set of a deployed server; the defaults are those that we recommend."""

        wait_limit_us: Annotated[
            Duration, "how long it holds back a poll that would wait; 0s never"
        ] = msgspec.field(name="wait_limit", default=Duration(20_000_000))
        hints: Annotated[bool, "tells agents when to poll next, fixed at each change of a run"] = (
            True
        )
        reconcile: Annotated[bool, "ends runs that a relay no longer reports"] = True
        fair: Annotated[bool, "offers a desktop's runs by turns of their agents"] = True
        delivery_limit: Annotated[
            int, msgspec.Meta(ge=0), "boots of a desktop that a run may see before it fails; 0 any"
        ] = 10
        shared: Annotated[bool, "other server processes use the same database"] = False
        token_age_us: Annotated[Duration, "a device's token that is older is replaced"] = (
            msgspec.field(name="token_age", default=parse_duration("1d"))
        )
        code_lifetime_us: Annotated[Duration, "how long a pairing code is good"] = msgspec.field(
            name="code_lifetime", default=parse_duration("10m")
        )
        key_retention_us: Annotated[
            Duration, "how long a key still stands for its run once that is deleted"
        ] = msgspec.field(name="key_retention", default=parse_duration("365d"))
        audit_retention_us: Annotated[Duration, "how long the audit is kept"] = msgspec.field(
            name="audit_retention", default=parse_duration("365d")
        )

    RUNS: ClassVar[TableSpec[Any]] = OWNED_RUNS
    SESSIONS: ClassVar[TableSpec[Any]] = OWNED_SESSIONS

    config: Config

    def __init__(self, config: Config, place: Place) -> None:
        super().__init__(config, place)
        self.keys_kept_us = int(config.key_retention_us)  # plain: a row has no form for a Duration
        self.inner: Mapping[type[Any], Handler] = {
            **self.handlers,
            ExplainRun: self.on_explain,
        }
        self.local: Mapping[type[Any], Handler] = {
            Authenticate: self.on_authenticate,
            AuthenticateLocal: self.on_local_owner,
            Pair: self.on_pair,
            BeginRotation: self.on_rotation,
            GetServerStatus: self.on_gateway_status,
        }
        assert set(self.local) == set(LOCAL)
        said = {kind for kinds in MAY_SEND.values() for kind in kinds}
        self.handlers = dict.fromkeys(sorted(said | set(LOCAL), key=_name), self.on_message)

    def on_start(self, context: Context) -> None:
        """Rebuild the caches, and go on with removals that were under way."""
        config = self.config
        self.who = "server"  # whose act the turn is
        self.sender: Principal | None = None  # of this turn's message
        self.audit = AuditLog(context, config.audit_retention_us)
        self.accounts = Accounts(context, self.audit, config.token_age_us)
        self.pairing = Pairing(context, self.accounts, config.code_lifetime_us)
        self.desk = OwnersDesk(self)
        self.swept_us: int | None = None
        self.states: dict[str, GraphRun] = {}  # of runs that somebody waits for
        super().on_start(context)
        context.set_timer("keep", SWEEP_PAUSE_US)

    def on_timer(self, context: Context, timer: str) -> None:
        """Sweep, answer who waited long enough, look what other processes changed."""
        self.who, self.sender = "server", None
        if timer == "keep":
            self.keep(context)
        elif timer == "relook":
            self.look_again(context)
        else:
            super().on_timer(context, timer)

    # The check

    def on_message(self, context: Context, envelope: Envelope[Any]) -> Any:
        """Let through what its sender may say."""
        kind, source = type(envelope.body), envelope.source
        if source == GATEWAY:
            self.who, self.sender = "server", None
            return self.local[kind](context, envelope) if kind in self.local else NOT_YOURS
        who = self.accounts.find(source)
        if who is None or who.revoked_us is not None:
            return self.turn_away(context, source, who, kind)
        refusal = self.refusal(who, kind)
        if refusal is not None:
            self.audit.count(context, who.owner, who.id, _name(kind), "", refusal.code)
            return refusal
        refusal = self.unwritten(context, kind)
        if refusal is not None:
            return refusal
        self.who, self.sender = who.id, who
        if who.kind == "agent" and not self.may_see(context, who, envelope):
            return NOT_FOUND
        if who.kind == "device":
            self.note_strange(context, who, envelope.body)
        if who.kind == "owner":
            answer = self.desk.handlers[kind](context, who, envelope.body)
        else:
            answer = self.inner[kind](context, envelope)
        if isinstance(answer, Failure):
            self.deny(context, who, kind, _subject(envelope.body), answer.code)
        return answer

    def unwritten(self, context: Context, kind: type[Message]) -> Failure | None:
        """Say why what changes something is not taken now; a desktop repeats what isn't heard."""
        changes = kind in MAY_SEND["agent"] or kind in MAY_SEND["owner"]
        if context.store.writable or not changes or kind in READS:
            return None
        return NOT_WRITABLE

    def turn_away(
        self, context: Context, source: str, who: Principal | None, kind: type[Message]
    ) -> Message:
        """Answer who has no access any more, or never had."""
        if who is None:
            self.audit.count(context, NOBODYS, "", _name(kind), source, "unknown")
            return SIGN_IN
        self.audit.count(context, who.owner, who.id, _name(kind), "", "revoked")
        return PrincipalRevoked(principal=who.id, reason=REVOKED.error)

    def refusal(self, who: Principal, kind: type[Message]) -> Failure | None:
        """Say why a principal may not send such a message."""
        if kind not in MAY_SEND[who.kind]:
            return NOT_YOURS
        scope = SCOPES.get(kind)
        if who.kind == "agent" and scope is not None and scope not in who.scopes:
            return Failure(code="scope", error=f"this needs the scope {scope}: ask the owner")
        return None

    def may_see(self, context: Context, who: Principal, envelope: Envelope[Any]) -> bool:
        """Whether the run that an agent asks about is its own.

        Found in an index alone: reading the row would take the longer the larger a stranger's
        result is.
        """
        body = envelope.body
        if not isinstance(body, GetGraphRun | CancelGraphRun | ExplainRun):
            return True
        exists = self.runs.count("known", (body.command_id,))
        if self.runs.count("known", (body.command_id, who.id)):
            return True
        outcome = "another's" if exists else "unknown"
        self.deny(context, who, type(body), body.command_id, outcome)
        return False

    def note_strange(self, context: Context, who: Principal, body: Message) -> None:
        """Count what a device says of a run that is not its own; its answer tells it nothing."""
        if isinstance(body, Start | Control | Complete):
            run = self.runs.get(body.command_id)
            if run is None or run.device != who.id:
                outcome = "unknown" if run is None else "another's"
                self.deny(context, who, type(body), body.command_id, outcome)

    def deny(
        self, context: Context, who: Principal, kind: type[Message], subject: str, outcome: str
    ) -> None:
        """Count what a principal was refused."""
        self.audit.count(context, who.owner, who.id, _name(kind), subject, outcome)

    # The gateway

    def on_authenticate(self, context: Context, envelope: Envelope[Authenticate]) -> Message:
        """Say whose token it is."""
        return self.accounts.authenticate(context, envelope.body)

    def on_local_owner(self, context: Context, envelope: Envelope[AuthenticateLocal]) -> Message:
        """Let in who may open the local socket: the first owner."""
        owner = self.accounts.local_owner(context, envelope.body.address)
        return Authenticated(
            principal=owner.id, kind=owner.kind, owner=owner.owner, name=owner.name
        )

    def on_pair(self, context: Context, envelope: Envelope[Pair]) -> Message:
        """Make the desktop that brought a code a device."""
        return self.pairing.pair(context, envelope.body)

    def on_rotation(self, context: Context, envelope: Envelope[BeginRotation]) -> Message:
        """Let a device have a new token beside the old."""
        return self.accounts.begin_rotation(context, envelope.body)

    def on_gateway_status(self, context: Context, _: Envelope[GetServerStatus]) -> Message:
        """Tell how much waits, of all owners."""
        return self.desk.status(context, None)

    # What the published server does, for owners

    def principal(self, identity: str) -> Principal | None:
        """Return a principal; the one whose message it is was read already."""
        if self.sender is not None and self.sender.id == identity:
            return self.sender
        return self.accounts.find(identity)

    def session_for(self, agent: str, session: str) -> Shared | None:
        """Find a session of the agent's own owner."""
        shared = self.sessions.get(session)
        who = self.principal(agent)
        return None if shared is None or who is None or shared.owner != who.owner else shared

    def shared_with(self, agent: str, body: ListGraphSessions) -> list[Shared]:
        """Find the sessions of the agent's own owner."""
        who = self.principal(agent)
        assert who is not None, "it was looked up before"
        return self.sessions.scan("project", (who.owner, body.project_id), limit=body.limit)

    def shared_by(self, device: str, meta: SessionMeta) -> OwnedShared:
        """Return the row of a session, with its device's owner."""
        who = self.principal(device)
        owner = NOBODYS if who is None else who.owner
        return OwnedShared(device=device, project=meta.project, meta=meta, owner=owner)

    def limits(self, agent: str, device: str) -> tuple[int, int]:
        """How many open runs an agent may have, and a device: their own limits come first."""
        agent_limit, device_limit = super().limits(agent, device)
        return self.open_limit(agent, agent_limit), self.open_limit(device, device_limit)

    def open_limit(self, principal: str, otherwise: int) -> int:
        """How many open runs a principal may have."""
        who = self.principal(principal)
        return otherwise if who is None or who.open_limit is None else who.open_limit

    def new_run(
        self, context: Context, agent: str, body: RunGraphSession, shared: Shared
    ) -> OwnedRun:
        """Return the row of a new run, with its owner."""
        run = super().new_run(context, agent, body, shared)
        who = self.principal(agent)
        owner = NOBODYS if who is None else who.owner
        listed = newest_first(run.queued_us, run.command_id)
        return OwnedRun(**_fields(run), owner=owner, listed=listed)

    def queue(self, context: Context, agent: str, body: RunGraphSession, shared: Shared) -> Run:
        """Write a new run, and say so in the audit."""
        run = super().queue(context, agent, body, shared)
        self.note_run(context, run, "run.queue")
        return run

    def cancel(self, context: Context, run: Run) -> Run:
        """Cancel a run, and say in the audit who asked."""
        if run.status not in TERMINAL and not run.cancel_requested:
            self.note_run(context, run, "run.cancel")
        return super().cancel(context, run)

    def begin(self, context: Context, run: Run) -> None:
        """Let a run start, and say so in the audit."""
        super().begin(context, run)
        self.note_run(context, run, "run.start")

    def close(self, context: Context, run: Run, cause: str, done: Completion | None = None) -> Run:
        """Make a run terminal, and say so in the audit."""
        closed = super().close(context, run, cause, done)
        self.note_run(context, closed, f"run.{closed.status}")
        return closed

    def note_run(self, context: Context, run: Run, act: str) -> None:
        """Add a row about a run to its owner's book."""
        assert isinstance(run, OwnedRun), "what new_run makes"
        self.audit.note(context, run.owner, self.who, act, run.command_id)

    def answer(self, run: Run) -> GraphRun:
        """Build what an agent sees of a run, and keep none: rows are read anew each time."""
        return run.answer()

    def on_explain(self, context: Context, envelope: Envelope[ExplainRun]) -> Message:
        """Tell an agent what its run waits for, and nothing of its desktop."""
        run = self.own(envelope)
        if run is None:
            return NOT_FOUND
        reason = explained(self, run, context.stamp_us).reason
        return RunExplained(command_id=run.command_id, reason=reason)

    # Waiting, with other processes

    def on_get(self, context: Context, envelope: Envelope[GetGraphRun]) -> Message | None:
        """Tell an agent how its run stands; look again for it if others may change it."""
        answer = super().on_get(context, envelope)
        if answer is None and self.config.shared:
            if not self.states:
                context.set_timer("relook", RELOOK_US)
            run = self.runs.get(envelope.body.command_id)
            assert run is not None, "one that is held back for"
            self.states.setdefault(run.command_id, run.answer())
        return answer

    def look_again(self, context: Context) -> None:
        """Answer who waits for a run that another process has changed."""
        states = {one: state for one, state in self.states.items() if one in self.waiting.held}
        for command_id in list(states):
            run = self.runs.get(command_id)
            if run is None or run.answer() != states[command_id]:
                del states[command_id]
                self.answer_waiting(context, command_id)
        self.states = states
        if states:
            context.set_timer("relook", RELOOK_US)

    # What is over

    def sweep(self, context: Context) -> None:
        """Close what is overdue and delete what was kept long enough."""
        super().sweep(context)
        self.swept_us = context.stamp_us

    def keep(self, context: Context) -> None:
        """Delete old codes and audit rows, close the runs of who was removed, sweep for others."""
        self.pairing.sweep(context)
        more = self.audit.sweep(context)
        more = self.sweep_keys(context) or more
        self.accounts.sweep(context, self.config.audit_retention_us)
        for who in self.accounts.rows.claim("closing", limit=1):
            more = self.close_all(context, who) or more
        if self.config.shared:
            self.sweep(context)
        elif self.swept_us is None:
            self.swept_us = context.stamp_us
        context.set_timer("keep", 0 if more else KEEP_US)

    def close_all(self, context: Context, who: Principal) -> bool:
        """Close what a removed principal has open, some in each turn; whether to go on."""
        if who.kind == "device":
            runs = self.runs.claim("open", (who.id,), limit=SWEEP_LIMIT)
            for run in runs:
                self.close(context, run, "revoked")
            closed = len(runs)
        elif who.kind == "agent":
            limit = self.open_limit(who.id, self.config.agent_limit)
            found = self.runs.claim("load", (who.id,), limit=limit)
            runs = [run for run in found if not run.cancel_requested][:SWEEP_LIMIT]
            for run in runs:
                self.cancel(context, run)
            closed = len(runs)
        else:
            theirs = self.accounts.rows.scan("live", (who.id,), limit=SWEEP_LIMIT)
            for each in theirs:
                self.remove(context, each)
            closed = len(theirs)
        if closed < SWEEP_LIMIT:
            self.accounts.put(msgspec.structs.replace(who, closing_us=None))
        return True

    def remove(self, context: Context, who: Principal) -> None:
        """End a principal: its tokens now, its sessions now, its open runs from now on."""
        self.accounts.revoke(context, who)
        if who.kind == "device":
            self.take_sessions(who.id, ())
            self.devices.delete(who.id)
            self.turns.delete(who.id)
            if self.hints is not None:
                self.hints.heard.pop(who.id, None)
        context.send(GATEWAY, PrincipalRevoked(principal=who.id, reason=REVOKED.error))
        context.set_timer("keep", 0)

    def forget(self, run: Run) -> None:
        """Delete an ended run; a removed agent's keys go with it, since nobody can use them."""
        super().forget(run)
        who = self.accounts.find(run.agent)
        if who is not None and who.revoked_us is not None:
            self.tickets.delete((run.agent, run.key))

    def sweep_keys(self, context: Context) -> bool:
        """Delete keys that were kept long enough; return whether there may be more."""
        old = self.tickets.claim("due", limit=SWEEP_LIMIT, up_to=context.stamp_us)
        for ticket in old:
            assert ticket.key is not None, "one with an end has it"
            self.tickets.delete(ticket.key)
        return len(old) == SWEEP_LIMIT


def _name(kind: type[Any]) -> str:
    return kind.__name__


def _subject(body: Any) -> str:
    """Return what a refused message was about."""
    found = [getattr(body, field) for field in SUBJECTS if field in body.__struct_fields__]
    return str(found[0]) if found else ""
