"""The relay: polls outward from the desktop, runs what it is given, brings every result back.

Theory of operation. A *pass* posts what the outbox still holds, syncs, and then takes the commands
that it got one after another; while a pass is busy the poll timer is skipped. A pass always ends:
each of its questions is answered or timed out. Before a run may start its consent is checked, in
the turn that asks the server for leave and again in the turn that gets it; that turn writes the
journal and hands the run to the engine. A run in the journal is never started again. A completion
is written to the outbox before it is posted and removed once the server has accepted it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.actor import Context, Handler, Place, Unanswered, meta_of
from actors.chance import Durations
from actors.handover import complete, fleet_run
from actors.journal import (
    ATTEMPTED,
    CONSENTS,
    ENABLED,
    JOURNAL,
    OUTBOX,
    PROJECTS,
    Attempt,
    Consent,
    Posting,
    Project,
)
from actors.messages import (
    CHANNEL,
    NOT_SHARED_TEXT,
    Accepted,
    Command,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    Disable,
    Enable,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
    Noted,
    Rename,
    SessionMeta,
    Share,
    Start,
    StartAnswer,
    Sync,
    Unshare,
)
from actors.text import bounded, slug_of
from transports.envelope import Envelope
from transports.units import Duration

START_TRIES = 3  # an unanswered start is asked this often, then the pass ends
OUTBOX_LIMIT = 50  # results that the server does not take: past that the relay takes no new work
CAPACITY = 100  # commands a sync may bring; the account's relay takes all that are queued

_replace = msgspec.structs.replace


class Relay:
    """See the module's docstring."""

    class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of a relay."""

        poll_us: Annotated[Duration, "the time between two polls"] = msgspec.field(
            name="poll", default=Duration(20_000_000)
        )
        phase_us: Annotated[
            Durations | None, "when it first polls; without it anywhere in one interval"
        ] = msgspec.field(name="phase", default=None)
        jitter: Annotated[
            Literal["none", "window"], '"window" polls at a random time in each interval'
        ] = "none"
        control_us: Annotated[Duration, "how often it asks whether a run should stop"] = (
            msgspec.field(name="control", default=Duration(3_000_000))
        )
        timeout_us: Annotated[Duration, "how long it waits for an answer"] = msgspec.field(
            name="timeout", default=Duration(10_000_000)
        )
        outbox: Annotated[bool, "keeps a result until the server has it, and posts it again"] = True
        presence: Annotated[bool, "syncs while busy too, taking no new work"] = False
        strict_consent: Annotated[
            bool, "a change of its session cancels what was queued before and stops what runs"
        ] = False

        def __post_init__(self) -> None:
            """Refuse times that would make a relay ask without end at one instant."""
            for key in ("poll", "control", "timeout"):
                if not getattr(self, f"{key}_us"):
                    raise ValueError(f"{key} must be longer than 0s")

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        # Keep to 28 attributes: beyond 29 CPython 3.11 moves them to a dictionary, which costs 2 %.
        self.server, self.engine = place.server, place.engine
        # Plain integers: messages and logs have no form of their own for a Duration.
        self.control_us, self.timeout_us = int(config.control_us), int(config.timeout_us)
        self.given = [
            Consent(meta=meta_of(session), shared=session.shared) for session in place.sessions
        ]
        self.given_shared = tuple([each.meta for each in self.given if each.shared])
        self.handlers: Mapping[type[Any], Handler] = {
            Commands: self.on_commands,
            StartAnswer: self.on_start_answer,
            ControlAnswer: self.on_control_answer,
            Accepted: self.on_accepted,
            FleetStarted: self.on_fleet_started,
            FleetUnknown: self.on_fleet_unknown,
            FleetFinished: self.on_fleet_finished,
            Share: self.on_owner,
            Unshare: self.on_owner,
            Rename: self.on_owner,
            Enable: self.on_owner,
            Disable: self.on_owner,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Read what outlives a boot, look after what a former boot left, and begin to poll."""
        table = context.store.table
        self.consents, self.projects = table(CONSENTS), table(PROJECTS)
        self.journal, self.outbox = table(JOURNAL), table(OUTBOX)
        self.boot = context.new_id()
        self.poll_us = int(self.config.poll_us)  # here, since a subclass may change it as it goes
        self.busy = False
        self.flushing: list[Posting] = []
        self.commands: list[Command] = []
        self.command: Command | None = None
        self.execution_id: str | None = None
        self.cancelled = False
        self.starts = 0
        self.unsettled: Command | None = None
        self.question: Control | None = None
        unsent = self.outbox.scan("order", limit=OUTBOX_LIMIT + CAPACITY)
        self.unsent = len(unsent)
        self.posted = unsent[-1].order if unsent else 0
        self.pass_sync = 0
        first = True
        for consent in self.given:
            first &= self.consents.insert_unique(consent.meta.id, consent)
            self.projects.insert_unique(consent.meta.project, ENABLED)
        if first:
            self.upload(self.given_shared)
        else:
            self.see_shared()
        phase = self.config.phase_us
        chance = context.random("phase")
        delay_us = int(chance.random() * self.poll_us) if phase is None else int(phase.draw(chance))
        context.set_timer("poll", delay_us)
        for attempt in self.journal.scan("open", limit=1):  # commands are serial: there is one
            self.recover(context, attempt)

    def recover(self, context: Context, attempt: Attempt) -> None:
        """Take up a run that a former boot handed to the engine, or meant to."""
        command = attempt.command
        self.busy, self.command = True, command
        self.watch(context, command)
        self.cancelled = attempt.cancelled
        if self.config.strict_consent and not self.consented(command):
            self.stop(context)
        if context.store.writable:
            self.ask_engine(context, command)
        else:  # or question, answer and the next failed write would go round at one time
            context.set_timer("ask", self.timeout_us)

    def ask_engine(self, context: Context, command: Command) -> None:
        """Ask whether the engine has ever started a run."""
        query = FleetQuery(channel=CHANNEL + command.command_id)
        context.trace(command.traceparent)
        context.request(self.engine, query, self.timeout_us)

    def on_timer(self, context: Context, timer: str) -> None:
        """Poll, or ask the engine for what a former boot began."""
        if timer == "poll":
            self.poll(context)
        elif self.command is not None:
            self.ask_engine(context, self.command)

    # A pass: outbox, sync, commands

    def poll(self, context: Context) -> None:
        """Begin a pass unless the previous one is still busy."""
        self.set_poll(context)
        if not self.busy:
            self.begin_pass(context)
        elif self.config.presence:
            context.request(self.server, self.sync_message(capacity=0), self.timeout_us)

    def set_poll(self, context: Context) -> None:
        """Set the next poll: one interval on, or anywhere in the next window."""
        if self.config.jitter == "none":
            context.set_timer("poll", self.poll_us)
            return
        left_us = self.poll_us - context.now_us % self.poll_us  # in this window
        context.set_timer("poll", left_us + int(context.random("poll").random() * self.poll_us))

    def begin_pass(self, context: Context) -> None:
        """Post what is unsent, oldest first, then sync."""
        self.busy = True
        self.flushing = self.outbox.scan("order", limit=OUTBOX_LIMIT)[::-1] if self.unsent else []
        self.flush(context)

    def flush(self, context: Context) -> None:
        """Post the next unsent completion; sync when there is none."""
        if self.flushing:
            posting = self.flushing.pop()
            context.trace(posting.traceparent)
            context.request(self.server, posting.complete, self.timeout_us)
        elif self.unsettled is not None:
            self.ask_start(context, self.unsettled)
        else:
            full = self.unsent >= OUTBOX_LIMIT or not context.store.writable
            idle = self.command is None and not (self.commands or self.unsent or full)
            idle &= self.idle_sync.poll_us == self.poll_us
            sync = self.idle_sync if idle else self.sync_message(capacity=0 if full else CAPACITY)
            if context.traceparent:
                context.trace("")  # it concerns many runs
            self.pass_sync = context.request(self.server, sync, self.timeout_us)

    def sync_message(self, capacity: int) -> Sync:
        """Return this relay's whole view."""
        held = [command.command_id for command in self.commands]
        held += [each.command_id for each in (self.command, self.unsettled) if each is not None]
        unsent = self.outbox.scan("order", limit=OUTBOX_LIMIT + CAPACITY)
        held += [posting.complete.command_id for posting in unsent]
        return Sync(
            boot=self.boot,
            sessions=self.idle_sync.sessions,
            open=tuple(held),
            capacity=capacity,
            poll_us=self.poll_us,
        )

    def on_commands(self, context: Context, envelope: Envelope[Commands]) -> None:
        """Take the commands of this pass one after another."""
        if envelope.reply_to != self.pass_sync:
            return  # the answer to a report of presence
        self.commands.extend(envelope.body.commands)
        self.advance(context)

    def advance(self, context: Context) -> None:
        """Take the next command, or end the pass."""
        if not self.commands:
            self.command = None
            self.busy = False
            return
        command = self.commands.pop(0)
        if self.journal.get(command.command_id) is None:
            self.ask_start(context, command)
        else:
            # The server forgot what it knew, as one that was restored from a backup does.
            context.log("relay.refused", run=command.command_id, reason="attempted before")
            self.command = command
            self.finish(context, command, ATTEMPTED)

    def ask_start(self, context: Context, command: Command) -> None:
        """Ask leave to start, if the owner still consents."""
        self.command, self.unsettled = command, None
        if not self.consented(command):
            self.refuse(context, command)
            return
        self.starts = 1
        self.request_start(context, command)

    def request_start(self, context: Context, command: Command) -> None:
        """Ask the server for leave; the same question may be asked again."""
        if command.traceparent != context.traceparent:
            context.trace(command.traceparent)
        start = Start(command_id=command.command_id, boot=self.boot, delivery=command.delivery)
        context.request(self.server, start, self.timeout_us)

    def on_start_answer(self, context: Context, envelope: Envelope[StartAnswer]) -> None:
        """Hand the run to the engine, if the owner still consents, or go on to the next."""
        command = self.command
        assert command is not None, "a start is asked for a command only"
        if not envelope.body.go:
            self.command = None
            self.advance(context)
        elif not self.consented(command):
            self.refuse(context, command)
        else:
            self.journal.put(command.command_id, Attempt(command=command))
            self.watch(context, command)
            context.request(self.engine, fleet_run(command), self.timeout_us)

    def watch(self, context: Context, command: Command) -> None:
        """Begin to ask the server whether the run should stop."""
        self.cancelled, self.execution_id = False, None
        if command.traceparent != context.traceparent:
            context.trace(command.traceparent)
        self.keep_asking(context, Control(command_id=command.command_id, boot=self.boot))

    def keep_asking(self, context: Context, question: Control) -> None:
        """Ask the server so again and again, until the run has ended."""
        self.question = question
        context.request_every("control", self.control_us, self.server, question, self.timeout_us)

    # Consent

    def consented(self, command: Command) -> bool:
        """Whether the owner lets this very command run now."""
        consent = self.consents.get(command.session)
        if consent is None or consent.meta.slug != command.slug or not self.shares(consent):
            return False
        return not self.config.strict_consent or consent.meta.generation == command.generation

    def shares(self, consent: Consent) -> bool:
        """Whether a session is ticked and its project enabled."""
        project = self.projects.get(consent.meta.project)
        return consent.shared and project is not None and project.enabled

    def refuse(self, context: Context, command: Command) -> None:
        """Complete a run that may not start as cancelled."""
        context.log("relay.refused", run=command.command_id, reason="not shared")
        done = Completion(execution_id=None, status="cancelled", error=NOT_SHARED_TEXT)
        self.finish(context, command, done)

    def see_shared(self) -> None:
        """See which sessions the owner shares."""
        consents = [self.consents.get(session.id) for session in self.place.sessions]
        self.upload(tuple([each.meta for each in consents if each and self.shares(each)]))

    def upload(self, shared: tuple[SessionMeta, ...]) -> None:
        """Keep what a sync uploads, and the message of an idle relay, which is most of them."""
        self.idle_sync = Sync(
            boot=self.boot, sessions=shared, open=(), capacity=CAPACITY, poll_us=self.poll_us
        )

    def on_owner(self, context: Context, envelope: Envelope[Any]) -> None:
        """Write the owner's change, acknowledge it, and sync right after."""
        body = envelope.body
        if isinstance(body, Enable | Disable):
            self.set_project(body.project, Project(isinstance(body, Enable)))
        else:
            self.set_consent(body)
        self.see_shared()
        context.log("relay.owner", change=type(body).__name__)
        context.reply(envelope, Noted())
        if not self.busy:
            self.begin_pass(context)
        elif (
            self.config.strict_consent
            and self.question is not None
            and self.command is not None
            and not self.consented(self.command)
        ):
            self.stop(context)

    def set_project(self, name: str, project: Project) -> None:
        """Write a project and renew its sessions, unless it is so already."""
        if self.projects.get(name) != project:
            self.projects.put(name, project)
            for session in self.place.sessions:
                consent = self.consents.get(session.id)
                if consent is not None and consent.meta.project == name:
                    self.renew(consent)

    def set_consent(self, change: Share | Unshare | Rename) -> None:
        """Write and renew a session, unless it is so already: an owner may say a thing twice."""
        consent = self.consents.get(change.session)
        if consent is None:
            return
        if isinstance(change, Rename):
            meta = _replace(consent.meta, name=change.name, slug=slug_of(change.name))
            changed = _replace(consent, meta=meta)
        else:
            changed = _replace(consent, shared=isinstance(change, Share))
        if changed != consent:
            self.renew(changed)

    def renew(self, consent: Consent) -> None:
        """Write a session under a new generation, so that older commands don't match."""
        meta = _replace(consent.meta, generation=consent.meta.generation + 1)
        self.consents.put(meta.id, _replace(consent, meta=meta))

    # While a run executes

    def on_fleet_started(self, context: Context, envelope: Envelope[FleetStarted]) -> None:
        """Learn the execution's id, and what waits; stop it if that was asked before."""
        body, command = envelope.body, self.executed(envelope.body.channel)
        if command is None or self.question is None:
            return
        self.execution_id = body.execution_id
        context.trace(command.traceparent)
        if self.cancelled:
            context.send(self.engine, FleetCancel(execution_id=self.execution_id))
        if body.waiting != self.question.waiting:
            self.keep_asking(context, _replace(self.question, waiting=body.waiting))

    def executed(self, channel: str) -> Command | None:
        """Return the command that executes if this is its channel, until its end is known."""
        command = None if self.question is None else self.command
        return None if command is None or channel != CHANNEL + command.command_id else command

    def on_fleet_unknown(self, context: Context, envelope: Envelope[FleetUnknown]) -> None:
        """Complete a run that a crash kept from the engine."""
        command = self.executed(envelope.body.channel)
        if command is not None:
            done = Completion(
                execution_id=None, status="interrupted", error="the engine never got this run"
            )
            self.finish(context, command, done)

    def on_control_answer(self, context: Context, envelope: Envelope[ControlAnswer]) -> None:
        """Stop the run once if the server says so; from then on its outcome is cancelled."""
        if envelope.body.stop and self.question is not None:
            self.stop(context)

    def stop(self, context: Context) -> None:
        """Stop the run that executes, once; from now on its outcome is cancelled."""
        if self.cancelled:
            return
        self.cancelled = True
        attempt = None if self.command is None else self.journal.get(self.command.command_id)
        if attempt is not None:
            context.trace(attempt.command.traceparent)
            self.journal.put(attempt.command.command_id, _replace(attempt, cancelled=True))
        context.log("relay.stopping")
        if self.execution_id is not None:
            context.send(self.engine, FleetCancel(execution_id=self.execution_id))

    def on_fleet_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> None:
        """Keep the result, tell the engine that it is kept, and post it."""
        context.reply(envelope, FleetAcknowledged(channel=envelope.body.channel))
        command = self.executed(envelope.body.channel)
        if command is not None:  # else it was told before, and is being posted
            self.finish(context, command, bounded(envelope.body.completion))

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        """Write a completion to the outbox and post it."""
        context.cancel_timer("control")
        if self.cancelled and done.status != "cancelled":
            done = _replace(done, status="cancelled", result=None, result_truncated=False)
        self.question, self.execution_id, self.cancelled = None, None, False
        attempt = self.journal.get(command.command_id)
        if attempt is not None:
            self.journal.put(command.command_id, _replace(attempt, open=None))
        posted, trace = complete(command, self.boot, done), command.traceparent
        if self.config.outbox:
            self.posted += 1
            self.unsent += self.outbox.get(command.command_id) is None
            posting = Posting(complete=posted, order=self.posted, traceparent=trace)
            self.outbox.put(command.command_id, posting)
        if trace != context.traceparent:
            context.trace(trace)
        context.request(self.server, posted, self.timeout_us)

    def on_accepted(self, context: Context, envelope: Envelope[Accepted]) -> None:
        """Forget a completion that the server has, and go on."""
        if self.outbox.get(envelope.body.command_id) is not None:
            self.outbox.delete(envelope.body.command_id)
            self.unsent -= 1
        self.after_post(context)

    def after_post(self, context: Context) -> None:
        """Go on after a post: with the outbox before the sync, with the commands after it."""
        if self.command is None:
            self.flush(context)
        else:
            self.command = None
            self.advance(context)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Go on after a question whose time is up; what it asked may or may not have happened."""
        question = envelope.body.question
        if isinstance(question, Complete):
            self.after_post(context)
        elif isinstance(question, Sync):
            if envelope.reply_to == self.pass_sync:
                self.busy = False
        elif isinstance(question, Start):
            self.start_unanswered(context)
        elif isinstance(question, FleetRun | FleetQuery) and self.execution_id is None:
            context.request(self.engine, FleetQuery(channel=question.channel), self.timeout_us)

    def start_unanswered(self, context: Context) -> None:
        """Ask again; after three times end the pass and begin the next one with this question."""
        command = self.command
        assert command is not None, "a start is asked for a command only"
        if self.starts < START_TRIES:
            self.starts += 1
            self.request_start(context, command)
        else:
            self.unsettled, self.command, self.busy = command, None, False
            self.commands.clear()
