"""The relay of a deployed desktop: its owner adds sessions, sees what ran, and asks how it stands.

What it says to the server is what every relay says. Beside that it keeps a history, written in the
turns that begin and end a run; and it takes up results for runs that its journal does not know, as
after a damaged store was set aside: they are posted, and no run is started for that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec

from actors.actor import Context, Handler, Place, Unanswered
from actors.desktop.chronicle import Chronicle
from actors.desktop.messages import (
    NOT_WRITABLE,
    PAGE_LIMIT,
    AddSession,
    Connected,
    CurrentRun,
    DesktopStatus,
    DropGraph,
    GetDesktopStatus,
    GetHistory,
    GraphSaved,
    History,
    HistoryOf,
    ListHistory,
    ListOutbox,
    ListSessions,
    Outbox,
    Phase,
    RemoveSession,
    SaveGraph,
    SaveSession,
    SessionList,
    SessionSaved,
    Unsent,
)
from actors.desktop.rows import OwnSession
from actors.desktop.sessions import SESSIONS_LIMIT, UPLOADED_LIMIT, Sessions, digest_of
from actors.handover import complete
from actors.journal import Attempt, Posting
from actors.messages import (
    CHANNEL,
    Command,
    Commands,
    Completion,
    Failure,
    FleetFinished,
    Message,
    Noted,
    Rename,
    Share,
    Sync,
    Unshare,
)
from actors.relay import OUTBOX_LIMIT, Relay
from actors.running import Running
from actors.text import bounded
from transports.envelope import Envelope
from transports.units import Duration, Size, parse_duration, parse_size

RESYNC_US = 2_000_000  # after a new link: its owner waits, and a thousand others may come too

NO_SESSION = Failure(code="not_found", error="there is no such session on this desktop")
NO_RUN = Failure(code="not_found", error="no run of this ticket or execution is in the history")
BAD_PAGE = Failure(code="bad_request", error=f"limit must be 1 to {PAGE_LIMIT}")
NO_PROJECT = Failure(code="bad_request", error="a project has 1 to 200 characters")
TOO_MANY = Failure(
    code="too_many", error=f"a desktop has {SESSIONS_LIMIT:,} sessions at most: remove some"
)


class DesktopRelay(Relay):
    """See the module's docstring."""

    class Config(Relay.Config, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What may be set of a deployed relay; the defaults are the recommended profile's."""

        jitter: Annotated[
            Literal["none", "window"], '"window" polls at a random time in each interval'
        ] = "window"
        presence: Annotated[bool, "syncs while busy too, taking no new work"] = True
        strict_consent: Annotated[
            bool, "a change of its session cancels what was queued before and stops what runs"
        ] = True
        stop_limit_us: Annotated[
            Duration, "a Graph that has not stopped by then is dropped; 0s waits for ever"
        ] = msgspec.field(name="stop_limit", default=Duration(60_000_000))
        history_runs: Annotated[
            int, msgspec.Meta(ge=1, le=1_000_000), "how many runs its history has"
        ] = 10_000
        history_age_us: Annotated[Duration, "how long a run stays in its history"] = msgspec.field(
            name="history_age", default=parse_duration("90d")
        )
        history_bytes: Annotated[Size, "what the results in its history may take in all"] = (
            parse_size("64MiB")
        )

    config: Config

    def __init__(self, config: Config, place: Place) -> None:
        super().__init__(config, place)
        self.chronicle = Chronicle(
            config.history_runs, int(config.history_age_us), int(config.history_bytes)
        )
        mine: dict[type[Any], Handler] = {
            AddSession: self.on_add,
            SaveSession: self.on_save,
            RemoveSession: self.on_remove,
            ListSessions: self.on_list_sessions,
            GraphSaved: self.on_graph_saved,
            Failure: self.on_refused,
            ListHistory: self.on_list_history,
            GetHistory: self.on_get_history,
            ListOutbox: self.on_list_outbox,
            GetDesktopStatus: self.on_status,
            Connected: self.on_connected,
        }
        self.handlers = {**self.handlers, **mine}

    def make_consents(self) -> Sessions:
        """Return what keeps this relay's sessions."""
        return Sessions(self.place.sessions, self.config.strict_consent)

    @property
    def own(self) -> Sessions:
        """The sessions of this desktop."""
        return cast(Sessions, self.consents)

    def on_start(self, context: Context) -> None:
        """Read what outlives a boot, and begin as every relay does."""
        self.chronicle.open(context.store)
        self.since: dict[str, int] = {}  # when a run got its slot, by run
        self.saving: dict[int, tuple[Envelope[Any], OwnSession]] = {}  # by the question's id
        self.synced_us: int | None = None
        self.silent = self.adopted = 0
        super().on_start(context)

    # Runs

    def ask_start(self, context: Context, run: Running) -> None:
        """Ask for leave, and note since when the run has a slot."""
        self.since = {one: self.since.get(one, context.now_us) for one in self.running}
        super().ask_start(context, run)

    def begin(self, context: Context, run: Running) -> None:
        """Hand a run over, and write it into the history."""
        version = self.version_of(run.command)
        self.chronicle.began(run.command, version, context.stamp_us)
        super().begin(context, run)

    def version_of(self, command: Command) -> int:
        """Return the version of a session's Graph, 0 where there is none."""
        row = self.own.sessions.get(command.session)
        return 0 if row is None else row.meta.version

    def end_of(self, command: Command) -> Completion:
        """Return the end that the history has of a run, with its result."""
        return self.chronicle.end_of(command.command_id) or super().end_of(command)

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        """Post a completion, and write it into the history as it is posted."""
        super().finish(context, command, done)
        posting = self.outbox.get(command.command_id)
        if posting is not None:
            done = posting.complete.completion
        self.chronicle.ended(command, self.version_of(command), done, context.stamp_us)

    def on_fleet_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> None:
        """Keep a result, also one of a run that the journal does not know."""
        super().on_fleet_finished(context, envelope)
        body = envelope.body
        run_id = body.channel.removeprefix(CHANNEL)
        if run_id not in self.running and self.journal.get(run_id) is None:
            self.adopt(context, run_id, bounded(body.completion), envelope.traceparent)

    def adopt(self, context: Context, run_id: str, done: Completion, traceparent: str) -> None:
        """Keep and post a result whose run was begun before the journal was lost."""
        command = Command(
            command_id=run_id, delivery=0, session="", slug="", generation=0, arguments={},
            traceparent=traceparent,
        )  # fmt: skip
        context.log("relay.adopted", run=run_id)
        self.adopted += 1
        self.commands = [each for each in self.commands if each.command_id != run_id]
        self.journal.put(run_id, Attempt(command=command, open=None))
        self.posted += 1
        self.unsent += 1
        posted = complete(command, self.boot, done)
        posting = Posting(complete=posted, order=self.posted, traceparent=traceparent)
        self.outbox.put(run_id, posting)
        self.chronicle.ended(command, 0, done, context.stamp_us)
        if not self.busy:
            self.begin_pass(context)

    def on_commands(self, context: Context, envelope: Envelope[Commands]) -> None:
        """Note that the server answers, and take its commands."""
        self.synced_us, self.silent = context.now_us, 0
        super().on_commands(context, envelope)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Note that the server or the engine said nothing, and go on."""
        question = envelope.body.question
        if isinstance(question, SaveGraph):
            del self.saving[envelope.reply_to]  # its owner asks again
            return
        self.silent += isinstance(question, Sync)
        super().on_unanswered(context, envelope)

    def on_connected(self, context: Context, _: Envelope[Connected]) -> None:
        """Ask again soon what was asked over a link that is gone: no answer to that will come.

        A time-out of before may then let a pass post or sync once more, which changes nothing.
        """
        self.passing, self.pass_sync, self.flushing = False, 0, []
        for question, run in list(self.asked.items()):
            run_id = run.command.command_id
            # What the journal has was begun: the question was whether to stop what has ended since.
            if run.question is None and self.journal.get(run_id) is None:
                del self.asked[question], self.running[run_id]
                self.unsettled.append(run.command)
        for run_id, run in list(self.running.items()):
            if run.question is None and self.outbox.get(run_id) is not None:
                del self.running[run_id]
        context.set_timer("poll", int(context.random("resync").random() * RESYNC_US))

    # Sessions

    def on_add(self, context: Context, envelope: Envelope[AddSession]) -> Message | None:
        """Have a new session's Graph saved; what was added before is told as it is."""
        body = envelope.body
        there = self.own.named_like(body.name)
        same = there is not None and there.meta.project == body.project
        if there is not None and same and there.sha256 == digest_of(body.entry, body.texts):
            return self.saved(there)
        refusal = self.refusal(context, body) or self.own.misnamed(body.name)
        if refusal is not None:
            return refusal
        if not 1 <= len(body.project) <= 200:
            return NO_PROJECT
        if len(self.own.all()) + len(self.saving) >= SESSIONS_LIMIT:
            return TOO_MANY
        row = self.own.add(context.new_id("gs"), body.name, body.project)
        self.save(context, envelope, row)
        return None

    def on_save(self, context: Context, envelope: Envelope[SaveSession]) -> Message | None:
        """Have a session's Graph saved anew."""
        row = self.own.sessions.get(envelope.body.session)
        if row is None:
            return NO_SESSION
        refusal = self.refusal(context, envelope.body)
        if refusal is None:
            self.save(context, envelope, row)
        return refusal

    def refusal(self, context: Context, body: AddSession | SaveSession) -> Failure | None:
        """Return why a Graph is not saved, None if it may be."""
        return self.own.unfit(body.entry, body.texts) if context.store.writable else NOT_WRITABLE

    def save(self, context: Context, envelope: Envelope[Any], row: OwnSession) -> None:
        """Ask the engine to save a Graph; the owner is answered when it has."""
        body = envelope.body
        ask = SaveGraph(session=row.meta.id, entry=body.entry, texts=body.texts)
        self.saving[context.request(self.engine, ask, self.timeout_us)] = (envelope, row)

    def on_graph_saved(self, context: Context, envelope: Envelope[GraphSaved]) -> None:
        """Write the session whose Graph the engine has, and tell its owner."""
        asked, row = self.saving.pop(envelope.reply_to, (None, None))
        if asked is None or row is None:
            return  # asked before this relay was rebuilt
        body = envelope.body
        there = self.own.sessions.get(body.session)
        if there is None:
            refusal = self.own.misnamed(row.meta.name)  # another may have been quicker
            if refusal is not None or isinstance(asked.body, SaveSession):
                context.send(self.engine, DropGraph(session=body.session))
                context.reply(asked, refusal or NO_SESSION)
                return
            self.own.enable_new(row.meta.project)
        now = self.own.save(there or row, body)
        self.changed(context, type(asked.body).__name__)
        context.reply(asked, self.saved(now))
        self.tell_change(context)

    def saved(self, row: OwnSession) -> SessionSaved:
        """Return what tells an owner how a session is."""
        uploaded = row.meta.id in {meta.id for meta in self.own.shared()}
        return SessionSaved(session=self.own.state(row, uploaded))

    def on_refused(self, context: Context, envelope: Envelope[Failure]) -> None:
        """Tell an owner what the engine said to a Graph."""
        asked, _ = self.saving.pop(envelope.reply_to, (None, None))
        if asked is not None:
            context.reply(asked, envelope.body)

    def on_remove(self, context: Context, envelope: Envelope[RemoveSession]) -> Noted:
        """Remove a session; what executes goes on unless consent is strict."""
        self.own.sessions.delete(envelope.body.session)
        context.send(self.engine, DropGraph(session=envelope.body.session))
        self.changed(context, "RemoveSession")
        self.tell_change(context)
        return Noted()

    def on_owner(self, context: Context, envelope: Envelope[Any]) -> None:
        """Write the owner's change, or say why not."""
        body = envelope.body
        refusal: Failure | None = None
        if isinstance(body, Share | Unshare | Rename):
            there = self.own.sessions.get(body.session)
            refusal = NO_SESSION if there is None else None
            if there is not None and isinstance(body, Rename):
                refusal = self.own.misnamed(body.name, body.session)
        if refusal is None:
            super().on_owner(context, envelope)
        else:
            context.reply(envelope, refusal)

    # What is asked

    def on_list_sessions(self, context: Context, envelope: Envelope[ListSessions]) -> Message:
        """Tell a page of sessions."""
        body = envelope.body
        if not 1 <= body.limit <= PAGE_LIMIT:
            return BAD_PAGE
        found = self.own.states(body.after, body.limit + 1)
        page = tuple(found[: body.limit])
        return SessionList(
            sessions=page,
            left_out=max(0, len(self.own.ticked()) - UPLOADED_LIMIT),
            next=page[-1].meta.slug if len(found) > len(page) else None,
        )

    def on_list_history(self, context: Context, envelope: Envelope[ListHistory]) -> Message:
        """Tell a page of runs."""
        body = envelope.body
        if not 1 <= body.limit <= PAGE_LIMIT:
            return BAD_PAGE
        found = self.chronicle.page(body.before, body.limit + 1, body.session)
        page = tuple(found[: body.limit])
        return History(runs=page, next=page[-1].number if len(found) > len(page) else None)

    def on_get_history(self, context: Context, envelope: Envelope[GetHistory]) -> Message:
        """Tell one run with its result."""
        past = self.chronicle.find(envelope.body.id)
        if past is None:
            return NO_RUN
        return HistoryOf(run=past.run, result=self.chronicle.result_of(past))

    def on_list_outbox(self, context: Context, envelope: Envelope[ListOutbox]) -> Message:
        """Tell a page of what the server has not accepted."""
        body = envelope.body
        if not 1 <= body.limit <= PAGE_LIMIT:
            return BAD_PAGE
        # Those before the page are read too: an outbox takes no new work beyond a few.
        rows = self.outbox.scan("order", limit=self.unsent)
        rows = [each for each in rows if each.order > body.after][: body.limit + 1]
        page = rows[: body.limit]
        return Outbox(
            unsent=tuple(self.unsent_of(context, each) for each in page),
            depth=self.unsent,
            next=page[-1].order if len(rows) > len(page) else None,
        )

    def unsent_of(self, context: Context, posting: Posting) -> Unsent:
        """Return what an owner is told of a result that waits."""
        done = posting.complete.completion
        return Unsent(
            order=posting.order,
            command_id=posting.complete.command_id,
            execution_id=done.execution_id,
            status=done.status,
            age_us=self.age_us(context, posting),
        )

    def age_us(self, context: Context, posting: Posting) -> int | None:
        """Return how long a result has waited, None if the history has forgotten its run."""
        past = self.chronicle.find(posting.complete.command_id)
        ended_us = None if past is None else past.run.finished_us
        return None if ended_us is None else max(0, context.stamp_us - ended_us)

    def on_status(self, context: Context, envelope: Envelope[GetDesktopStatus]) -> DesktopStatus:
        """Tell how this desktop stands."""
        oldest = self.outbox.scan("order", limit=1)
        ticked = len(self.own.ticked())
        return DesktopStatus(
            up_us=context.now_us,
            slots=self.slots,
            running=tuple(self.current(context, run) for run in self.running.values()),
            waiting=len(self.commands) + len(self.unsettled),
            outbox=self.unsent,
            outbox_age_us=self.age_us(context, oldest[0]) if oldest else None,
            synced_us=None if self.synced_us is None else context.now_us - self.synced_us,
            silent=self.silent,
            writable=context.store.writable,
            refuses=self.refuses(context),
            sessions=len(self.own.all()),
            uploaded=min(ticked, UPLOADED_LIMIT),
            left_out=max(0, ticked - UPLOADED_LIMIT),
            adopted=self.adopted,
        )

    def refuses(self, context: Context) -> str | None:
        """Return why no new work is taken, None if it is."""
        if not context.store.writable:
            return NOT_WRITABLE.error
        if self.unsent >= OUTBOX_LIMIT:
            return f"{self.unsent} results wait for the server: it must take some first"
        return None

    def current(self, context: Context, run: Running) -> CurrentRun:
        """Return what an owner is told of a run that has a slot."""
        command = run.command
        phase: Phase = "running"
        if run.question is None:
            phase = "asking" if self.outbox.get(command.command_id) is None else "posting"
        elif run.cancelled:
            phase = "stopping"
        since_us = self.since.get(command.command_id, 0)
        return CurrentRun(
            command_id=command.command_id,
            execution_id=run.execution_id,
            session=command.session,
            slug=command.slug,
            phase=phase,
            for_us=context.now_us - since_us,
        )
