"""The synthetic model: agents whose time, usage, failures and mistakes are drawn by chance."""

from __future__ import annotations

from typing import Any

from actors.actor import Context
from actors.graphs.messages import AgentAnswer, AgentAsk, Outcome, ToolCall
from actors.graphs.model import Model, Planned, drawn
from actors.graphs.samples import sample
from actors.graphs.schemas import SchemaError, problem_of

SHOWN_CHARS = 60  # of a prompt in its answer, so that one can tell answers apart
# What a model says that did not understand; the first that a schema refuses is taken.
NONSENSE: tuple[Any, ...] = ("not what was asked for", None, -1, [], {})


class SyntheticModel(Model):
    """See the module's docstring. With a schema it gives a value that fits, drawn by chance."""

    def on_start(self, context: Context) -> None:
        """Begin a boot: agents of a former one call no more tools."""
        super().on_start(context)
        self.to_call: dict[str, int] = {}  # what is left of an agent's calls

    def plan(self, context: Context, ask: AgentAsk) -> Planned:
        """Draw what becomes of an agent, each part from its own stream."""
        config = self.config
        latency_us = drawn(context, "latency", config.latency_us)
        tokens = drawn(context, "tokens", config.tokens)
        if ask.max_tokens is not None:
            tokens = min(tokens, ask.max_tokens)
        cost = drawn(context, "cost", config.cost)
        outcome: Outcome = "ok"
        value, error = None, None
        calls: tuple[ToolCall, ...] = ()
        if ask.tools and self.wants_tool(context, ask):
            tool = ask.tools[len(ask.rounds) % len(ask.tools)]
            call = ToolCall(id=f"call-{len(ask.rounds) + 1}", tool=tool, arguments={})
            outcome, calls = "tools", (call,)
        else:
            failure = drawn(context, "failure", config.failure)
            if failure and context.random("fails").random() < failure:
                outcome, error = "failed", "the agent failed"
            else:
                value = self.value(context, ask)
        answer = AgentAnswer(
            run=ask.run,
            agent=ask.agent,
            outcome=outcome,
            value=value,
            tokens=max(0, tokens),
            cost=cost,
            error=error,
            calls=calls,
        )
        return Planned(answer, latency_us)

    def wants_tool(self, context: Context, ask: AgentAsk) -> bool:
        """Whether an agent makes a tool call before it answers; how many is drawn at first."""
        if ask.problem is not None:
            return False
        key = f"{ask.run}:{ask.agent}"
        if not ask.rounds:
            self.to_call[key] = drawn(context, "tool_calls", self.config.tool_calls)
        left: int = self.to_call.pop(key, 0)
        if left > 1:
            self.to_call[key] = left - 1
        return left > 0

    def value(self, context: Context, ask: AgentAsk) -> Any:
        """Return what an agent that does not fail answers."""
        if ask.schema is None:
            return f"answer to: {ask.prompt[:SHOWN_CHARS]}"
        try:
            problem_of(ask.schema, None)
        except SchemaError:
            return None  # the engine says what is wrong with it
        malformed = drawn(context, "malformed", self.config.malformed)
        if malformed and context.random("mistakes").random() < malformed:
            return next((one for one in NONSENSE if problem_of(ask.schema, one)), NONSENSE[0])
        return sample(ask.schema, context.random("values"))
