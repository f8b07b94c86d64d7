"""The fleet engine: runs Graphs on the owner's machine. Here the Graphs are synthetic.

A synthetic Graph takes a time, uses tokens and money, gives a result or fails, each drawn from its
own stream. A channel is started once for ever; its end is repeated until the relay has it on disk.
What was under way when the engine died is reported as interrupted at its next start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.actor import Context, Handler, Place, TableSpec, Unanswered
from actors.chance import Counts, Durations, Numbers
from actors.messages import (
    CHANNEL,
    Completion,
    FleetAcknowledged,
    FleetCancel,
    FleetDrop,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    FleetUnknown,
)
from transports.envelope import Envelope
from transports.units import Duration

DROPPED_TEXT = "the Graph did not stop when it was told to, and was dropped"
RECOVER_LIMIT = 1_000  # attempts that a new boot looks after; a desktop runs a few at a time
Alphabet = Literal["ascii", "japanese", "emoji", "quotes", "control"]
LETTERS: Mapping[str, str] = {
    "ascii": "x",
    "japanese": "あ",
    "emoji": "🙂",
    "quotes": '"',
    "control": "\x01",
}

_replace = msgspec.structs.replace


class Execution(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Graph that was started, for ever; `open` is None once the relay has its end.

    Without an execution id it is a tombstone: the relay was told that the channel is unknown, and
    has given the run up, so a start that comes behind its question must not begin.
    """

    channel: str
    execution_id: str | None
    relay: str
    open: bool | None = True
    completion: Completion | None = None
    traceparent: str = ""


EXECUTIONS = TableSpec("executions", Execution, open=("open",))


class Engine:
    """See the module's docstring."""

    class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of an engine. `stop` is how long a stopped Graph takes to end."""

        duration_us: Annotated[Durations, "how long a Graph runs"] = msgspec.field(
            name="duration", default=Durations.parse("lognormal(median=60s, sigma=0.8, min=5s)")
        )
        stop_us: Annotated[Duration, "how long a Graph takes to end once it is stopped"] = (
            msgspec.field(name="stop", default=Duration(500_000))
        )
        tokens: Annotated[Counts, "the tokens that a Graph uses"] = Counts.parse(1200)
        cost: Annotated[Numbers, "the money that a Graph uses"] = Numbers.parse(0.01)
        failure: Annotated[Numbers, "the probability that a Graph fails, 0 to 1"] = Numbers.parse(0)
        result_chars: Annotated[Counts, "the characters of a Graph's result"] = Counts.parse(2)
        alphabet: Annotated[Alphabet, "what a result is made of"] = "ascii"
        report_us: Annotated[Duration, "how often it tells a silent relay of a Graph's end"] = (
            msgspec.field(name="report", default=Duration(10_000_000))
        )

        def __post_init__(self) -> None:
            """Refuse what is no probability, and reports without end at one instant."""
            if self.failure.support[0] < 0 or self.failure.support[1] > 1:
                raise ValueError("failure must be a probability, 0 to 1")
            if not self.report_us:
                raise ValueError("report must be longer than 0s")

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        self.usual = self.constant_outcome()
        self.handlers: Mapping[type[Any], Handler] = {
            FleetRun: self.on_run,
            FleetQuery: self.on_query,
            FleetCancel: self.on_cancel,
            FleetDrop: self.on_drop,
            FleetAcknowledged: self.on_acknowledged,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Report what a former boot left: its results again, its unfinished work as interrupted."""
        self.executions = context.store.table(EXECUTIONS)
        self.running: dict[str, Execution] = {}  # by execution id
        for execution in self.executions.scan("open", limit=RECOVER_LIMIT):
            if execution.completion is None:
                self.recover(context, execution)
            elif context.store.writable:
                self.report(context, execution)
            else:  # or the report, its answer and the next failed write would go round at one time
                context.set_timer("report:" + execution.channel, self.config.report_us)

    def recover(self, context: Context, execution: Execution) -> None:
        """Report an execution that a former boot left unfinished."""
        self.finish(context, execution, self.interrupted(execution))

    def interrupted(self, execution: Execution) -> Completion:
        """Return the end of an execution that a former boot left unfinished."""
        return Completion(
            execution_id=execution.execution_id,
            status="interrupted",
            error="the engine stopped while the Graph ran",
        )

    def on_run(self, context: Context, envelope: Envelope[FleetRun]) -> FleetStarted | FleetUnknown:
        """Start the channel's Graph, or say under which id it was started before."""
        channel = envelope.body.channel
        known = self.executions.get(channel)
        if known is not None:
            self.reopen(context, known)
            return self.standing(known)
        execution_id = context.new_id()
        known = Execution(
            channel=channel,
            execution_id=execution_id,
            relay=envelope.source,
            traceparent=envelope.traceparent,
        )
        self.executions.put(channel, known)
        self.running[execution_id] = known
        context.log("engine.started", run=run_of(channel), execution=execution_id)
        self.begin(context, known, envelope.body)
        return FleetStarted(channel=channel, execution_id=execution_id)

    def begin(self, context: Context, execution: Execution, run: FleetRun) -> None:
        """Let an execution's Graph run."""
        duration_us = self.draw(context, "duration", self.config.duration_us)
        context.set_timer(f"end:{execution.execution_id}", duration_us)

    def standing(self, execution: Execution) -> FleetStarted | FleetUnknown:
        """Return how a channel stands."""
        if execution.execution_id is None:
            return FleetUnknown(channel=execution.channel)
        return FleetStarted(channel=execution.channel, execution_id=execution.execution_id)

    def draw(self, context: Context, purpose: str, chance: Any) -> Any:
        """Draw a value; a constant takes nothing from its stream."""
        constant = chance.constant
        return chance.draw(context.random(purpose)) if constant is None else constant

    def on_query(
        self, context: Context, envelope: Envelope[FleetQuery]
    ) -> FleetStarted | FleetUnknown:
        """Say whether the channel was ever started; start nothing, from then on for ever."""
        channel = envelope.body.channel
        known = self.executions.get(channel)
        if known is None:
            known = Execution(channel=channel, execution_id=None, relay=envelope.source, open=None)
            self.executions.put(channel, known)
        self.reopen(context, known)
        return self.standing(known)

    def reopen(self, context: Context, execution: Execution) -> None:
        """Report an acknowledged end again: who asks has lost it, as a restored store has."""
        if execution.completion is not None and not execution.open:
            execution = _replace(execution, open=True)
            self.executions.put(execution.channel, execution)
            self.report(context, execution)

    def on_cancel(self, context: Context, envelope: Envelope[FleetCancel]) -> None:
        """Begin to stop an execution; it may still end by itself before that is done."""
        execution = self.running.get(envelope.body.execution_id)
        if execution is not None:
            context.log("engine.stopping", run=run_of(execution.channel))
            self.stop(context, envelope.body.execution_id)

    def stop(self, context: Context, execution_id: str) -> None:
        """Let an execution's Graph end soon."""
        context.set_timer("stop:" + execution_id, self.config.stop_us)

    def on_drop(self, context: Context, envelope: Envelope[FleetDrop]) -> None:
        """End an execution that does not stop."""
        execution = self.running.get(envelope.body.execution_id)
        if execution is not None:
            context.log("engine.stopping", run=run_of(execution.channel))
            self.drop(context, envelope.body.execution_id)

    def drop(self, context: Context, execution_id: str) -> None:
        """End an execution's Graph now."""
        context.cancel_timer("end:" + execution_id)
        context.cancel_timer("stop:" + execution_id)
        done = Completion(execution_id=execution_id, status="cancelled", error=DROPPED_TEXT)
        self.finish(context, self.running.pop(execution_id), done)

    def on_timer(self, context: Context, timer: str) -> None:
        """End an execution, by itself or because it was stopped; or report an end again."""
        what, execution_id = timer.split(":", 1)
        if what == "report":
            self.report_again(context, execution_id)
            return
        execution = self.running.pop(execution_id)
        if what == "stop":
            context.cancel_timer("end:" + execution_id)
            done = Completion(execution_id=execution_id, status="cancelled")
        else:
            context.cancel_timer("stop:" + execution_id)
            done = self.outcome(context, execution_id)
        self.finish(context, execution, done)

    def outcome(self, context: Context, execution_id: str) -> Completion:
        """Draw what a Graph that ended by itself gives."""
        if self.usual is not None:
            return _replace(self.usual, execution_id=execution_id)
        config = self.config
        tokens = self.draw(context, "tokens", config.tokens)
        cost = self.draw(context, "cost", config.cost)
        failure = self.draw(context, "failure", config.failure)
        if failure and context.random("fails").random() < failure:
            return Completion(
                execution_id=execution_id,
                status="failed",
                total_tokens=tokens,
                reported_cost=cost,
                error="the Graph failed",
            )
        chars = self.draw(context, "result_chars", config.result_chars)
        return Completion(
            execution_id=execution_id,
            status="completed",
            result=LETTERS[config.alphabet] * chars,
            total_tokens=tokens,
            reported_cost=cost,
        )

    def constant_outcome(self) -> Completion | None:
        """Return what every Graph gives that ends by itself, None if any of it is drawn."""
        config = self.config
        tokens, cost = config.tokens.constant, config.cost.constant
        chars = config.result_chars.constant
        if config.failure.constant != 0 or tokens is None or cost is None or chars is None:
            return None
        return Completion(
            execution_id=None,
            status="completed",
            result=LETTERS[config.alphabet] * int(chars),
            total_tokens=int(tokens),
            reported_cost=cost,
        )

    def finish(self, context: Context, execution: Execution, done: Completion) -> None:
        """Keep an execution's end and report it."""
        execution = _replace(execution, completion=done)
        self.executions.put(execution.channel, execution)
        context.log(
            "engine.finished",
            run=run_of(execution.channel),
            status=done.status,
            tokens=done.total_tokens,
            cost=done.reported_cost,
        )
        self.report(context, execution)

    def report(self, context: Context, execution: Execution) -> None:
        """Tell the relay, and again until it has it on disk."""
        assert execution.completion is not None, "only an end is reported"
        body = FleetFinished(channel=execution.channel, completion=execution.completion)
        if execution.traceparent != context.traceparent:
            context.trace(execution.traceparent)
        context.request(execution.relay, body, self.config.report_us)

    def on_acknowledged(self, context: Context, envelope: Envelope[FleetAcknowledged]) -> None:
        """Report no more."""
        execution = self.executions.get(envelope.body.channel)
        if execution is not None and execution.open:
            self.executions.put(execution.channel, _replace(execution, open=None))

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Report again."""
        self.report_again(context, envelope.body.question.channel)

    def report_again(self, context: Context, channel: str) -> None:
        """Report an end that the relay has not acknowledged."""
        execution = self.executions.get(channel)
        if execution is not None and execution.open:
            self.report(context, execution)


def run_of(channel: str) -> str:
    """Return the run that a channel stands for."""
    return channel.removeprefix(CHANNEL)
