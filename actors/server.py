"""The server: queues runs, hands out tickets, lets each run start once, keeps what became of it.

Theory of operation. A run is one durable row for its whole life; its state changes, the row does
not, and absence never means success. `actors.transitions` lists every legal change. A state that
is not terminal is always watched: by the start deadline while it waits, by the run deadline while
it runs; the watch is the index `due`, swept by a timer that can be lost and set again at any point.
Terminal never changes; what arrives later is kept beside it. Only the server's clock decides.

The server keeps no truth in attributes, so several can share one database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from actors.actor import Context, Handler, Place, TableSpec, meta_of
from actors.hints import Hints
from actors.ledger import (
    DEVICES,
    RUNS,
    SESSIONS,
    TICKETS,
    TURNS,
    Device,
    Run,
    Shared,
    Ticket,
    Turn,
)
from actors.messages import (
    ARGUMENTS_SIZE,
    CONTINUE,
    GO,
    KEY_LENGTH,
    KEY_REUSED,
    NOT_FOUND,
    STOP_CANCELLED,
    STOP_CLOSED,
    TERMINAL,
    Accepted,
    CancelGraphRun,
    Command,
    Commands,
    Complete,
    Completion,
    Control,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    Message,
    RunGraphSession,
    SessionMeta,
    Start,
    StartAnswer,
    Sync,
    queue_full,
)
from actors.server_config import ServerConfig
from actors.transitions import ERRORS, TARGETS
from actors.waiting import TIMER, Waiting
from transports.envelope import Envelope

SESSIONS_LIMIT = 100  # the account's bound on a sync; more would make every sync heavy
OFFER_LIMIT = 100  # a relay is one worker: more commands than these only age in its memory
SWEEP_LIMIT = 100  # rows a sweep changes in one turn, so that a turn stays short
SWEEP_PAUSE_US = 1_000_000  # after a start: one that can't be committed is not tried without end
LIST_LIMIT = 50  # the account's bound on a listing
KEY_CHARS = (8, 128)  # the account's bounds on an idempotency key
ARGUMENTS_LIMIT_BYTES = 1 << 18  # of a run, and of a sync's runs together: they must fit a frame
DEFAULT_POLL_US = 20_000_000  # the account's poll interval, until a relay says its own
ANSWERS_LIMIT = 1_024  # open runs whose last answer is kept: it holds the run's arguments too
SEEN_US = 60_000_000  # how exactly a device's last contact is kept: an idle sync writes nothing

NO_COMMANDS = Commands(commands=())

_replace = msgspec.structs.replace
_meaning = msgspec.json.Encoder(order="sorted").encode


class Server:
    """See the module's docstring."""

    caches = frozenset({"answers", "heard"})  # what is left in them of an undone turn does no harm

    class Config(ServerConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of a server."""

    RUNS: ClassVar[TableSpec[Any]] = RUNS
    SESSIONS: ClassVar[TableSpec[Any]] = SESSIONS
    keys_kept_us: int | None = None  # how long a key outlives its run; None is for ever

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        given: dict[str, list[SessionMeta]] = {}
        for session in place.sessions:
            if session.shared:
                given.setdefault(session.relay, []).append(meta_of(session))
        # A sweep that comes by this is early enough for whatever becomes of a run.
        limits = (config.start_deadline_us, config.run_deadline_us, config.retention_us)
        self.shortest_us = min(limits)
        self.given = [(device, tuple(metas)) for device, metas in given.items()]
        self.handlers: Mapping[type[Any], Handler] = {
            ListGraphSessions: self.on_list,
            RunGraphSession: self.on_run,
            GetGraphRun: self.on_get,
            CancelGraphRun: self.on_cancel,
            Sync: self.on_sync,
            Start: self.on_start_request,
            Control: self.on_control,
            Complete: self.on_complete,
        }

    def on_start(self, context: Context) -> None:
        """Rebuild the caches; share what the scenario says was shared before it begins."""
        table = context.store.table
        self.runs, self.sessions = table(self.RUNS), table(self.SESSIONS)
        self.tickets, self.devices, self.turns = table(TICKETS), table(DEVICES), table(TURNS)
        self.hints = Hints(context.store, self.config.wait_limit_us) if self.config.hints else None
        self.answers: dict[str, tuple[Run, GraphRun]] = {}
        self.waiting = Waiting()
        self.sweep_at_us: int | None = None
        self.share_given(context.stamp_us)
        if self.runs.count("due"):
            self.arm_sweep(context, context.stamp_us + SWEEP_PAUSE_US, context.stamp_us)

    def share_given(self, now_us: int) -> None:
        """Be as if each relay had synced once: a scenario begins in a world that runs already."""
        for device, metas in self.given:
            known = Device(boot="", seen_us=now_us, poll_us=DEFAULT_POLL_US, sessions=metas)
            if self.devices.insert_unique(device, known):
                for meta in metas:
                    self.sessions.put(meta.id, self.shared_by(device, meta))

    def on_timer(self, context: Context, timer: str) -> None:
        """Sweep what is overdue, or answer an agent that waited long enough."""
        if timer == "sweep":
            self.sweep(context)
        else:
            self.answer_waiting(context, timer.removeprefix(TIMER))

    # Agents

    def on_list(self, context: Context, envelope: Envelope[ListGraphSessions]) -> Message:
        """List what the last syncs uploaded for a project."""
        body = envelope.body
        if not 1 <= body.limit <= LIST_LIMIT:
            return Failure(code="bad_request", error=f"limit must be 1 to {LIST_LIMIT}")
        listing = tuple(row.listing() for row in self.shared_with(envelope.source, body))
        return GraphSessions(project_id=body.project_id, sessions=listing)

    def session_for(self, agent: str, session: str) -> Shared | None:
        """Find a session that an agent may run."""
        return self.sessions.get(session)

    def shared_with(self, agent: str, body: ListGraphSessions) -> list[Shared]:
        """Find the sessions that an agent is shown."""
        return self.sessions.scan("project", (body.project_id,), limit=body.limit)

    def on_run(self, context: Context, envelope: Envelope[RunGraphSession]) -> Message:
        """Queue a run, or return the ticket that the key stands for already."""
        body, agent = envelope.body, envelope.source
        if not KEY_CHARS[0] <= len(body.idempotency_key) <= KEY_CHARS[1]:
            return KEY_LENGTH
        meaning = _meaning((body.graph_session_id, body.arguments))
        if len(meaning) > ARGUMENTS_LIMIT_BYTES:
            return ARGUMENTS_SIZE
        ticket = self.tickets.get((agent, body.idempotency_key))
        if ticket is not None:
            return self.replay(context, envelope, ticket, meaning)
        shared = self.session_for(agent, body.graph_session_id)
        if shared is None:
            return NOT_FOUND
        refusal = self.full(agent, shared.device)
        if refusal is not None:
            return refusal
        run = self.queue(context, agent, body, shared)
        self.tickets.insert_unique(
            (agent, run.key), Ticket(meaning=meaning, command_id=run.command_id)
        )
        return self.answer(run)

    def limits(self, agent: str, device: str) -> tuple[int, int]:
        """How many open runs an agent may have, and a device."""
        return self.config.agent_limit, self.config.device_limit

    def full(self, agent: str, device: str) -> Failure | None:
        """Refuse a run beyond a limit, by the limit's name and number."""
        agent_limit, device_limit = self.limits(agent, device)
        if self.runs.count("load", (agent,)) >= agent_limit:
            return queue_full("this agent", agent_limit)
        if self.runs.count("open", (device,)) >= device_limit:
            return queue_full("this desktop", device_limit)
        return None

    def replay(
        self, context: Context, envelope: Envelope[Any], ticket: Ticket, meaning: bytes
    ) -> Message:
        """Answer a key that was used before; another meaning is checked first, in any state."""
        if not ticket.means(meaning):
            return KEY_REUSED
        context.log("run.replayed", run=ticket.command_id)
        run = self.runs.get(ticket.command_id)
        if run is None:
            gone = GraphRun(command_id=ticket.command_id, status=ticket.final or "expired")
            return _replace(gone, replayed=True)
        return _replace(self.answer(run), replayed=True)

    def queue(self, context: Context, agent: str, body: RunGraphSession, shared: Shared) -> Run:
        """Write a new run."""
        now_us = context.stamp_us
        run = self.new_run(context, agent, body, shared)
        self.runs.put(run.command_id, run)
        self.arm_sweep(context, now_us + self.shortest_us, now_us)
        context.log("run.queued", run=run.command_id, agent=agent, session=run.session)
        return run

    def new_run(self, context: Context, agent: str, body: RunGraphSession, shared: Shared) -> Run:
        """Return the row of a new run."""
        device, now_us, hint_us, rank = shared.device, context.stamp_us, None, 0
        if self.hints is not None:
            known = self.devices.get(device)
            poll_us = DEFAULT_POLL_US if known is None else known.poll_us
            ahead = self.runs.count("open", (device,))
            hint_us = self.hints.queued_us(device, shared.meta.id, poll_us, ahead, now_us)
        if self.config.fair:  # behind as many others as the agent has open itself
            turn = self.turns.get(device)
            rank = self.runs.count("load", (agent, device)) + (0 if turn is None else turn.rank) + 1
        return Run(
            command_id=context.new_id(),
            agent=agent,
            key=body.idempotency_key,
            device=device,
            session=shared.meta.id,
            slug=shared.meta.slug,
            generation=shared.meta.generation,
            arguments=body.arguments,
            status="queued",
            queued_us=now_us,
            open_on=device,
            open_for=agent,
            due_us=now_us + self.config.start_deadline_us,
            hint_us=hint_us,
            traceparent=context.traceparent,
            rank=rank,
        )

    def own(self, envelope: Envelope[Any]) -> Run | None:
        """Return the run if it is this agent's; "not yours" and "does not exist" are one answer."""
        run = self.runs.get(envelope.body.command_id)
        return None if run is None or run.agent != envelope.source else run

    def on_get(self, context: Context, envelope: Envelope[GetGraphRun]) -> Message | None:
        """Tell an agent how its run stands, now or (None) when that changes."""
        body = envelope.body
        run = self.runs.get(body.command_id)
        if run is None or run.agent != envelope.source:
            return NOT_FOUND
        if body.wait_us and self.config.wait_limit_us and run.status not in TERMINAL:
            wait_us = min(body.wait_us, self.config.wait_limit_us)
            if self.waiting.hold(context, envelope, run.command_id, wait_us):
                return None
        row, answer = self.answers.get(run.command_id, (None, None))
        return answer if row is run else self.answer(run)

    def answer_waiting(self, context: Context, command_id: str) -> None:
        """Answer everybody who waits for a change of this run."""
        run = self.runs.get(command_id)
        for envelope in self.waiting.release(context, command_id):
            context.reply(envelope, NOT_FOUND if run is None else self.answer(run))

    def answer(self, run: Run) -> GraphRun:
        """Build what an agent sees; of an open run it is kept while the store gives this row."""
        answer = run.answer()
        if run.open_on is not None:  # an end is asked for once, and may be large
            if len(self.answers) >= ANSWERS_LIMIT:
                self.answers.clear()
            self.answers[run.command_id] = (run, answer)
        return answer

    def on_cancel(self, context: Context, envelope: Envelope[CancelGraphRun]) -> Message:
        """Cancel a queued run at once; flag a running one for the next control poll."""
        run = self.own(envelope)
        return NOT_FOUND if run is None else self.answer(self.cancel(context, run))

    def cancel(self, context: Context, run: Run) -> Run:
        """Close a queued run, flag a running one; return it as it is now."""
        context.log("run.cancel_asked", run=run.command_id, status=run.status)
        if run.status == "queued":
            run = self.close(context, run, "cancel")
        elif run.status == "running" and not run.cancel_requested:
            run = _replace(run, cancel_requested=True)
            self.runs.put(run.command_id, run)
        return run

    # Relays

    def on_sync(self, context: Context, envelope: Envelope[Sync]) -> Message:
        """Take a relay's whole view, settle what it no longer holds, offer what is queued."""
        body, device = envelope.body, envelope.source
        known = self.devices.get(device)
        now_us = context.stamp_us
        if known is not None and known.sessions == body.sessions:
            sessions = known.sessions
        else:
            sessions = self.take_sessions(device, body.sessions)
        if (
            known is None
            or known.sessions is not sessions
            or known.boot != body.boot
            or known.poll_us != body.poll_us
            or now_us - known.seen_us >= SEEN_US
        ):
            row = Device(boot=body.boot, seen_us=now_us, poll_us=body.poll_us, sessions=sessions)
            self.devices.put(device, row)
        if self.hints is not None:
            self.hints.heard[device] = now_us
        runs = self.runs.claim("open", (device,), limit=OFFER_LIMIT + len(body.open))
        if not runs:
            return NO_COMMANDS
        return Commands(commands=self.offers(context, runs, body))

    def offers(self, context: Context, runs: list[Run], body: Sync) -> tuple[Command, ...]:
        """Go through a device's open runs: end what it lost, offer what is queued and fits."""
        room, size_bytes = min(body.capacity, OFFER_LIMIT), 0
        offers: list[Command] = []
        for run in runs:
            if run.status == "running":
                if self.config.reconcile and run.command_id not in body.open:
                    self.close(context, run, "forgotten")
            elif run.command_id in body.open or len(offers) >= room:
                continue
            elif self.is_poison(run, body.boot):
                self.close(context, run, "poison")
            else:
                size_bytes += len(_meaning(run.arguments))
                if size_bytes > ARGUMENTS_LIMIT_BYTES:
                    room = 0  # the rest comes with the next sync, in its turn
                else:
                    offers.append(self.offer(context, run, body.boot))
        return tuple(offers)

    def take_sessions(
        self, device: str, sessions: tuple[SessionMeta, ...]
    ) -> tuple[SessionMeta, ...]:
        """Make the device's shared sessions what its sync says; return those that it may share."""
        sessions = sessions[:SESSIONS_LIMIT]
        kept = {meta.id for meta in sessions}
        for row in self.sessions.scan("device", (device,), limit=SESSIONS_LIMIT):
            if row.meta.id not in kept:
                self.sessions.delete(row.meta.id)
        taken = []
        for meta in sessions:
            other = self.sessions.get(meta.id)
            if other is None or other.device == device:  # else asked for again by the next sync
                self.sessions.put(meta.id, self.shared_by(device, meta))
                taken.append(meta)
        return tuple(taken)

    def shared_by(self, device: str, meta: SessionMeta) -> Shared:
        """Return the row of a session that a device shares."""
        return Shared(device=device, project=meta.project, meta=meta)

    def is_poison(self, run: Run, boot: str) -> bool:
        """Whether a run was offered to so many boots that one more would only stop like those."""
        return 0 < self.config.delivery_limit <= run.delivery and run.boot != boot

    def offer(self, context: Context, run: Run, boot: str) -> Command:
        """Hand a queued run to a relay; a sync that comes twice takes no delivery back."""
        if run.boot != boot:
            run = _replace(run, boot=boot, delivery=run.delivery + 1)
            self.runs.put(run.command_id, run)
        context.log("run.offered", run=run.command_id, delivery=run.delivery)
        return run.command()

    def on_start_request(self, context: Context, envelope: Envelope[Start]) -> Message:
        """Let a run start if it is still offered to this very delivery; say so again if asked."""
        body = envelope.body
        run = self.runs.get(body.command_id)
        if run is None or run.device != envelope.source:
            return StartAnswer(go=False, reason="unknown")
        current = run.delivery > 0 and (run.boot, run.delivery) == (body.boot, body.delivery)
        if run.status == "running" and current:
            return GO
        if run.status != "queued" or not current:
            reason = "superseded" if run.status == "queued" else run.status
            return StartAnswer(go=False, reason=reason)
        self.begin(context, run)
        return GO

    def begin(self, context: Context, run: Run) -> None:
        """Let a queued run start."""
        now_us = context.stamp_us
        run = _replace(
            run,
            status=TARGETS["queued", "start"],
            started_us=now_us,
            due_us=now_us + self.config.run_deadline_us,
            hint_us=None if self.hints is None else self.hints.running_us(run.device, run.session),
        )
        self.runs.put(run.command_id, run)
        if self.config.fair:
            turn = self.turns.get(run.device)
            if turn is None or turn.rank < run.rank:
                self.turns.put(run.device, Turn(rank=run.rank))
        self.arm_sweep(context, run.due_us, now_us)
        context.log("run.started", run=run.command_id, device=run.device)
        self.changed(context, run)

    def on_control(self, context: Context, envelope: Envelope[Control]) -> Message:
        """Tell a relay whether to stop its run; note how many calls of it wait for its owner."""
        body = envelope.body
        run = self.runs.get(body.command_id)
        if run is None or run.device != envelope.source or run.status != "running":
            return STOP_CLOSED
        if body.waiting != run.awaiting:
            run = _replace(run, awaiting=body.waiting)
            self.runs.put(run.command_id, run)
            self.changed(context, run)
        return STOP_CANCELLED if run.cancel_requested else CONTINUE

    def on_complete(self, context: Context, envelope: Envelope[Complete]) -> Message:
        """Take a completion; the same again changes nothing, a late one is kept beside it."""
        body = envelope.body
        run = self.runs.get(body.command_id)
        done = body.completion
        if run is None or run.device != envelope.source:
            context.log("run.completion_unknown", run=body.command_id)
        elif run.status in TERMINAL:
            if run.completion != done and run.late is None:
                self.runs.put(run.command_id, _replace(run, late=done))
                context.log("run.late", run=run.command_id, status=done.status)
        else:
            self.close(context, run, done.status, done)
        return Accepted(command_id=body.command_id)

    # Every end of a run

    def close(self, context: Context, run: Run, cause: str, done: Completion | None = None) -> Run:
        """Make a run terminal, by the table."""
        status = TARGETS[run.status, cause]
        now_us = context.stamp_us
        closed = _replace(
            run,
            status=status,
            finished_us=now_us,
            open_on=None,
            open_for=None,
            due_us=now_us + self.config.retention_us,
            error=ERRORS.get(cause),
            completion=done,
            awaiting=UNSET,
        )
        self.runs.put(run.command_id, closed)
        self.answers.pop(run.command_id, None)
        if self.hints is not None and cause in {"completed", "failed"} and run.started_us:
            self.hints.remember(run.device, run.session, now_us - run.started_us)
        context.log("run.terminal", **closed.ending(was=run.status, cause=cause))
        self.changed(context, closed)
        return closed

    def changed(self, context: Context, run: Run) -> None:
        """Answer those who wait for this run."""
        if run.command_id in self.waiting.held:
            self.answer_waiting(context, run.command_id)

    # The sweep

    def arm_sweep(self, context: Context, due_us: int, now_us: int) -> None:
        """See to it that the sweep comes by `due_us`."""
        if self.sweep_at_us is None or due_us < self.sweep_at_us:
            self.sweep_at_us = due_us
            context.set_timer("sweep", max(0, due_us - now_us))

    def sweep(self, context: Context) -> None:
        """Close what is overdue and delete what was kept long enough."""
        for run in self.runs.claim("due", limit=SWEEP_LIMIT, up_to=context.stamp_us):
            if run.status in TERMINAL:
                self.forget(run)
            else:
                self.close(context, run, "deadline")
        self.sweep_at_us = None
        for first in self.runs.scan("due", limit=1):
            self.arm_sweep(context, first.due_us, context.stamp_us)

    def forget(self, run: Run) -> None:
        """Delete an ended run; its ticket keeps how it ended."""
        self.runs.delete(run.command_id)
        ticket = self.tickets.get((run.agent, run.key))
        if ticket is not None:
            self.tickets.put((run.agent, run.key), ticket.spent(run, self.keys_kept_us))
