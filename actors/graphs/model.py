"""A model: the actor that answers a fleet engine's agents. What every one of them does alike.

A model plans each answer when it is asked: what it will say, what that uses, how long it takes. An
agent that is stopped before has used its share of that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from actors.actor import Context, Handler, Place
from actors.chance import Counts, Durations, Numbers
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from transports.envelope import Envelope

BUILT_IN_MODELS = ("synthetic", "scripted")


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set of a model, in the table of the engine that asks it."""

    model: Annotated[
        str, 'who answers: "synthetic", "scripted", or a class of your own, as my_model.py:MyModel'
    ] = "synthetic"
    answers: Annotated[str | None, "the file of recorded answers, for a scripted model"] = None
    latency_us: Annotated[Durations, "how long an agent works"] = msgspec.field(
        name="latency", default=Durations.parse("lognormal(median=8s, sigma=0.6, min=1s)")
    )
    tokens: Annotated[Counts, "the tokens that an agent uses"] = Counts.parse(1200)
    tool_calls: Annotated[
        Counts, "how many tool calls an agent that has tools makes, one after the other"
    ] = Counts.parse(0)
    cost: Annotated[Numbers, "the money that an agent costs"] = Numbers.parse(0.01)
    failure: Annotated[Numbers, "the probability that an agent fails, 0 to 1"] = Numbers.parse(0)
    malformed: Annotated[
        Numbers, "the probability that an answer does not fit its schema, 0 to 1"
    ] = Numbers.parse(0)

    def __post_init__(self) -> None:
        """Refuse what is no probability, and recorded answers without a file or unused."""
        for name in ("failure", "malformed"):
            low, high = getattr(self, name).support
            if low < 0 or high > 1:
                raise ValueError(f"{name} must be a probability, 0 to 1")
        if self.model not in BUILT_IN_MODELS and ":" not in self.model:
            raise ValueError('model must be "synthetic", "scripted", or "my_model.py:MyModel"')
        if (self.model == "scripted") != (self.answers is not None):
            raise ValueError('model = "scripted" and answers = "FILE" go together')


class Planned(msgspec.Struct, frozen=True, gc=False):
    """What a model will answer, and after how long."""

    answer: AgentAnswer
    latency_us: int


class _Working(msgspec.Struct, gc=False):
    """An agent at work: who asked for it, since when, and what it will come to."""

    question: Envelope[AgentAsk]
    since_us: int
    planned: Planned


class Model(ABC):
    """See the module's docstring. A subclass plans."""

    def __init__(self, config: ModelConfig, place: Place) -> None:
        self.config = config
        self.place = place
        self.handlers: Mapping[type[Any], Handler] = {
            AgentAsk: self.on_ask,
            AgentCancel: self.on_cancel,
        }

    @abstractmethod
    def plan(self, context: Context, ask: AgentAsk) -> Planned:
        """Return what the model will answer."""

    def on_start(self, context: Context) -> None:
        """Begin a boot: what a former one worked on is lost, and never answered."""
        self.working: dict[str, _Working] = {}

    def on_ask(self, context: Context, envelope: Envelope[AgentAsk]) -> None:
        """Begin to work on an answer."""
        key = f"{envelope.body.run}:{envelope.body.agent}"
        planned = self.plan(context, envelope.body)
        self.working[key] = _Working(envelope, context.now_us, planned)
        context.set_timer(key, planned.latency_us)

    def on_timer(self, context: Context, timer: str) -> None:
        """Answer."""
        working = self.working.pop(timer)
        context.reply(working.question, working.planned.answer)

    def on_cancel(self, context: Context, envelope: Envelope[AgentCancel]) -> AgentAnswer:
        """Stop an agent, and say what it has used so far."""
        run, agent = envelope.body.run, envelope.body.agent
        key = f"{run}:{agent}"
        working = self.working.pop(key, None)
        if working is None:
            return AgentAnswer(run=run, agent=agent, outcome="cancelled")
        context.cancel_timer(key)
        planned = working.planned
        share = min(1.0, (context.now_us - working.since_us) / max(1, planned.latency_us))
        answer = AgentAnswer(
            run=run,
            agent=agent,
            outcome="cancelled",
            tokens=round(planned.answer.tokens * share),
            cost=planned.answer.cost * share,
        )
        context.reply(working.question, answer)  # so that nobody waits for it
        return answer


def drawn(context: Context, purpose: str, chance: Any) -> Any:
    """Return a value of a distribution from its own stream, which a constant leaves alone."""
    constant = chance.constant
    return chance.draw(context.random(purpose)) if constant is None else constant
