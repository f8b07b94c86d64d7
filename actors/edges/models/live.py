"""The live model: the actor that has a backend answer a fleet engine's agents.

Its decisions are those of every model; the waiting is done by a task an agent, on the trio host.
A task that ends tells the actor so by a message of its own, so all that is said is said in a turn.
An agent that is stopped has used what its backend had counted until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import trio

from actors.actor import Context, Handler
from actors.edges.models.backend import Backend
from actors.edges.models.failures import BackendError
from actors.edges.models.recording import Recording
from actors.edges.models.tool_calls import Called
from actors.edges.models.usage import Prices, Spent
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from transports.envelope import Envelope

STOPPED = "the agent was stopped"
GRACE_S = 10.0  # after an agent's time: by then its engine has asked to stop it, or is gone


class _Work(msgspec.Struct, gc=False):
    """An agent at work: who asked, what it has used, what stops it, since when."""

    question: Envelope[AgentAsk]
    spent: Spent
    scope: trio.CancelScope
    since_s: float


class LiveModel:
    """See the module's docstring.

    Its host calls `open` once its nursery is there, and `close` at the end.
    """

    def __init__(
        self, backend: Backend, prices: Prices | None = None, recording: Recording | None = None
    ) -> None:
        self.backend = backend
        self.prices = prices or Prices()
        self.recording = recording
        self.working: dict[tuple[str, int], _Work] = {}
        self.handlers: Mapping[type[Any], Handler] = {
            AgentAsk: self.on_ask,
            AgentCancel: self.on_cancel,
            AgentAnswer: self.on_answered,
        }

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None]) -> None:
        """Get the nursery for the agents' tasks, and what puts a message into the own mailbox."""
        self.nursery = nursery
        self.tell_myself = tell_myself

    async def close(self) -> None:
        """Give back what the backend holds; what agents still at work have used is recorded."""
        for work in self.working.values():
            self.stop(work)
        self.working = {}
        await self.backend.close()

    def on_start(self, context: Context) -> None:
        """Begin a boot."""
        self.working = {}

    def on_timer(self, context: Context, timer: str) -> None:
        """Nothing: it sets none."""

    def on_ask(self, context: Context, envelope: Envelope[AgentAsk]) -> None:
        """Begin to work on an answer."""
        ask = envelope.body
        scope = trio.CancelScope(deadline=trio.current_time() + ask.timeout_us / 1e6 + GRACE_S)
        work = _Work(envelope, Spent(), scope, trio.current_time())
        self.working[ask.run, ask.agent] = work
        self.nursery.start_soon(self.work, work)

    async def work(self, work: _Work) -> None:
        """Wait for an answer, and tell what came of it; of one that was stopped nothing."""
        ask = work.question.body
        how = partial(AgentAnswer, run=ask.run, agent=ask.agent)
        answer = None
        with work.scope:
            try:
                value = await self.backend.answer(ask, work.spent)
                if isinstance(value, Called):
                    answer = how(outcome="tools", value=value.text, calls=value.calls)
                else:
                    answer = how(outcome="ok", value=value)
            except BackendError as error:
                answer = how(outcome="failed", error=str(error), retryable=error.retryable)
        if self.working.get((ask.run, ask.agent)) is work:
            answer = answer or how(outcome="failed", error="timeout: the agent's time is up")
            self.tell_myself(self.counted(answer, work.spent))

    def counted(self, answer: AgentAnswer, spent: Spent) -> AgentAnswer:
        """Return an answer with what was used for it."""
        return msgspec.structs.replace(answer, tokens=spent.tokens, cost=spent.cost(self.prices))

    def on_answered(self, context: Context, envelope: Envelope[AgentAnswer]) -> None:
        """Answer, unless the agent was stopped meanwhile."""
        answer = envelope.body
        work = self.working.pop((answer.run, answer.agent), None)
        if work is not None and envelope.source == context.name:
            self.record(work, answer)
            context.reply(work.question, answer)

    def on_cancel(self, context: Context, envelope: Envelope[AgentCancel]) -> AgentAnswer:
        """Stop an agent, and say what it has used."""
        run, agent = envelope.body.run, envelope.body.agent
        work = self.working.pop((run, agent), None)
        if work is None:
            return AgentAnswer(run=run, agent=agent, outcome="cancelled")
        answer = self.stop(work)
        context.reply(work.question, answer)  # so that nobody waits for it
        return answer

    def stop(self, work: _Work) -> AgentAnswer:
        """Stop a task, and return what its agent has used."""
        work.scope.cancel()
        ask = work.question.body
        answer = AgentAnswer(run=ask.run, agent=ask.agent, outcome="cancelled", error=STOPPED)
        answer = self.counted(answer, work.spent)
        self.record(work, answer)
        return answer

    def record(self, work: _Work, answer: AgentAnswer) -> None:
        """Write an answer down, if that is wanted."""
        if self.recording is not None:
            took_s = trio.current_time() - work.since_s
            self.recording.write(work.question.body, answer, took_s)
