"""Actors that break one promise each, for the suite that must find it."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import Context
from actors.agent import Agent, Asked, Job
from actors.engine import Engine
from actors.journal import Attempt
from actors.ledger import Run, Ticket
from actors.messages import (
    CHANNEL,
    Accepted,
    CancelGraphRun,
    Command,
    Complete,
    Completion,
    ControlAnswer,
    Failure,
    FleetCancel,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
    GetGraphRun,
    Message,
    Start,
    StartAnswer,
)
from actors.owner import Owner
from actors.relay import Relay
from actors.running import Running
from actors.server import Server
from transports.envelope import Envelope

# Relays


class DeafRelay(Relay):
    """Understands no answer to its control poll."""

    def __init__(self, config: Any, place: Any) -> None:
        super().__init__(config, place)
        self.handlers = {k: v for k, v in self.handlers.items() if k is not ControlAnswer}


class TrustingRelay(Relay):
    """Runs whatever it is given."""

    def consented(self, command: Command) -> bool:
        return True


class HastyRelay(Relay):
    """Checks consent when it asks for leave, and not when it gets it."""

    def on_start_answer(self, context: Context, envelope: Envelope[StartAnswer]) -> None:
        kept, self.consented = self.consented, lambda command: True  # type: ignore[method-assign]  # noqa: ARG005 - for this turn
        super().on_start_answer(context, envelope)
        self.consented = kept  # type: ignore[method-assign]  # as it was


class LateRelay(Relay):
    """Checks consent when it gets leave, and not when it asks: right in the end, but too late."""

    def ask_start(self, context: Context, run: Running) -> None:
        command = run.command
        self.journal.put(command.command_id, Attempt(command=command))
        self.watch(context, run)
        body = FleetRun(
            channel=CHANNEL + command.command_id, session=command.session, slug="", arguments={}
        )
        context.request(self.engine, body, self.timeout_us)


class ForgetfulRelay(Relay):
    """Keeps its results in memory alone."""

    def on_start(self, context: Context) -> None:
        super().on_start(context)
        for posting in self.outbox.scan("order", limit=1_000):
            self.outbox.delete(posting.complete.command_id)
        self.flushing, self.unsent = [], 0


class OptimisticRelay(Relay):
    """Takes a result for accepted once it was posted."""

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        super().finish(context, command, done)
        self.outbox.delete(command.command_id)
        self.unsent = 0


class RelentlessRelay(Relay):
    """Hears of a cancel and goes on."""

    def stop(self, context: Context, run: Running) -> None: ...


class ObliviousRelay(Relay):
    """Doesn't look after what a former boot left."""

    def recover(self, context: Context, attempt: Attempt) -> None: ...


class CountingRelay(Relay):
    """Keeps an attribute that on_start doesn't rebuild."""

    passes = 0

    def begin_pass(self, context: Context) -> None:
        self.passes += 1
        context.log("own.pass", number=self.passes)
        super().begin_pass(context)


class FragileRelay(Relay):
    """Ends its passes for good when a question of a pass stays unanswered."""

    def on_unanswered(self, context: Context, envelope: Envelope[Any]) -> None:
        if isinstance(envelope.body.question, Complete | Start):
            return
        super().on_unanswered(context, envelope)


class RepeatingRelay(Relay):
    """Posts each result twice."""

    def finish(self, context: Context, command: Command, done: Completion) -> None:
        super().finish(context, command, done)
        context.request(self.server, self.outbox_post(command), self.timeout_us)

    def outbox_post(self, command: Command) -> Complete:
        posting = self.outbox.get(command.command_id)
        assert posting is not None
        return posting.complete


class FailingRelay(Relay):
    """Raises in the middle of a pass."""

    def on_commands(self, context: Context, envelope: Envelope[Any]) -> None:
        raise LookupError(envelope.body.commands)


class ThawedRelay(Relay):
    """Has a Config that a replication could change."""

    class Config(Relay.Config, frozen=False, kw_only=True):  # type: ignore[misc]  # the mistake itself
        """Is not frozen, and one key has no default."""

        colour: str

    def __init__(self, config: Any, place: Any) -> None:
        super().__init__(config, place)


# Servers


class KeylessServer(Server):
    """Takes every key for a new one."""

    def replay(
        self, context: Context, envelope: Envelope[Any], ticket: Ticket, meaning: bytes
    ) -> Message:
        shared = self.sessions.get(envelope.body.graph_session_id)
        assert shared is not None
        return self.answer(self.queue(context, envelope.source, envelope.body, shared))


class CarelessServer(Server):
    """Takes a key for the same whatever it is used for."""

    def replay(
        self, context: Context, envelope: Envelope[Any], ticket: Ticket, meaning: bytes
    ) -> Message:
        return super().replay(context, envelope, ticket, ticket.meaning)


class TalkativeServer(Server):
    """Tells "not yours" from "does not exist"."""

    def on_get(self, context: Context, envelope: Envelope[GetGraphRun]) -> Message | None:
        run = self.runs.get(envelope.body.command_id)
        if run is not None and run.agent != envelope.source:
            return Failure(code="not_yours", error="this run is not yours")
        return super().on_get(context, envelope)


class OpenServer(Server):
    """Lets everybody cancel."""

    def own(self, envelope: Envelope[Any]) -> Run | None:
        return self.runs.get(envelope.body.command_id)


class GenerousServer(Server):
    """Gives leave to whoever asks."""

    def on_start_request(self, context: Context, envelope: Envelope[Start]) -> Message:
        run = self.runs.get(envelope.body.command_id)
        if run is not None:
            body = msgspec.structs.replace(envelope.body, boot=run.boot, delivery=run.delivery)
            envelope = msgspec.structs.replace(envelope, body=body)
        return super().on_start_request(context, envelope)


class StingyServer(Server):
    """Gives leave once, and refuses the same question when it is asked again."""

    def on_start_request(self, context: Context, envelope: Envelope[Start]) -> Message:
        run = self.runs.get(envelope.body.command_id)
        if run is not None and run.status == "running":
            return StartAnswer(go=False, reason="running")
        return super().on_start_request(context, envelope)


class FickleServer(Server):
    """Takes the last end for the run's."""

    def on_complete(self, context: Context, envelope: Envelope[Complete]) -> Message:
        run = self.runs.get(envelope.body.command_id)
        if run is not None:
            done = envelope.body.completion
            self.runs.put(
                run.command_id,
                msgspec.structs.replace(run, status=done.status, completion=done, open_on=None),
            )
        return Accepted(command_id=envelope.body.command_id)


class DeafServer(Server):
    """Forgets that a cancel was asked."""

    def on_cancel(self, context: Context, envelope: Envelope[CancelGraphRun]) -> Message:
        run = self.own(envelope)
        return Failure(code="x", error="x") if run is None else self.answer(run)


class AmnesicServer(Server):
    """Keeps its keys in memory alone."""

    def on_start(self, context: Context) -> None:
        super().on_start(context)
        for key in list(self.tickets):  # type: ignore[call-overload]  # the store in memory is a dictionary
            self.tickets.delete(key)


# Engines


class DoubleEngine(Engine):
    """Starts a channel as often as it is told to."""

    def on_run(self, context: Context, envelope: Envelope[FleetRun]) -> FleetStarted | FleetUnknown:
        self.executions.delete(envelope.body.channel)
        return super().on_run(context, envelope)


class EagerEngine(Engine):
    """Starts what it is only asked about."""

    def on_query(
        self, context: Context, envelope: Envelope[FleetQuery]
    ) -> FleetStarted | FleetUnknown:
        body = FleetRun(channel=envelope.body.channel, session="", slug="", arguments={})
        return self.on_run(context, msgspec.structs.replace(envelope, body=body))  # type: ignore[arg-type]  # as if it were told


class UnstoppableEngine(Engine):
    """Runs every Graph to its end."""

    def on_cancel(self, context: Context, envelope: Envelope[FleetCancel]) -> None: ...


class ShyEngine(Engine):
    """Tells an end once."""

    def on_unanswered(self, context: Context, envelope: Envelope[Any]) -> None: ...


class NaggingEngine(Engine):
    """Tells an end once more though it was acknowledged."""

    def on_acknowledged(self, context: Context, envelope: Envelope[Any]) -> None:
        execution = self.executions.get(envelope.body.channel)
        if execution is not None and execution.open:
            self.executions.put(execution.channel, msgspec.structs.replace(execution, open=False))
            self.report(context, execution)
        else:
            super().on_acknowledged(context, envelope)


class MortalEngine(Engine):
    """Forgets with its boot what it ran."""

    def on_start(self, context: Context) -> None:
        super().on_start(context)
        self.executions = {}  # type: ignore[assignment]  # the mistake itself


# Agents and owners


class KeyChangingAgent(Agent):
    """Makes a new key for each call."""

    def ask_run(self, context: Context, asked: Asked, job: Job) -> None:
        super().ask_run(context, asked, msgspec.structs.replace(job, key=context.new_id("key")))


class ImpatientAgent(Agent):
    """Gives up when an answer doesn't come."""

    def on_unanswered(self, context: Context, envelope: Envelope[Any]) -> None: ...


class SilentAgent(Agent):
    """Never says that it has finished."""

    def maybe_done(self, context: Context) -> None: ...


class LazyAgent(Agent):
    """Queues nothing."""

    def queue(self, context: Context) -> None:
        context.done()


class HastyOwner(Owner):
    """Takes each step at its time, whether the one before was noted or not."""

    def on_timer(self, context: Context, timer: str) -> None:
        self.due.append(int(timer))
        number = int(timer)
        self.due.rotate(1)
        assert self.due[0] == number
        self.take(context)


class TimidOwner(Owner):
    """Tells a step once."""

    def on_unanswered(self, context: Context, envelope: Envelope[Any]) -> None: ...
