"""What the tests of tools stand on: models that want calls, tools that keep count, an owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.actor import Context, Handler, Place, Unanswered
from actors.graphs.messages import (
    AgentAsk,
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    ToolAnswer,
    ToolAsk,
    ToolCall,
    ToolCancel,
)
from actors.graphs.tools import SyntheticTools
from tests.actors.graphs.graph_world import config_of
from tests.actors.graphs.models import Fixed
from tests.actors.harness import S
from transports.envelope import Envelope

ASK = {"*": {"shell": "ask", "read_file": "allow"}}


def wants(*tools: str, arguments: Any = None) -> dict[str, Any]:
    """An answer that wants these tools at once."""
    calls = tuple(
        ToolCall(id=f"c{number}", tool=tool, arguments=arguments)
        for number, tool in enumerate(tools)
    )
    return {"outcome": "tools", "value": "let me see", "calls": calls}


class Calling(Fixed):
    """A model whose agents want these tools, round by round, and then say what came of them."""

    def __init__(self, *rounds: tuple[str, ...], latency_s: float = 1) -> None:
        def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
            done = len(ask.rounds)
            if done < len(rounds):
                return latency_s, wants(*rounds[done])
            told = [result.text for one in ask.rounds for result in one.results]
            return latency_s, {"value": told}

        super().__init__(plan)


class Counting(SyntheticTools):
    """Tools that keep every call that was ever asked of them, over all boots, and what stopped."""

    def __init__(self, answer: Callable[[ToolAsk], dict[str, Any] | None] | None = None) -> None:
        super().__init__(config_of(), Place(name="tools"))
        self.answer = answer
        self.made: list[ToolAsk] = []
        self.cancelled: list[int] = []

    def on_ask(self, context: Context, envelope: Envelope[ToolAsk]) -> None:
        self.made.append(envelope.body)
        if self.answer is None:
            super().on_ask(context, envelope)
            return
        said = self.answer(envelope.body)
        if said is not None:
            body = envelope.body
            fields = {"ok": True, "text": "", **said}
            context.reply(envelope, ToolAnswer(run=body.run, call=body.call, **fields))

    def on_cancel(self, context: Context, envelope: Envelope[ToolCancel]) -> None:
        self.cancelled.append(envelope.body.call)
        super().on_cancel(context, envelope)


class Owner:
    """An owner who decides calls at set times after they were told of: {call: (seconds, allow)}."""

    def __init__(self, plans: Mapping[int, tuple[float, bool]], says: int = 1) -> None:
        self.plans = plans
        self.says = says
        self.seen: list[Approvals] = []
        self.heard: list[Decided] = []
        self.handlers: Mapping[type[Any], Handler] = {
            Approvals: self.on_approvals,
            Decided: self.on_decided,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        self.deciding: dict[str, Decide] = {}
        context.request("engine", ListApprovals(), 5 * S)

    def on_approvals(self, context: Context, envelope: Envelope[Approvals]) -> None:
        self.seen.append(envelope.body)
        for one in envelope.body.waiting:
            key = str(one.call)
            if one.call in self.plans and key not in self.deciding:
                after_s, allow = self.plans[one.call]
                self.deciding[key] = Decide(run=one.run, call=one.call, allow=allow)
                context.set_timer(key, round(after_s * S))

    def on_timer(self, context: Context, timer: str) -> None:
        for _ in range(self.says):
            context.request("engine", self.deciding[timer], 5 * S)

    def on_decided(self, context: Context, envelope: Envelope[Decided]) -> None:
        self.heard.append(envelope.body)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        context.request("engine", envelope.body.question, 5 * S)
