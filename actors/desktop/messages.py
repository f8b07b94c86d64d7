"""What an owner says to the own desktop, and what relay and engine say of saved Graphs.

Nothing here ever comes from a server or an agent. Ages and times left are durations, since the
clock of who asks may be another. Lists come in pages: `limit` is 1 to 50, and `next` of an answer,
if there is one, begins the next page. What is refused is answered with a Failure, whose code is
bad_request, not_found, name_taken, too_many, no_graph or not_writable; it changed nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from actors.messages import Failure, Message, Natural, SessionMeta

PAGE_LIMIT = 50  # entries of one answer, so that it fits a frame whatever is in them
Phase = Literal["asking", "running", "stopping", "posting"]


# owner and relay: sessions


class AddSession(Message, frozen=True, kw_only=True):
    """Owner adds a session that nobody shares yet; said again with the same Graph it is the same.

    `texts` are JavaScript by name: `entry`, which runs, and every Graph that it may call. They are
    saved as they are now: a later edit of their files changes nothing.
    """

    name: str
    project: str
    entry: str
    texts: dict[str, str]


class SaveSession(Message, frozen=True, kw_only=True):
    """Owner saves a session's Graph anew: its version grows if any text differs.

    A run that executes goes on with the version that it began with; one that waits gets this one.
    """

    session: str
    entry: str
    texts: dict[str, str]


class RemoveSession(Message, frozen=True, kw_only=True):
    """Owner removes a session and its Graph; answered with Noted, also where there is none.

    Its history stays. A run that executes goes on, or is stopped where consent is strict.
    """

    session: str


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """One session as its owner sees it: a part of answers.

    `uploaded` says whether agents may see it: it is shared, its project is enabled, and it is among
    the first 100 that were shared, which is what a sync may carry.
    """

    meta: SessionMeta
    shared: bool
    enabled: bool
    uploaded: bool
    sha256: str = ""


class SessionSaved(Message, frozen=True, kw_only=True):
    """Relay has a session on disk, and the engine its Graph, as this version."""

    session: SessionState


class ListSessions(Message, frozen=True, kw_only=True):
    """Owner asks which sessions there are, in the order of their slugs, those behind `after`."""

    after: str = ""
    limit: int = PAGE_LIMIT


class SessionList(Message, frozen=True, kw_only=True):
    """Relay answers with a page of sessions.

    `left_out` in all are shared but not uploaded, for want of room: unsharing others lets them in,
    the longest shared first.
    """

    sessions: tuple[SessionState, ...]
    left_out: Natural
    next: str | None = None


# owner and relay: runs


class ListHistory(Message, frozen=True, kw_only=True):
    """Owner asks which runs came to this desktop, the latest first, those before number `before`.

    With a session only its own.
    """

    before: Natural | None = None
    limit: int = PAGE_LIMIT
    session: str | None = None


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that came to this desktop: a part of answers.

    Times are wall time in microseconds since 1970 by the desktop's clock; a run that was refused
    never started, one that is `running` has not finished. `result_bytes` is what its result takes
    as JSON, which is here while `kept`.
    """

    number: int
    command_id: str
    execution_id: str | None
    session: str
    slug: str
    version: int
    started_us: int | None
    finished_us: int | None
    status: str
    total_tokens: int = 0
    reported_cost: float = 0.0
    result_bytes: int = 0
    truncated: bool = False
    kept: bool = False
    error: str | None = None


class History(Message, frozen=True, kw_only=True):
    """Relay answers with a page of runs, the latest first."""

    runs: tuple[PastRun, ...]
    next: Natural | None = None


class GetHistory(Message, frozen=True, kw_only=True):
    """Owner asks for one run with its result, by its execution's id or by its ticket."""

    id: str


class HistoryOf(Message, frozen=True, kw_only=True):
    """Relay answers with a run; its result is None where it had none, or none is kept any more."""

    run: PastRun
    result: Any = None


class ListOutbox(Message, frozen=True, kw_only=True):
    """Owner asks which results the server has not accepted, the oldest first, behind `after`."""

    after: Natural = 0
    limit: int = PAGE_LIMIT


class Unsent(msgspec.Struct, frozen=True, kw_only=True):
    """One result that waits for the server: a part of answers. `age_us` is None if not known."""

    order: int
    command_id: str
    execution_id: str | None
    status: str
    age_us: int | None


class Outbox(Message, frozen=True, kw_only=True):
    """Relay answers with a page of results, and how many wait in all."""

    unsent: tuple[Unsent, ...]
    depth: Natural
    next: Natural | None = None


class Connected(Message, frozen=True, kw_only=True):
    """Uplink tells the relay that there is a new link to the server.

    What was asked before is lost, or answered already. It never comes from outside.
    """


class GetDesktopStatus(Message, frozen=True, kw_only=True):
    """Owner asks how the desktop stands."""


class CurrentRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that has a slot: a part of answers. `for_us` is how long it has had it."""

    command_id: str
    execution_id: str | None
    session: str
    slug: str
    phase: Phase
    for_us: Natural


class DesktopStatus(Message, frozen=True, kw_only=True):
    """Relay tells how it stands.

    `synced_us` is how long ago a sync was answered last, None if none was since the relay began
    `up_us` ago; `silent` syncs have stayed unanswered since. New work is taken while `refuses` is
    None, else that says why not. `adopted` results came from the engine for runs that the journal
    does not know, as after it was lost.
    """

    up_us: Natural
    slots: Natural
    running: tuple[CurrentRun, ...]
    waiting: Natural
    outbox: Natural
    outbox_age_us: Natural | None
    synced_us: Natural | None
    silent: Natural
    writable: bool
    refuses: str | None
    sessions: Natural
    uploaded: Natural
    left_out: Natural
    adopted: Natural


# relay and engine, owner and engine: saved Graphs


class SaveGraph(Message, frozen=True, kw_only=True):
    """Relay has its engine save a session's Graph with what it may call."""

    session: str
    entry: str
    texts: dict[str, str]


class GraphSaved(Message, frozen=True, kw_only=True):
    """Engine has a Graph on disk; the same texts again keep their version."""

    session: str
    version: Natural
    sha256: str
    description: str = ""


class DropGraph(Message, frozen=True, kw_only=True):
    """Relay tells its engine to forget a session's Graph; what executes goes on."""

    session: str


class GetGraph(Message, frozen=True, kw_only=True):
    """Owner asks the engine for the Graph that is saved for a session."""

    session: str


class SavedGraph(Message, frozen=True, kw_only=True):
    """Engine answers with a session's Graph as it would run now."""

    session: str
    entry: str
    texts: dict[str, str]
    version: Natural
    sha256: str
    saved_us: int


class GetEngineStatus(Message, frozen=True, kw_only=True):
    """Owner asks how the engine stands."""


class EngineStatus(Message, frozen=True, kw_only=True):
    """Engine tells how many Graphs run, wait and are saved.

    `unreported` have ended, and its relay has not acknowledged that.
    """

    up_us: Natural
    running: Natural
    waiting: Natural
    saved: Natural
    unreported: Natural
    writable: bool


NOT_WRITABLE = Failure(code="not_writable", error="the disk is full or can't be written: make room")

DESKTOP_MESSAGES: tuple[type[Message], ...] = (
    AddSession,
    SaveSession,
    RemoveSession,
    SessionSaved,
    ListSessions,
    SessionList,
    ListHistory,
    History,
    GetHistory,
    HistoryOf,
    ListOutbox,
    Outbox,
    Connected,
    GetDesktopStatus,
    DesktopStatus,
    SaveGraph,
    GraphSaved,
    DropGraph,
    GetGraph,
    SavedGraph,
    GetEngineStatus,
    EngineStatus,
)
