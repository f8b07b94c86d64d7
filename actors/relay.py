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
from typing import Any

import msgspec

from actors.actor import Context, Handler, Place, Unanswered
from actors.consents import Consents
from actors.handover import complete, fleet_run
from actors.journal import ATTEMPTED, JOURNAL, NEVER_GOT, OUTBOX, Attempt, Posting, given_up
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
    FleetDrop,
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
from actors.relay_config import SLOTS_LIMIT, RelayConfig
from actors.running import Running
from actors.text import bounded
from transports.envelope import Envelope

START_TRIES = 3  # an unanswered start is asked this often, then the pass ends
OUTBOX_LIMIT = 50  # results that the server does not take: past that the relay takes no new work
CAPACITY = 100  # commands a sync may bring; the account's relay takes all that are queued

_replace = msgspec.structs.replace


class Relay:
    """See the module's docstring."""

    class Config(RelayConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of a relay."""

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        # Keep to 28 attributes: beyond 29 CPython 3.11 moves them to a dictionary, which costs 2 %.
        self.server, self.engine = place.server, place.engine
        # Plain integers: messages and logs have no form of their own for a Duration.
        self.control_us, self.timeout_us = int(config.control_us), int(config.timeout_us)
        self.slots = config.slots
        self.consents = self.make_consents()
        self.handlers: Mapping[type[Any], Handler] = {
            Commands: self.on_commands,
            StartAnswer: self.on_start_answer,
            ControlAnswer: self.on_control_answer if config.slots == 1 else self.heed,
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

    def make_consents(self) -> Consents:
        """Return what keeps this relay's sessions."""
        return Consents(self.place.sessions, self.config.strict_consent)

    def on_start(self, context: Context) -> None:
        """Read what outlives a boot, look after what a former boot left, and begin to poll."""
        table = context.store.table
        self.journal, self.outbox = table(JOURNAL), table(OUTBOX)
        self.boot = context.new_id()
        self.poll_us = int(self.config.poll_us)  # here, since a subclass may change it as it goes
        self.passing = False  # posting what is unsent, or syncing
        self.flushing: list[Posting] = []
        self.commands: list[Command] = []  # those that wait for a slot
        self.running: dict[str, Running] = {}  # those that have one, by run
        self.unsettled: list[Command] = []  # for the next pass: leave was asked for in vain
        self.stopping = False  # whether one of them may be told to stop again
        self.asked: dict[int, Running] = {}  # whom a question to the server is about, by its id
        unsent = self.outbox.scan("order", limit=OUTBOX_LIMIT + CAPACITY)
        self.unsent = len(unsent)
        self.posted = unsent[-1].order if unsent else 0
        self.pass_sync = 0
        self.upload(self.consents.open(context.store))
        phase = self.config.phase_us
        chance = context.random("phase")
        delay_us = int(chance.random() * self.poll_us) if phase is None else int(phase.draw(chance))
        context.set_timer("poll", delay_us)
        for attempt in self.journal.scan("open", limit=SLOTS_LIMIT):
            self.recover(context, attempt)

    def recover(self, context: Context, attempt: Attempt) -> None:
        """Take up a run that a former boot handed to the engine, or meant to."""
        run = self.running[attempt.command.command_id] = Running(attempt.command)
        self.watch(context, run)
        if attempt.cancelled:
            self.see_cancelled(context, run)
        elif self.config.strict_consent and not self.consented(run.command):
            self.stop(context, run)
        if context.store.writable:
            self.ask_engine(context, run)
        else:  # or question, answer and the next failed write would go round at one time
            context.set_timer("ask", self.timeout_us)

    def ask_engine(self, context: Context, run: Running) -> None:
        """Ask whether the engine has ever started a run."""
        context.trace(run.command.traceparent)
        context.request(self.engine, FleetQuery(channel=run.channel), self.timeout_us)

    def on_timer(self, context: Context, timer: str) -> None:
        """Poll, or look after runs: ask the engine for them, the server whether one should stop."""
        if timer == "poll":
            self.poll(context)
        elif timer == "ask":
            for run in self.running.values():
                if run.question is not None and run.execution_id is None:
                    self.ask_engine(context, run)
        else:
            asked = self.running.get(timer.removeprefix("control:"))
            if asked is not None and asked.question is not None:
                context.set_timer(timer, self.control_us)
                context.trace(asked.command.traceparent)
                question = context.request(self.server, asked.question, self.timeout_us)
                self.asked[question] = asked

    # A pass: outbox, sync, commands

    @property
    def busy(self) -> bool:
        """Whether a pass is under way or every slot taken: then a poll begins no pass."""
        return self.passing or len(self.running) >= self.slots

    def poll(self, context: Context) -> None:
        """Begin a pass unless the previous one is still busy."""
        self.set_poll(context)
        if not self.passing and len(self.running) < self.slots:  # not busy, without a call
            self.begin_pass(context)
        elif self.config.presence:
            context.request(self.server, self.sync_message(capacity=0), self.timeout_us)
        if self.stopping:
            self.look_after_stopping(context)

    def set_poll(self, context: Context) -> None:
        """Set the next poll: one interval on, or anywhere in the next window."""
        if self.config.jitter == "none":
            context.set_timer("poll", self.poll_us)
            return
        left_us = self.poll_us - context.now_us % self.poll_us  # in this window
        context.set_timer("poll", left_us + int(context.random("poll").random() * self.poll_us))

    def begin_pass(self, context: Context) -> None:
        """Post what is unsent, oldest first, then sync."""
        self.passing = True
        self.flushing = []
        if self.unsent:
            unsent = self.outbox.scan("order", limit=OUTBOX_LIMIT)[::-1]
            # A run that has a slot is being posted by itself.
            self.flushing = [one for one in unsent if one.complete.command_id not in self.running]
        self.flush(context)

    def flush(self, context: Context) -> None:
        """Post the next unsent completion; sync when there is none."""
        if self.flushing:
            posting = self.flushing.pop()
            context.trace(posting.traceparent)
            context.request(self.server, posting.complete, self.timeout_us)
        elif self.unsettled and context.store.writable:
            self.commands = self.unsettled + self.commands
            self.unsettled, self.passing = [], False
            self.advance(context)
        else:
            full = self.unsent >= OUTBOX_LIMIT or not context.store.writable
            idle = not (self.running or self.commands or self.unsettled or self.unsent or full)
            idle &= self.idle_sync.poll_us == self.poll_us
            sync = self.idle_sync if idle else self.sync_message(capacity=0 if full else CAPACITY)
            if context.traceparent:
                context.trace("")  # it concerns many runs
            self.pass_sync = context.request(self.server, sync, self.timeout_us)

    def sync_message(self, capacity: int) -> Sync:
        """Return this relay's whole view."""
        held = [command.command_id for command in self.commands]
        held += self.running
        held += [command.command_id for command in self.unsettled]
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
        self.passing = False
        self.advance(context)

    def advance(self, context: Context) -> None:
        """Give the free slots to the commands that wait; none where a result might find no room."""
        while self.commands and len(self.running) < self.slots and context.store.writable:
            command = self.commands.pop(0)
            run = self.running[command.command_id] = Running(command)
            if self.journal.get(command.command_id) is not None:
                # The server forgot what it knew, as one that was restored from a backup does.
                context.log("relay.refused", run=command.command_id, reason="attempted before")
                self.finish(context, run.command, self.end_of(command))
            elif not self.consented(command):
                self.refuse(context, run)
            else:
                self.ask_start(context, run)

    def end_of(self, command: Command) -> Completion:
        """Return what became of a run that was attempted, as far as it is known."""
        return ATTEMPTED

    def ask_start(self, context: Context, run: Running) -> None:
        """Ask the server for leave to start; the same question may be asked again."""
        run.starts += 1
        command = run.command
        if command.traceparent != context.traceparent:
            context.trace(command.traceparent)
        start = Start(command_id=command.command_id, boot=self.boot, delivery=command.delivery)
        self.asked[context.request(self.server, start, self.timeout_us)] = run

    def on_start_answer(self, context: Context, envelope: Envelope[StartAnswer]) -> None:
        """Hand the run to the engine, if the owner still consents, or go on to the next."""
        run = self.asked.pop(envelope.reply_to, None)
        if run is None:
            return  # asked before this relay was rebuilt
        if not envelope.body.go:
            del self.running[run.command.command_id]
            self.advance(context)
        elif not self.consented(run.command):
            self.refuse(context, run)
        else:
            self.begin(context, run)

    def begin(self, context: Context, run: Running) -> None:
        """Write down that a run may have started, and hand it to the engine."""
        self.journal.put(run.command.command_id, Attempt(command=run.command))
        self.watch(context, run)
        run.first = context.request(self.engine, fleet_run(run.command), self.timeout_us)

    def watch(self, context: Context, run: Running) -> None:
        """Begin to ask the server whether the run should stop."""
        command = run.command
        if command.traceparent != context.traceparent:
            context.trace(command.traceparent)
        self.keep_asking(context, run, Control(command_id=command.command_id, boot=self.boot))

    def keep_asking(self, context: Context, run: Running, question: Control) -> None:
        """Ask the server so again and again, until the run has ended."""
        run.question = question
        if self.slots == 1:  # the host repeats it, which is cheap, and does not tell the ids
            run.timer = "control"
            context.request_every(
                run.timer, self.control_us, self.server, question, self.timeout_us
            )
        else:
            run.timer = "control:" + run.command.command_id
            context.set_timer(run.timer, self.control_us)

    # Consent

    def consented(self, command: Command) -> bool:
        """Whether the owner lets this very command run now."""
        return self.consents.allow(command)

    def refuse(self, context: Context, run: Running) -> None:
        """Complete a run that may not start as cancelled."""
        context.log("relay.refused", run=run.command.command_id, reason="not shared")
        done = Completion(execution_id=None, status="cancelled", error=NOT_SHARED_TEXT)
        self.finish(context, run.command, done)

    def upload(self, shared: tuple[SessionMeta, ...]) -> None:
        """Keep what a sync uploads, and the message of an idle relay, which is most of them."""
        self.idle_sync = Sync(
            boot=self.boot, sessions=shared, open=(), capacity=CAPACITY, poll_us=self.poll_us
        )

    def on_owner(self, context: Context, envelope: Envelope[Any]) -> None:
        """Write the owner's change, acknowledge it, and sync right after."""
        self.consents.change(envelope.body)
        self.changed(context, type(envelope.body).__name__)
        context.reply(envelope, Noted())
        self.tell_change(context)

    def changed(self, context: Context, change: str) -> None:
        """See which sessions the owner shares after a change."""
        self.upload(self.consents.shared())
        context.log("relay.owner", change=change)

    def tell_change(self, context: Context) -> None:
        """Sync if that can be; where consent is strict stop what the owner no longer lets run."""
        if not self.busy:
            self.begin_pass(context)
        if self.config.strict_consent:
            for run in self.running.values():
                if run.question is not None and not self.consented(run.command):
                    self.stop(context, run)

    # While a run executes

    def executing(self, channel: str) -> Running | None:
        """Return the run that executes on a channel."""
        run = self.running.get(channel.removeprefix(CHANNEL))
        return None if run is None or run.question is None else run

    def on_fleet_started(self, context: Context, envelope: Envelope[FleetStarted]) -> None:
        """Learn the execution's id, and what waits; stop it if that was asked before."""
        body, run = envelope.body, self.executing(envelope.body.channel)
        if run is None or run.question is None:
            return
        run.execution_id = body.execution_id
        context.trace(run.command.traceparent)
        if run.cancelled:
            context.send(self.engine, FleetCancel(execution_id=run.execution_id))
        if body.waiting != run.question.waiting:
            self.keep_asking(context, run, _replace(run.question, waiting=body.waiting))

    def on_fleet_unknown(self, context: Context, envelope: Envelope[FleetUnknown]) -> None:
        """Complete a run that a crash kept from the engine."""
        run = self.executing(envelope.body.channel)
        if run is not None:
            self.finish(context, run.command, NEVER_GOT)

    def on_control_answer(self, context: Context, envelope: Envelope[ControlAnswer]) -> None:
        """Stop the run once if the server says so; most answers don't, so that is the fast way."""
        if envelope.body.stop:
            self.heed(context, envelope)

    def heed(self, context: Context, envelope: Envelope[ControlAnswer]) -> None:
        """Find the run that an answer is about; once stopped, its outcome is cancelled."""
        asked = self.asked.pop(envelope.reply_to, None)
        if envelope.body.stop:
            for run in [asked] if self.slots > 1 else list(self.running.values()):
                # An answer about the run before may come late: its question is older.
                if run is not None and run.question is not None and envelope.reply_to > run.first:
                    self.stop(context, run)

    def stop(self, context: Context, run: Running) -> None:
        """Stop the run that executes, once; from now on its outcome is cancelled."""
        if run.cancelled:
            self.stop_again(context, run)
            return
        context.trace(run.command.traceparent)
        attempt = self.journal.get(run.command.command_id)
        if attempt is not None:
            self.journal.put(attempt.command.command_id, _replace(attempt, cancelled=True))
        context.log("relay.stopping")
        self.see_cancelled(context, run)
        if run.execution_id is not None:
            context.send(self.engine, FleetCancel(execution_id=run.execution_id))

    def see_cancelled(self, context: Context, run: Running) -> None:
        """Note that a run should stop: whether it has is looked at now and then."""
        run.cancelled, run.stopped_us, run.told_us = True, context.now_us, context.now_us
        self.stopping = True

    def look_after_stopping(self, context: Context) -> None:
        """Stop again what has not stopped; the server may not say so, or not answer."""
        stopping = [one for one in self.running.values() if one.cancelled and one.question]
        self.stopping = bool(stopping)
        for run in stopping:
            self.stop_again(context, run)

    def stop_again(self, context: Context, run: Running) -> None:
        """Tell the engine again to stop a run; after the limit to drop it, and then go on."""
        if context.now_us - run.told_us < self.timeout_us:
            return
        limit_us = self.config.stop_limit_us
        late = bool(limit_us) and context.now_us - run.stopped_us >= limit_us
        run.told_us = context.now_us
        context.trace(run.command.traceparent)
        if late and (run.dropped or run.execution_id is None):
            self.give_up(context, run)
        elif run.execution_id is not None:
            run.dropped = late
            kind = FleetDrop if late else FleetCancel
            context.send(self.engine, kind(execution_id=run.execution_id))

    def give_up(self, context: Context, run: Running) -> None:
        """Go on without an end of a run."""
        context.log("relay.gave_up", run=run.command.command_id)
        done = given_up(run.execution_id)
        run.cancelled = done.status == "cancelled"
        self.finish(context, run.command, done)

    def on_fleet_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> None:
        """Keep the result, tell the engine that it is kept, and post it."""
        body = envelope.body
        context.reply(envelope, FleetAcknowledged(channel=body.channel))
        run = self.executing(body.channel)
        if run is not None:  # else told before: its end is known, and being posted
            self.finish(context, run.command, bounded(body.completion))

    # Results

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        """Write a completion of a run that has a slot to the outbox, and post it."""
        run = self.running[command.command_id]
        if run.question is not None:
            context.cancel_timer(run.timer)
            run.question = None
        if run.cancelled and done.status != "cancelled":
            done = _replace(done, status="cancelled", result=None, result_truncated=False)
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
        run_id = envelope.body.command_id
        if self.outbox.get(run_id) is not None:
            self.outbox.delete(run_id)
            self.unsent -= 1
        self.after_post(context, run_id)

    def after_post(self, context: Context, run_id: str) -> None:
        """Go on after a post: with the outbox before the sync, with the commands after it."""
        if self.running.pop(run_id, None) is not None:
            self.advance(context)
        elif self.passing:
            self.flush(context)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Go on after a question whose time is up; what it asked may or may not have happened."""
        question = envelope.body.question
        if isinstance(question, Complete):
            self.after_post(context, question.command_id)
        elif isinstance(question, Sync):
            if envelope.reply_to == self.pass_sync:
                self.passing = False
        elif isinstance(question, FleetRun | FleetQuery):
            run = self.executing(question.channel)
            if run is not None and run.execution_id is None:
                self.ask_engine(context, run)
        else:
            asked = self.asked.pop(envelope.reply_to, None)
            if asked is not None and isinstance(question, Start):
                self.start_unanswered(context, asked)

    def start_unanswered(self, context: Context, run: Running) -> None:
        """Ask again; after three times end the pass and begin the next one with this question."""
        if run.starts < START_TRIES:
            self.ask_start(context, run)
        else:
            del self.running[run.command.command_id]
            self.unsettled.append(run.command)
            self.commands.clear()
