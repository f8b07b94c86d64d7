"""What an owner asks of a server: who there is, what they do, and what is to change.

Everything is the owner's own: what is another's is answered as what does not exist. The
administrator, the owner of the local socket, may besides add owners and read every book.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from actors.accounts.messages import (
    MAY_SEND,
    AddAgent,
    AddOwner,
    AgentListing,
    Agents,
    Audit,
    AuditEntry,
    CancelRun,
    Changed,
    DeviceListing,
    DevicePresence,
    Devices,
    ExplainRun,
    ForgetRun,
    GetServerStatus,
    ListAgents,
    ListAudit,
    ListDevices,
    ListOwners,
    ListRuns,
    NewPairingCode,
    PrincipalAdded,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    RevokeOwner,
    RunListing,
    Runs,
    RunShown,
    ServerStatus,
    SetOpenLimit,
    ShowRun,
)
from actors.accounts.reasons import explained, last_contact
from actors.accounts.rows import OwnedRun, Principal
from actors.accounts.tokens import display_name
from actors.actor import Context
from actors.ledger import NOTHING
from actors.messages import TERMINAL, Failure, Message

if TYPE_CHECKING:
    from actors.accounts.server import AccountedServer

AGENTS_LIMIT = 1_000  # agents of an owner
OWNERS_LIMIT = 100  # owners of a server: the status looks at each
DEVICES_SHOWN = 100  # devices in a status
LOOKED_AT = 500  # runs that one page of a filtered listing looks through
STATUSES = ("queued", "running", *sorted(TERMINAL))
MANY = 10_000  # runs that are counted in half a millisecond
COUNT_PAUSE_US = 60  # a run, between two counts: a thousand times as long as SQLite counts

NO_TOKEN = Failure(code="bad_request", error="token_hash is missing, or another's")
NAME_TAKEN = Failure(code="bad_request", error="this name is taken: choose another")
NO_NAME = Failure(code="bad_request", error="a name needs at least one character that shows")
NO_PRINCIPAL = Failure(code="not_found", error="you have no such agent or device")
NO_OWNER = Failure(code="not_found", error="there is no such other owner")
NO_RUN = Failure(code="not_found", error="you have no such run")
NOT_ENDED = Failure(code="bad_request", error="this run has not ended: cancel it first")
ADMINISTRATOR = Failure(code="denied", error="only the owner of the server's machine may do this")
TOO_MANY = Failure(code="limit", error="too many: remove one first")
BAD_STATUS = Failure(code="bad_request", error=f"status is one of {', '.join(STATUSES)}")

Answer = Callable[[Context, Principal, Any], Message]


class OwnersDesk:
    """Answers owners. All is in the server's tables; what it keeps are counts of very many runs."""

    def __init__(self, server: AccountedServer) -> None:
        self.server = server
        self.counted: dict[tuple[str, ...], tuple[int, int]] = {}  # until when it counts as so many
        self.accounts, self.audit = server.accounts, server.audit
        self.handlers: Mapping[type[Message], Answer] = {
            NewPairingCode: server.pairing.new_code,
            ListDevices: self.list_devices,
            RevokeDevice: self.revoke_device,
            AddAgent: self.add_agent,
            ListAgents: self.list_agents,
            RevokeAgent: self.revoke_agent,
            AddOwner: self.add_owner,
            RevokeOwner: self.revoke_owner,
            ListOwners: self.list_owners,
            RenewToken: self.renew_token,
            SetOpenLimit: self.set_open_limit,
            ListRuns: self.list_runs,
            ShowRun: self.show_run,
            ExplainRun: self.explain_run,
            CancelRun: self.cancel_run,
            ForgetRun: self.forget_run,
            ListAudit: self.list_audit,
            GetServerStatus: self.server_status,
        }
        assert set(self.handlers) == set(MAY_SEND["owner"])

    # Devices

    def list_devices(self, context: Context, owner: Principal, body: ListDevices) -> Message:
        """List an owner's devices, removed ones too."""
        found = self.principals(owner.id, "device", body)
        devices = tuple([self.device(context, each) for each in found])
        return Devices(devices=devices, cursor=after(found, body.limit))

    def principals(self, owner: str, kind: str, body: Any) -> list[Principal]:
        """Return a page of an owner's principals of a kind."""
        above = body.cursor or None
        return self.accounts.rows.scan("mine", (owner, kind), limit=body.limit, above=above)

    def device(self, context: Context, who: Principal) -> DeviceListing:
        """Return a device as it is listed."""
        server, now_us = self.server, context.stamp_us
        known = server.devices.get(who.id)
        seen_us, _ = last_contact(server, who.id)
        return DeviceListing(
            device=who.id,
            name=who.name,
            paired_ago_us=ago(now_us, who.added_us),
            synced_ago_us=None if seen_us is None else ago(now_us, seen_us),
            poll_us=None if known is None else known.poll_us,
            sessions=0 if known is None else len(known.sessions),
            open_runs=server.runs.count("open", (who.id,)),
            open_limit=server.open_limit(who.id, server.config.device_limit),
            revoked=who.revoked_us is not None,
            reused=who.reused_us is not None,
        )

    def revoke_device(self, context: Context, owner: Principal, body: RevokeDevice) -> Message:
        """Remove a device."""
        return self.revoke(context, owner, body.device, "device")

    def revoke(self, context: Context, owner: Principal, principal: str, kind: str) -> Message:
        """Remove a principal of an owner; one that was removed is left as it is."""
        who = self.accounts.find(principal)
        if who is None or (who.owner, who.kind) != (owner.id, kind):
            return NO_PRINCIPAL
        if who.revoked_us is None:
            self.server.remove(context, who)
            self.audit.note(context, owner.id, owner.id, f"{kind}.revoke", who.id)
        return Changed(subject=who.id)

    # Agents and owners

    def add_agent(self, context: Context, owner: Principal, body: AddAgent) -> Message:
        """Add an agent of an owner."""
        name = display_name(body.name, "")
        if not name:
            return NO_NAME
        if not body.token_hash or self.accounts.is_held(body.token_hash):
            return NO_TOKEN
        if self.accounts.is_taken(name, owner.id, "agent"):
            return NAME_TAKEN
        if self.accounts.count(owner.id, "agent") >= AGENTS_LIMIT:
            return TOO_MANY
        who = self.accounts.add(
            context,
            "agent",
            name,
            owner.id,
            body.token_hash,
            scopes=tuple(sorted(set(body.scopes))),
            open_limit=body.open_limit,
        )
        self.audit.note(context, owner.id, owner.id, "agent.add", who.id)
        return PrincipalAdded(principal=who.id, name=name)

    def list_agents(self, context: Context, owner: Principal, body: ListAgents) -> Message:
        """List an owner's agents, removed ones too."""
        found = self.principals(owner.id, "agent", body)
        return Agents(agents=self.listed(context, found), cursor=after(found, body.limit))

    def listed(self, context: Context, found: list[Principal]) -> tuple[AgentListing, ...]:
        """Return agents or owners as they are listed."""
        server, now_us = self.server, context.stamp_us
        return tuple(
            [
                AgentListing(
                    principal=who.id,
                    name=who.name,
                    scopes=who.scopes,
                    added_ago_us=ago(now_us, who.added_us),
                    seen_ago_us=None if who.seen_us is None else ago(now_us, who.seen_us),
                    open_runs=server.runs.count("load", (who.id,)),
                    open_limit=server.open_limit(who.id, server.config.agent_limit),
                    revoked=who.revoked_us is not None,
                )
                for who in found
            ]
        )

    def revoke_agent(self, context: Context, owner: Principal, body: RevokeAgent) -> Message:
        """Remove an agent."""
        return self.revoke(context, owner, body.agent, "agent")

    def add_owner(self, context: Context, owner: Principal, body: AddOwner) -> Message:
        """Add an owner, who has agents and devices of its own."""
        name = display_name(body.name, "")
        if not owner.administrator:
            return ADMINISTRATOR
        if not name:
            return NO_NAME
        if not body.token_hash or self.accounts.is_held(body.token_hash):
            return NO_TOKEN
        owners = [each for each in self.owners() if each.revoked_us is None]
        if len(owners) >= OWNERS_LIMIT:
            return TOO_MANY
        if name in {each.name for each in owners}:
            return NAME_TAKEN
        who = self.accounts.add(context, "owner", name, "", body.token_hash)
        self.audit.note(context, owner.id, owner.id, "owner.add", who.id)
        return PrincipalAdded(principal=who.id, name=name)

    def owners(self) -> list[Principal]:
        """Return every owner, as many removed ones as there may be others."""
        return self.accounts.rows.scan("kind", ("owner",), limit=2 * OWNERS_LIMIT)

    def revoke_owner(self, context: Context, owner: Principal, body: RevokeOwner) -> Message:
        """Remove another owner, with all that it has."""
        if not owner.administrator:
            return ADMINISTRATOR
        who = self.accounts.find(body.owner)
        if who is None or who.kind != "owner" or who.id == owner.id:
            return NO_OWNER
        if who.revoked_us is None:
            self.server.remove(context, who)
            self.audit.note(context, owner.id, owner.id, "owner.revoke", who.id)
        return Changed(subject=who.id)

    def list_owners(self, context: Context, owner: Principal, body: ListOwners) -> Message:
        """List every owner."""
        if not owner.administrator:
            return ADMINISTRATOR
        found = self.accounts.rows.scan(
            "kind", ("owner",), limit=body.limit, above=body.cursor or None
        )
        return Agents(agents=self.listed(context, found), cursor=after(found, body.limit))

    def mine(self, owner: Principal, principal: str) -> Principal | None:
        """Return an owner's agent, device or self that is not revoked."""
        who = self.accounts.find(principal)
        if who is None or who.owner != owner.id or who.revoked_us is not None:
            return None
        return who

    def renew_token(self, context: Context, owner: Principal, body: RenewToken) -> Message:
        """Give an agent, or the owner itself, a new token; a device pairs again."""
        who = self.mine(owner, body.principal)
        if who is None or who.kind == "device":
            return NO_PRINCIPAL
        if not body.token_hash or self.accounts.is_held(body.token_hash, who.id):
            return NO_TOKEN
        self.accounts.renew(context, who, body.token_hash)
        self.audit.note(context, owner.id, owner.id, "token.renew", who.id)
        return PrincipalAdded(principal=who.id, name=who.name)

    def set_open_limit(self, context: Context, owner: Principal, body: SetOpenLimit) -> Message:
        """Say how many open runs an agent or a device may have."""
        who = self.mine(owner, body.principal)
        if who is None or who.kind == "owner":
            return NO_PRINCIPAL
        self.accounts.put(msgspec.structs.replace(who, open_limit=body.open_limit))
        limit = "default" if body.open_limit is None else str(body.open_limit)
        self.audit.note(context, owner.id, owner.id, "limit.set", who.id, limit)
        return Changed(subject=who.id)

    # Runs

    def list_runs(self, context: Context, owner: Principal, body: ListRuns) -> Message:
        """List the runs of an owner's agents that its filters let through."""
        if body.status and body.status not in STATUSES:
            return BAD_STATUS
        wanted = [
            (name, value)
            for name, value in (
                ("status", body.status),
                ("agent", body.agent),
                ("device", body.device),
            )
            if value
        ]
        looked_at = LOOKED_AT if wanted else body.limit
        found = self.server.runs.scan(
            "mine", (owner.id,), limit=looked_at, above=body.cursor or None
        )
        shown: list[OwnedRun] = []
        last = None
        for last in found:
            if all(getattr(last, name) == value for name, value in wanted):
                shown.append(last)
                if len(shown) == body.limit:
                    break
        more = last is not None and (len(found) == looked_at or last is not found[-1])
        runs = tuple([listing(run, context.stamp_us) for run in shown])
        return Runs(runs=runs, cursor=last.listed if more and last is not None else "")

    def run_of(self, owner: Principal, command_id: str) -> OwnedRun | None:
        """Return an owner's run."""
        run = self.server.runs.get(command_id)
        return None if run is None or run.owner != owner.id else run

    def show_run(self, context: Context, owner: Principal, body: ShowRun) -> Message:
        """Show all of a run."""
        run = self.run_of(owner, body.command_id)
        if run is None:
            return NO_RUN
        self.audit.note(context, owner.id, owner.id, "run.show", run.command_id)
        return RunShown(
            run=listing(run, context.stamp_us),
            arguments=run.arguments,
            completion=run.completion,
            late=None if run.late is None else msgspec.structs.replace(run.late, result=None),
        )

    def explain_run(self, context: Context, owner: Principal, body: ExplainRun) -> Message:
        """Tell what a run waits for, and where."""
        run = self.run_of(owner, body.command_id)
        return NO_RUN if run is None else explained(self.server, run, context.stamp_us)

    def cancel_run(self, context: Context, owner: Principal, body: CancelRun) -> Message:
        """Cancel a run as its agent could."""
        run = self.run_of(owner, body.command_id)
        if run is None:
            return NO_RUN
        self.server.cancel(context, run)
        return Changed(subject=run.command_id)

    def forget_run(self, context: Context, owner: Principal, body: ForgetRun) -> Message:
        """Delete an ended run, now."""
        run = self.run_of(owner, body.command_id)
        if run is None:
            return NO_RUN
        if run.status not in TERMINAL:
            return NOT_ENDED
        self.server.forget(run)
        self.audit.note(context, owner.id, owner.id, "run.forget", run.command_id)
        return Changed(subject=run.command_id)

    # The audit and the whole

    def list_audit(self, context: Context, owner: Principal, body: ListAudit) -> Message:
        """List an owner's book; the administrator may read all of them."""
        if body.everybody and not owner.administrator:
            return ADMINISTRATOR
        book = None if body.everybody else owner.id
        found = self.audit.page(book, body.cursor, body.limit)
        now_us = context.stamp_us
        entries = tuple(
            [
                AuditEntry(
                    at_us=row.at_us,
                    ago_us=ago(now_us, row.at_us),
                    who=row.who,
                    act=row.act,
                    subject=row.subject,
                    outcome=row.outcome,
                    address=row.address,
                    count=row.count,
                )
                for row in found
            ]
        )
        return Audit(entries=entries, cursor=after(found, body.limit))

    def server_status(self, context: Context, owner: Principal, body: GetServerStatus) -> Message:
        """Tell an owner how much waits; the administrator of everybody's."""
        return self.status(context, None if owner.administrator else owner.id)

    def count(self, context: Context, prefix: tuple[str, ...]) -> int:
        """How many runs have a status; very many are not counted again at each question."""
        until_us, count = self.counted.get(prefix, (0, 0))
        if until_us <= context.now_us:
            count = self.server.runs.count("state", prefix)
            until_us = context.now_us + count * COUNT_PAUSE_US if count >= MANY else 0
            self.counted[prefix] = (until_us, count)
        return count

    def status(self, context: Context, owner: str | None) -> ServerStatus:
        """Tell how much waits and since when, of one owner or of all."""
        server, rows, now_us = self.server, self.accounts.rows, context.stamp_us
        narrow = () if owner is None else (owner,)
        counts = {status: self.count(context, (status, *narrow)) for status in STATUSES}
        owners = [owner] if owner is not None else []
        if owner is None:
            owners = [each.id for each in self.owners()]
        first = [server.runs.scan("state", ("queued", each), limit=1) for each in owners]
        waiting = [run.queued_us for found in first for run in found]
        devices = (
            rows.scan("kind", ("device",), limit=DEVICES_SHOWN)
            if owner is None
            else rows.scan("mine", (owner, "device"), limit=DEVICES_SHOWN)
        )
        presence = [self.device(context, each) for each in devices if each.revoked_us is None]
        return ServerStatus(
            counts=counts,
            oldest_queued_us=ago(now_us, min(waiting)) if waiting else None,
            devices=tuple(
                [
                    DevicePresence(
                        device=each.device,
                        name=each.name,
                        synced_ago_us=each.synced_ago_us,
                        open_runs=each.open_runs,
                    )
                    for each in presence
                ]
            ),
            swept_ago_us=None if server.swept_us is None else ago(now_us, server.swept_us),
            writable=context.store.writable,
        )


def ago(now_us: int, at_us: int) -> int:
    """Return how long ago something was, never less than nothing."""
    return max(0, now_us - at_us)


def after(rows: list[Any], limit: int) -> str:
    """Return the cursor behind a page: empty if it was not full."""
    return rows[-1].listed if len(rows) == limit else ""


def listing(run: OwnedRun, now_us: int) -> RunListing:
    """Return a run as its owner sees it."""
    done = run.completion or NOTHING
    return RunListing(
        command_id=run.command_id,
        agent=run.agent,
        device=run.device,
        session=run.session,
        slug=run.slug,
        status=run.status,
        delivery=run.delivery,
        cancel_requested=run.cancel_requested,
        queued_ago_us=ago(now_us, run.queued_us),
        started_ago_us=None if run.started_us is None else ago(now_us, run.started_us),
        finished_ago_us=None if run.finished_us is None else ago(now_us, run.finished_us),
        total_tokens=done.total_tokens,
        reported_cost=done.reported_cost,
        error=run.error or done.error,
    )
