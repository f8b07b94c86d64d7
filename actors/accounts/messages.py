"""What a deployed server is told by its gateway and its owners, and what it answers.

The gateway is the edge that accepts connections: it hashes what a greeting brings, asks the server
who that is, and from then on gives what comes the source that was proved. No message here holds a
secret. A `token_hash` is the SHA-256 of a token, in hex; tokens are 256 random bits, so nothing
slower is needed. A `code_hash` is the HMAC-SHA256 of a pairing code, in hex, under a key that all
gateways on one database share; codes are short, so a plain hash could be searched.

*Local* messages are the gateway's own and are never taken from a wire. In an owner's messages the
gateway sets `token_hash` and `code_hash` itself, whatever came, and adds the secret to the answer.

Listings are pages: at most `limit` rows, the newest first, and a cursor for those that follow; it
is empty behind the last. A page may be short, even empty, and have a cursor. `Failure` answers what
is refused, in one text for what is another's and what does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.messages import (
    CancelGraphRun,
    Complete,
    Completion,
    Control,
    GetGraphRun,
    ListGraphSessions,
    Message,
    Natural,
    RunGraphSession,
    Start,
    Sync,
)

GATEWAY = "gateway"  # the source of local messages, a name that no principal's id can be
PAGE_LIMIT = 100  # rows of one page: a page of runs stays far below a frame

PrincipalKind = Literal["owner", "agent", "device"]
Scope = Literal["graphs:read", "graphs:run"]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]
OpenLimit = Annotated[int, msgspec.Meta(ge=1)]
Reason = Literal[
    "not_shared", "away", "behind_others", "not_begun", "takes_none", "next_sync",
    "approval", "stopping", "running", "ended",
]  # fmt: skip
DenialReason = Literal["unknown", "revoked", "superseded", "bad_code", "too_many_tries"]


# gateway to server, local


class Authenticate(Message, frozen=True, kw_only=True):
    """Gateway asks the server whose token this is, for each new connection.

    `name` is what the greeting calls itself: the principal's id, its name, or empty where a token
    comes without one. The time of the answer does not depend on which names exist.
    """

    token_hash: str
    name: str = ""
    address: str = ""


class AuthenticateLocal(Message, frozen=True, kw_only=True):
    """Gateway asks the server who the user of its local socket is: the first owner, made if new.

    Whoever may open the socket may read the database too, so no token is asked for.
    """

    address: str = "local"


class Pair(Message, frozen=True, kw_only=True):
    """Gateway tells the server that a desktop brought a pairing code; answered Paired or Denied.

    `token_hash` is that of the token that the desktop is to have. The same code with the same token
    is answered the same for as long as the code would last: a lost answer is asked for again. A
    desktop that proves with `old_hash` which device it was stays that device.
    """

    code_hash: str
    name: str
    token_hash: str
    old_hash: str = ""
    address: str = ""


class BeginRotation(Message, frozen=True, kw_only=True):
    """Gateway asks the server to let a device have one more token, which it is then sent.

    Once answered `begun`, the new token is good beside those before it; its first use ends them.
    """

    device: str
    token_hash: str


# server to gateway, local


class Authenticated(Message, frozen=True, kw_only=True):
    """Server answers whose token it is; `principal` is the source of what the connection sends.

    The token is old in `rotate_in_us`, None where tokens don't age: begin a rotation at the first
    sync from then on.
    """

    principal: str
    kind: PrincipalKind
    owner: str
    name: str
    scopes: tuple[Scope, ...] = ()
    rotate_in_us: Natural | None = None


class Denied(Message, frozen=True, kw_only=True):
    """Server answers that a token or a code is not good; `error` may be shown to its bearer.

    `revoked` and `superseded` are said only to who proves to have had the token. `unknown` and
    `bad_code` are the same for all else.
    """

    reason: DenialReason
    error: str
    retry_after_us: Natural = 0


class Paired(Message, frozen=True, kw_only=True):
    """Server answers that the token is now good for this device, by this name."""

    device: str
    name: str
    owner: str


class Rotation(Message, frozen=True, kw_only=True):
    """Server answers whether the new token is good; if not, don't send it."""

    begun: bool


class PrincipalRevoked(Message, frozen=True, kw_only=True):
    """Server tells its gateway to close every connection of a principal, now and for good.

    It also answers whatever a revoked principal still says, since the notice may be lost.
    """

    principal: str
    reason: str


# owner to server: who there is


class NewPairingCode(Message, frozen=True, kw_only=True):
    """Owner asks the server to accept a new pairing code, once, for ten minutes."""

    code_hash: str = ""


class ListDevices(Message, frozen=True, kw_only=True):
    """Owner asks the server for its devices."""

    cursor: str = ""
    limit: Limit = 50


class RevokeDevice(Message, frozen=True, kw_only=True):
    """Owner removes a device: its tokens end, and every open run of it is closed."""

    device: str


class AddAgent(Message, frozen=True, kw_only=True):
    """Owner adds an agent, under a name that none of its agents has."""

    name: str
    scopes: tuple[Scope, ...] = ("graphs:read", "graphs:run")
    open_limit: OpenLimit | None = None
    token_hash: str = ""


class ListAgents(Message, frozen=True, kw_only=True):
    """Owner asks the server for its agents."""

    cursor: str = ""
    limit: Limit = 50


class RevokeAgent(Message, frozen=True, kw_only=True):
    """Owner removes an agent: its tokens end, what it queued is cancelled, what runs is stopped."""

    agent: str


class AddOwner(Message, frozen=True, kw_only=True):
    """Owner who is the administrator adds another owner."""

    name: str
    token_hash: str = ""


class RevokeOwner(Message, frozen=True, kw_only=True):
    """Owner who is the administrator removes another one, with its agents and devices."""

    owner: str


class ListOwners(Message, frozen=True, kw_only=True):
    """Owner who is the administrator asks for all owners."""

    cursor: str = ""
    limit: Limit = 50


class RenewToken(Message, frozen=True, kw_only=True):
    """Owner gives one of its agents, or itself, a new token; those before it end at once."""

    principal: str
    token_hash: str = ""


class SetOpenLimit(Message, frozen=True, kw_only=True):
    """Owner says how many open runs one of its agents or devices may have; None is the default."""

    principal: str
    open_limit: OpenLimit | None


# agent or owner to server


class ExplainRun(Message, frozen=True, kw_only=True):
    """Owner, or the agent whose run it is, asks the server what a run waits for."""

    command_id: str


# owner to server: what happens


class ListRuns(Message, frozen=True, kw_only=True):
    """Owner asks the server for the runs of its agents; an empty filter lets everything through."""

    status: str = ""
    agent: str = ""
    device: str = ""
    cursor: str = ""
    limit: Limit = 50


class ShowRun(Message, frozen=True, kw_only=True):
    """Owner asks the server for all that is known of a run."""

    command_id: str


class CancelRun(Message, frozen=True, kw_only=True):
    """Owner cancels a run, as its agent could."""

    command_id: str


class ForgetRun(Message, frozen=True, kw_only=True):
    """Owner has an ended run deleted with its arguments and its result, before its time.

    Its ticket is then answered as one that never was. Its key still stands for it, so that a
    repeated call queues nothing.
    """

    command_id: str


class ListAudit(Message, frozen=True, kw_only=True):
    """Owner asks the server who did what; the administrator may ask for everybody's."""

    everybody: bool = False
    cursor: str = ""
    limit: Limit = 50


class GetServerStatus(Message, frozen=True, kw_only=True):
    """Owner, or the gateway for all owners, asks the server how much waits and since when."""


# server to owner


class CodeAccepted(Message, frozen=True, kw_only=True):
    """Server answers that the pairing code is good for so long."""

    expires_in_us: int


class PrincipalAdded(Message, frozen=True, kw_only=True):
    """Server answers that the principal's token is good."""

    principal: str
    name: str


class Changed(Message, frozen=True, kw_only=True):
    """Server answers that the change is committed; asked again it changes nothing."""

    subject: str


class DeviceListing(Message, frozen=True, kw_only=True):
    """One device as its owner sees it; ages are None before the first time."""

    device: str
    name: str
    paired_ago_us: int
    synced_ago_us: int | None
    poll_us: int | None
    sessions: int
    open_runs: int
    open_limit: int
    revoked: bool
    reused: bool  # a token of it was used after its successor: somebody has a copy


class Devices(Message, frozen=True, kw_only=True):
    """Server answers with a page of devices."""

    devices: tuple[DeviceListing, ...]
    cursor: str = ""


class AgentListing(Message, frozen=True, kw_only=True):
    """One agent, or one owner, as an owner sees it."""

    principal: str
    name: str
    scopes: tuple[Scope, ...]
    added_ago_us: int
    seen_ago_us: int | None
    open_runs: int
    open_limit: int
    revoked: bool


class Agents(Message, frozen=True, kw_only=True):
    """Server answers with a page of agents, or of owners."""

    agents: tuple[AgentListing, ...]
    cursor: str = ""


class RunListing(Message, frozen=True, kw_only=True):
    """One run as its owner sees it; ages tell how long ago it came to each state."""

    command_id: str
    agent: str
    device: str
    session: str
    slug: str
    status: str
    delivery: int
    cancel_requested: bool
    queued_ago_us: int
    started_ago_us: int | None
    finished_ago_us: int | None
    total_tokens: int
    reported_cost: float
    error: str | None


class Runs(Message, frozen=True, kw_only=True):
    """Server answers with a page of runs."""

    runs: tuple[RunListing, ...]
    cursor: str = ""


class RunShown(Message, frozen=True, kw_only=True):
    """Server answers with all of a run: its arguments, what came of it, and what came too late.

    Of what came too late the result is left out: together they would not fit a frame.
    """

    run: RunListing
    arguments: dict[str, Any]
    completion: Completion | None
    late: Completion | None


class RunExplained(Message, frozen=True, kw_only=True, omit_defaults=True):
    """Server answers what a run waits for. To its owner alone it says which desktop that is.

    `ahead` is how many runs come before it there. Ages are None where nothing was ever heard.
    """

    command_id: str
    reason: Reason
    device: str = ""
    name: str = ""
    synced_ago_us: int | None = None
    poll_us: int | None = None
    ahead: int = 0


class AuditEntry(Message, frozen=True, kw_only=True):
    """One thing that somebody did, or was not allowed to do.

    `count` is how often within the minute, for what is counted and not told one by one.
    """

    at_us: int
    ago_us: int
    who: str
    act: str
    subject: str
    outcome: str
    address: str
    count: int


class Audit(Message, frozen=True, kw_only=True):
    """Server answers with a page of its audit."""

    entries: tuple[AuditEntry, ...]
    cursor: str = ""


class DevicePresence(Message, frozen=True, kw_only=True):
    """One device in the server's status: when it last synced, and what waits for it."""

    device: str
    name: str
    synced_ago_us: int | None
    open_runs: int


class ServerStatus(Message, frozen=True, kw_only=True):
    """Server answers with what waits: runs by status, the oldest that has not started, devices.

    `devices` are the first 100. `swept_ago_us` tells whether deadlines are kept.
    """

    counts: dict[str, int]
    oldest_queued_us: int | None
    devices: tuple[DevicePresence, ...]
    swept_ago_us: int | None
    writable: bool


LOCAL = (Authenticate, AuthenticateLocal, Pair, BeginRotation, GetServerStatus)

# What a connection of each kind of principal may send; the server holds to it once more.
MAY_SEND: Mapping[PrincipalKind, tuple[type[Message], ...]] = {
    "agent": (ListGraphSessions, RunGraphSession, GetGraphRun, CancelGraphRun, ExplainRun),
    "device": (Sync, Start, Control, Complete),
    "owner": (
        NewPairingCode,
        ListDevices,
        RevokeDevice,
        AddAgent,
        ListAgents,
        RevokeAgent,
        AddOwner,
        RevokeOwner,
        ListOwners,
        RenewToken,
        SetOpenLimit,
        ListRuns,
        ShowRun,
        ExplainRun,
        CancelRun,
        ForgetRun,
        ListAudit,
        GetServerStatus,
    ),
}
