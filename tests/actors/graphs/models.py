"""Models of the tests: one whose answers are planned, and one that says nothing."""

from __future__ import annotations

from typing import Any

from actors.actor import Place
from actors.graphs.messages import AgentAnswer, AgentAsk, AgentCancel
from actors.graphs.model import Model, Planned
from tests.actors.graphs.graph_world import config_of
from tests.actors.harness import S
from transports.envelope import Envelope


class Fixed(Model):
    """A model whose answers are planned by a test: latency in seconds, and the answer's fields."""

    def __init__(self, plan: Any) -> None:
        super().__init__(config_of(), Place(name="model"))
        self.planned = plan
        self.asks: list[AgentAsk] = []

    def plan(self, context: Any, ask: AgentAsk) -> Planned:
        self.asks.append(ask)
        latency_s, fields = self.planned(ask)
        answer = AgentAnswer(
            run=ask.run, agent=ask.agent, **{"outcome": "ok", "tokens": 100, **fields}
        )
        return Planned(answer, round(latency_s * S))


class Backwards(Model):
    """Answers all that it was asked at one instant, the last first."""

    def __init__(self, at_us: int) -> None:
        super().__init__(config_of(), Place(name="model"))
        self.at_us = at_us
        self.asked: list[Envelope[AgentAsk]] = []

    def plan(self, context: Any, ask: AgentAsk) -> Planned:
        raise NotImplementedError

    def on_ask(self, context: Any, envelope: Envelope[AgentAsk]) -> None:
        self.asked.append(envelope)
        context.set_timer("all", self.at_us - context.now_us)

    def on_timer(self, context: Any, timer: str) -> None:
        while self.asked:
            envelope = self.asked.pop()
            body = AgentAnswer(
                run=envelope.body.run,
                agent=envelope.body.agent,
                outcome="ok",
                tokens=envelope.body.agent,
                value=envelope.body.prompt,
            )
            context.reply(envelope, body)


class Deaf(Model):
    """Hears everything and answers nothing."""

    def __init__(self) -> None:
        super().__init__(config_of(), Place(name="model"))
        self.handlers = {AgentAsk: self.ignore, AgentCancel: self.ignore}

    def plan(self, context: Any, ask: AgentAsk) -> Planned:
        raise NotImplementedError

    def ignore(self, context: Any, envelope: Any) -> None:
        return None
