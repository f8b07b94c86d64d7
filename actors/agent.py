"""The agent: queues runs, polls each ticket, retries what gets no answer, may cancel.

Each run is a *job*. Its key is made and stored before it is sent, so a crash between never makes a
second run. With `retry = "new key"` it does what an agent without idempotency keys does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from actors.actor import Context, Handler, Place, TableSpec, Unanswered
from actors.chance import Durations
from actors.messages import (
    QUEUE_FULL,
    TERMINAL,
    CancelGraphRun,
    Failure,
    GetGraphRun,
    GraphRun,
    Leak,
    RunGraphSession,
)
from actors.polls import PollPlan, parse_polls
from transports.envelope import Envelope
from transports.traceparent import made
from transports.units import Duration

_replace = msgspec.structs.replace


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run that this agent wants, as far as it must survive a crash."""

    number: int
    session: str
    key: str
    command_id: str | None = None
    ended: bool = False
    traceparent: str = ""


JOBS = TableSpec("jobs", Job)


class Asked(msgspec.Struct, gc=False):
    """What this boot knows of a job."""

    number: int
    timer: str  # the name of its poll timer, under which it is found
    delays: Iterator[int]  # before its polls, as its plan has them; behind them the final one
    traceparent: str
    question: GetGraphRun | None = None


class Agent:
    """See the module's docstring."""

    class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
        """What a scenario may set of an agent.

        `runs` are queued, the first `start` after the beginning, the others `every` so often; 0
        queues all at once, and `submit = "in turn"` each after the ticket of the one before.
        `cancel` asks to cancel so long after the ticket. `wait` lets the server hold a poll back.
        `leak_to` is another agent that learns every ticket. `trace` makes a traceparent a run.
        """

        runs: Annotated[int, msgspec.Meta(ge=0, le=100_000), "how many runs it queues"] = 1
        start_us: Annotated[Durations, "when it queues the first run"] = msgspec.field(
            name="start", default=Durations.parse("0s")
        )
        every_us: Annotated[Durations, "the time between two runs; 0s queues all at once"] = (
            msgspec.field(name="every", default=Durations.parse("0s"))
        )
        submit: Annotated[
            Literal["at once", "in turn"],
            "whether to queue the next run only after the last one's ticket",
        ] = "at once"
        session: Annotated[str | None, "the session to run; without it the runs take turns"] = None
        arguments: Annotated[dict[str, Any], "what the Graph is given"] = {}
        poll: Annotated[PollPlan, "when it asks for a result"] = parse_polls(
            "wait 20s then every 10s"
        )
        wait_us: Annotated[Duration, "how long the server may hold a poll back for a change"] = (
            msgspec.field(name="wait", default=Duration(0))
        )
        retry: Annotated[
            Literal["same key", "new key"],
            "the key of a call that is made again for want of an answer",
        ] = "same key"
        timeout_us: Annotated[Duration, "how long it waits for an answer"] = msgspec.field(
            name="timeout", default=Duration(10_000_000)
        )
        cancel_us: Annotated[
            Durations | None, "asks to cancel so long after the ticket; without it never"
        ] = msgspec.field(name="cancel", default=None)
        leak_to: Annotated[str | None, "another agent, who is told every ticket"] = None
        trace: Annotated[bool, "makes a traceparent for each run, which goes with it"] = False

        def __post_init__(self) -> None:
            """Refuse a time that would make an agent ask without end at one instant."""
            if not self.timeout_us:
                raise ValueError("timeout must be longer than 0s")

    def __init__(self, config: Config, place: Place) -> None:
        self.config = config
        self.place = place
        self.server = place.server
        self.timeout_us = int(config.timeout_us)
        self.plan = config.poll
        self.hinted, self.final_us = config.poll.hinted, config.poll.final_us
        self.sessions = [one.id for one in place.sessions if config.session in (None, one.name)]
        self.handlers: Mapping[type[Any], Handler] = {
            GraphRun: self.on_answer,
            Failure: self.on_failure,
            Unanswered: self.on_unanswered,
            Leak: self.on_leak,
        }

    def on_start(self, context: Context) -> None:
        """Take up the jobs that a former boot began, and queue the others."""
        self.jobs = context.store.table(JOBS)
        self.polled: dict[int, Asked] = {}  # the job of each open poll
        self.asked: dict[int, Asked] = {}  # and of each other open question
        self.active: dict[str, Asked] = {}  # jobs that have begun and not ended, by poll timer
        self.begun = 0
        self.queueing = True
        for number in range(self.config.runs):
            job = self.jobs.get(str(number))
            if job is None:
                break
            self.begun += 1
            self.resume(context, job)
        if self.begun < self.config.runs:
            delay_us = self.draw(context, "start", self.config.start_us)
            if delay_us:
                context.set_timer("queue", delay_us)
            else:
                self.queue(context)
        else:
            self.queueing = False
            self.maybe_done(context)

    def draw(self, context: Context, purpose: str, chance: Durations) -> int:
        """Draw a time; a constant takes nothing from its stream."""
        constant = chance.constant
        return int(chance.draw(context.random(purpose)) if constant is None else constant)

    def resume(self, context: Context, job: Job) -> None:
        """Go on with a job of a former boot: ask for its ticket again, or for its state."""
        if job.ended:
            return
        asked = self.take_up(job)
        if job.command_id is None and not context.store.writable:
            # Or the question, its ticket and the next failed write would go round at one time.
            context.set_timer(f"again:{job.number}", self.timeout_us)
        elif job.command_id is None:
            self.ask_run(context, asked, job)
        else:
            self.follow(context, asked, job.command_id)

    def take_up(self, job: Job) -> Asked:
        """Begin to look after a job in this boot."""
        timer = f"poll:{job.number}"
        asked = Asked(job.number, timer, iter(self.plan.delays_us), job.traceparent)
        self.active[timer] = asked
        return asked

    # Queueing

    def queue(self, context: Context) -> None:
        """Begin the jobs that are due."""
        while self.begun < self.config.runs:
            self.begin(context)
            if self.config.submit == "in turn":
                break
            if self.begun < self.config.runs:
                delay_us = self.draw(context, "every", self.config.every_us)
                if delay_us:
                    context.set_timer("queue", delay_us)
                    return
        self.queueing = self.begun < self.config.runs

    def begin(self, context: Context) -> None:
        """Make a job, store it with its key, and ask for a ticket."""
        session = self.sessions[self.begun % len(self.sessions)]
        traceparent = made(context.random("trace").random) if self.config.trace else ""
        key = context.new_id("key")
        job = Job(number=self.begun, session=session, key=key, traceparent=traceparent)
        self.jobs.put(str(job.number), job)
        self.begun += 1
        asked = self.take_up(job)
        self.ask_run(context, asked, job)

    def ask_run(self, context: Context, asked: Asked, job: Job) -> None:
        """Ask for the job's ticket under its key."""
        body = RunGraphSession(
            graph_session_id=job.session,
            idempotency_key=job.key,
            arguments=self.config.arguments,
        )
        if job.traceparent != context.traceparent:
            context.trace(job.traceparent)
        self.asked[context.request(self.server, body, self.timeout_us)] = asked

    # Answers

    def on_answer(self, context: Context, envelope: Envelope[GraphRun]) -> None:
        """Take the answer to a poll, as most are: poll again, unless the run has ended."""
        asked = self.polled.pop(envelope.reply_to, None)
        if asked is None:
            self.on_other_answer(context, envelope)
            return
        body = envelope.body
        if body.status in TERMINAL:
            self.end(context, asked)
            return
        delay_us = next(asked.delays, self.final_us)
        if self.hinted and body.poll_after_us is not None:
            delay_us = body.poll_after_us
        assert delay_us is not None, "who never polls gets no answer to a poll"
        context.set_timer(asked.timer, delay_us)

    def on_other_answer(self, context: Context, envelope: Envelope[GraphRun]) -> None:
        """Take a ticket, or what the server says to a cancel."""
        asked = self.asked.pop(envelope.reply_to, None)
        if asked is None:
            return  # about a ticket that leaked to this agent
        body = envelope.body
        if asked.question is None:
            self.on_ticket(context, asked, body)
        elif body.status in TERMINAL or not self.plan.delays_us:
            self.end(context, asked)

    def on_ticket(self, context: Context, asked: Asked, body: GraphRun) -> None:
        """Keep the ticket, and begin to poll it."""
        job = self.jobs.get(str(asked.number))
        assert job is not None, "a job is stored before its ticket is asked for"
        self.jobs.put(str(asked.number), _replace(job, command_id=body.command_id))
        if self.config.leak_to is not None:
            context.send(self.config.leak_to, Leak(command_id=body.command_id))
        self.follow(context, asked, body.command_id, body.poll_after_us)
        if self.config.submit == "in turn":
            self.queue(context)

    def follow(
        self, context: Context, asked: Asked, command_id: str, hint_us: int | None = None
    ) -> None:
        """Set the first poll, and the time to cancel."""
        asked.question = GetGraphRun(command_id=command_id, wait_us=int(self.config.wait_us))
        delay_us = next(asked.delays, self.final_us)
        if self.hinted and hint_us is not None:
            delay_us = hint_us
        if delay_us is not None:
            context.set_timer(asked.timer, delay_us)
        if self.config.cancel_us is not None:
            cancel_us = self.draw(context, "cancel", self.config.cancel_us)
            context.set_timer(f"cancel:{asked.number}", cancel_us)
        elif delay_us is None:
            self.end(context, asked)

    def on_timer(self, context: Context, timer: str) -> None:
        """Poll, queue, cancel, or ask for a ticket again."""
        asked = self.active.get(timer)
        if asked is not None:
            if asked.traceparent:
                context.trace(asked.traceparent)
            self.polled[context.request(self.server, asked.question, self.timeout_us)] = asked
        elif timer == "queue":
            self.queue(context)
        else:
            what, number = timer.split(":")
            asked = self.active.get(f"poll:{number}")
            if asked is not None:
                self.later(context, what, asked)

    def later(self, context: Context, what: str, asked: Asked) -> None:
        """Ask for a job's ticket again, or ask to cancel its run."""
        job = self.jobs.get(str(asked.number))
        assert job is not None, "a job is stored before its ticket is asked for"
        if what == "again":
            self.ask_run(context, asked, job)
        elif asked.question is not None:
            question = CancelGraphRun(command_id=asked.question.command_id)
            self.ask_cancel(context, asked, question)

    def ask_cancel(self, context: Context, asked: Asked, question: CancelGraphRun) -> None:
        """Ask the server to cancel the job's run."""
        context.trace(asked.traceparent)
        self.asked[context.request(self.server, question, self.timeout_us)] = asked

    def on_failure(self, context: Context, envelope: Envelope[Failure]) -> None:
        """Give the job up, or queue it later where the server says that its queue is full."""
        asked = self.taken(envelope.reply_to)
        if asked is None:
            return
        context.log("agent.refused", code=envelope.body.code)
        if envelope.body.code == QUEUE_FULL:
            context.set_timer(f"again:{asked.number}", self.timeout_us)
            return
        self.end(context, asked)
        if asked.question is None and self.config.submit == "in turn":
            self.queue(context)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Ask again: for a ticket under the same key or a new one, for a state as it was."""
        asked = self.taken(envelope.reply_to)
        if asked is None or asked.timer not in self.active:
            return  # nobody's question, or that of a job which has ended meanwhile
        question = envelope.body.question
        if isinstance(question, RunGraphSession):
            job = self.jobs.get(str(asked.number))
            assert job is not None, "a job is stored before its ticket is asked for"
            if self.config.retry == "new key":
                job = _replace(job, key=context.new_id("key"))
                self.jobs.put(str(job.number), job)
            self.ask_run(context, asked, job)
        elif isinstance(question, CancelGraphRun):
            self.ask_cancel(context, asked, question)
        else:
            next(asked.delays, None)  # the next poll is a number further
            context.trace(asked.traceparent)
            self.polled[context.request(self.server, question, self.timeout_us)] = asked

    def taken(self, number: int) -> Asked | None:
        """Return the job of a question that is open no more."""
        return self.polled.pop(number, None) or self.asked.pop(number, None)

    def on_leak(self, context: Context, envelope: Envelope[Leak]) -> None:
        """Try a ticket that is another agent's, and one that nobody has."""
        for command_id in (envelope.body.command_id, context.new_id()):
            context.request(self.server, GetGraphRun(command_id=command_id), self.timeout_us)
            context.request(self.server, CancelGraphRun(command_id=command_id), self.timeout_us)

    # The end

    def end(self, context: Context, asked: Asked) -> None:
        """Forget a job that needs nothing more."""
        if self.active.pop(asked.timer, None) is None:
            return
        context.cancel_timer(asked.timer)
        if self.config.cancel_us is not None:
            context.cancel_timer(f"cancel:{asked.number}")
        job = self.jobs.get(str(asked.number))
        if job is not None:
            self.jobs.put(str(asked.number), _replace(job, ended=True))
        self.maybe_done(context)

    def maybe_done(self, context: Context) -> None:
        """Say so when every job has ended."""
        if not self.active and not self.queueing:
            context.done()
