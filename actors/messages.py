"""What is said: one frozen, tagged, keyword-only struct a message."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from transports.traceparent import accepted

TERMINAL = frozenset({"completed", "failed", "cancelled", "expired", "interrupted"})
NOT_SHARED_TEXT = "Graph session is no longer shared with this project"  # the account's words
NOT_FOUND_TEXT = "Graph run not found or access removed"  # the account's words


CHANNEL = "graph:external:"  # the account's channel for a run that came from outside
Natural = Annotated[int, msgspec.Meta(ge=0)]
Ending = Literal["completed", "failed", "cancelled", "interrupted"]


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag=True, tag_field="type"):
    """Immutable and acyclic, so the garbage collector need not track it."""


# agent to server


class ListGraphSessions(Message, frozen=True, kw_only=True):
    """Agent asks the server which sessions a project shares, `limit` (1 to 50) at most."""

    project_id: str
    limit: int = 50


class RunGraphSession(Message, frozen=True, kw_only=True):
    """Agent asks the server to queue a run; the same key again returns the same ticket."""

    graph_session_id: str
    idempotency_key: str
    arguments: dict[str, Any] = {}


class GetGraphRun(Message, frozen=True, kw_only=True):
    """Agent asks the server how its run stands, and may wait up to `wait_us` for a change."""

    command_id: str
    wait_us: Natural = 0


class CancelGraphRun(Message, frozen=True, kw_only=True):
    """Agent asks the server to cancel its run: at once while queued, else at a control poll."""

    command_id: str


# server to agent


class SessionListing(Message, frozen=True, kw_only=True):
    """One shared session as an agent sees it."""

    graph_session_id: str
    name: str
    description: str
    slug: str
    version: int
    status: str


class GraphSessions(Message, frozen=True, kw_only=True):
    """Server answers a listing with what the last sync uploaded."""

    project_id: str
    sessions: tuple[SessionListing, ...]


class GraphRun(Message, frozen=True, kw_only=True):
    """Server tells an agent how its run stands. Equal in every byte while nothing changes.

    `awaiting_approval` is how many tool calls of it wait for its desktop's owner; unset for none.
    """

    command_id: str
    status: str
    result: Any = None
    result_truncated: bool = False
    error: str | None = None
    execution_id: str | None = None
    total_tokens: int = 0
    reported_cost: float = 0.0
    cancel_requested: bool = False
    replayed: bool = False
    poll_after_us: int | None = None
    awaiting_approval: Natural | msgspec.UnsetType = msgspec.UNSET


class Failure(Message, frozen=True, kw_only=True):
    """Server refuses an agent's call; nothing was changed by it."""

    code: str
    error: str


# relay to server


class SessionMeta(Message, frozen=True, kw_only=True):
    """What a relay uploads of one shared session."""

    id: str
    project: str
    name: str
    slug: str
    description: str = ""
    version: int = 1
    status: str = "ready"
    generation: int = 0


class Sync(Message, frozen=True, kw_only=True):
    """Relay reports its whole view and asks for commands, `capacity` at most.

    `open` lists every run that it holds: waiting, running, or with a result not yet accepted.
    """

    boot: str
    sessions: tuple[SessionMeta, ...]
    open: tuple[str, ...]
    capacity: Natural
    poll_us: Annotated[int, msgspec.Meta(ge=1)]  # a hint of 0 would have agents ask without a pause


class Start(Message, frozen=True, kw_only=True):
    """Relay asks leave to start a run; idempotent for the same run, device, boot and delivery."""

    command_id: str
    boot: str
    delivery: int


class Control(Message, frozen=True, kw_only=True):
    """Relay asks whether the run it executes should stop.

    `waiting` is how many tool calls of the run wait for the desktop's owner, once any ever did.
    """

    command_id: str
    boot: str
    waiting: Natural | msgspec.UnsetType = msgspec.UNSET


class Completion(Message, frozen=True, kw_only=True):
    """What became of an execution, bounded to 100,000 characters of JSON."""

    execution_id: str | None
    status: Ending
    result: Any = None
    result_truncated: bool = False
    total_tokens: int = 0
    reported_cost: float = 0.0
    error: str | None = None


class Complete(Message, frozen=True, kw_only=True):
    """Relay posts a completion, and again until it is accepted."""

    command_id: str
    boot: str
    delivery: int
    completion: Completion


# server to relay


class Command(Message, frozen=True, kw_only=True, omit_defaults=True):
    """One queued run as it is offered to a relay, with the delivery's number.

    `traceparent` is the run's trace; what has not W3C's form counts as none, whatever it is.
    """

    command_id: str
    delivery: int
    session: str
    slug: str
    generation: int
    arguments: dict[str, Any]
    traceparent: Any = ""

    def __post_init__(self) -> None:
        """Drop a malformed traceparent: nothing else of the run depends on it."""
        if self.traceparent != "":
            msgspec.structs.force_setattr(self, "traceparent", accepted(self.traceparent))


class Commands(Message, frozen=True, kw_only=True):
    """Server answers a sync with the commands queued for this device, oldest first."""

    commands: tuple[Command, ...]


class StartAnswer(Message, frozen=True, kw_only=True):
    """Server lets a run start, or says why not; `go` promises that nobody else got it."""

    go: bool
    reason: str | None = None


class ControlAnswer(Message, frozen=True, kw_only=True):
    """Server tells the relay whether to stop the run."""

    stop: bool
    reason: str | None = None


class Accepted(Message, frozen=True, kw_only=True):
    """Server has committed a completion, now or before; the outbox may forget it."""

    command_id: str


# relay and engine


class FleetRun(Message, frozen=True, kw_only=True):
    """Relay tells its engine to run a Graph, at most once for a channel."""

    channel: str
    session: str
    slug: str
    arguments: dict[str, Any]


class FleetQuery(Message, frozen=True, kw_only=True):
    """Relay asks its engine after a channel, without starting anything."""

    channel: str


class FleetCancel(Message, frozen=True, kw_only=True):
    """Relay tells its engine to stop an execution."""

    execution_id: str


class FleetDrop(Message, frozen=True, kw_only=True):
    """Relay tells its engine to end an execution at once, whatever it does: it did not stop."""

    execution_id: str


class FleetStarted(Message, frozen=True, kw_only=True):
    """Engine answers that the channel's Graph runs, or has run, under this execution id.

    It says so again when it changes how many of the run's tool calls are `waiting` for the owner.
    Such a word may be lost; the next one, or the answer to a question, makes up for it.
    """

    channel: str
    execution_id: str
    waiting: Natural | msgspec.UnsetType = msgspec.UNSET


class FleetUnknown(Message, frozen=True, kw_only=True):
    """Engine answers that it never saw the channel."""

    channel: str


class FleetFinished(Message, frozen=True, kw_only=True):
    """Engine reports an execution's end, and again until the relay has it on disk."""

    channel: str
    completion: Completion


class FleetAcknowledged(Message, frozen=True, kw_only=True):
    """Relay has the execution's end on disk."""

    channel: str


# owner and relay


class Share(Message, frozen=True, kw_only=True):
    """Owner ticks a session for its project."""

    session: str


class Unshare(Message, frozen=True, kw_only=True):
    """Owner unticks a session."""

    session: str


class Rename(Message, frozen=True, kw_only=True):
    """Owner renames a session, which changes its slug."""

    session: str
    name: str


class Enable(Message, frozen=True, kw_only=True):
    """Owner enables a project on this desktop."""

    project: str


class Disable(Message, frozen=True, kw_only=True):
    """Owner disables a project on this desktop; its sessions are no longer shared."""

    project: str


class Noted(Message, frozen=True, kw_only=True):
    """Relay has the owner's change on disk."""


# agent to agent


class Leak(Message, frozen=True, kw_only=True):
    """An agent gives its ticket away, as happens to ids in chats and logs."""

    command_id: str


# Answers that are always the same, built once

NOT_FOUND = Failure(code="not_found", error=NOT_FOUND_TEXT)
KEY_REUSED = Failure(
    code="idempotency_key_reused",
    error="idempotency_key was used for another request: take a new key",
)
KEY_LENGTH = Failure(code="bad_request", error="idempotency_key must have 8 to 128 characters")
ARGUMENTS_SIZE = Failure(code="bad_request", error="arguments may have 262,144 bytes of JSON")
QUEUE_FULL = "queue_full"  # the code of a refusal that time or an owner lifts
GO = StartAnswer(go=True)
CONTINUE = ControlAnswer(stop=False)
STOP_CANCELLED = ControlAnswer(stop=True, reason="cancel")
STOP_CLOSED = ControlAnswer(stop=True, reason="closed")


def queue_full(whose: str, limit: int) -> Failure:
    """Return the refusal of a run beyond a limit: whose, how many, and what to do."""
    have = f"{whose} has {limit} open runs, as many as it may"
    cure = "wait for some to end, or ask the owner for a higher limit"
    return Failure(code=QUEUE_FULL, error=f"{have}: {cure}")
