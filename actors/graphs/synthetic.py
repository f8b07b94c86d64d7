"""The synthetic model: agents whose time, usage, failures and mistakes are drawn by chance."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.actor import Context
from actors.graphs.messages import AgentAnswer, AgentAsk
from actors.graphs.model import Model, Planned, drawn
from actors.graphs.samples import sample
from actors.graphs.schemas import SchemaError, problem_of

_replace = msgspec.structs.replace

SHOWN_CHARS = 60  # of a prompt in its answer, so that one can tell answers apart
# What a model says that did not understand; the first that a schema refuses is taken.
NONSENSE: tuple[Any, ...] = ("not what was asked for", None, -1, [], {})


class SyntheticModel(Model):
    """See the module's docstring. With a schema it gives a value that fits, drawn by chance."""

    def plan(self, context: Context, ask: AgentAsk) -> Planned:
        """Draw what becomes of an agent, each part from its own stream."""
        config = self.config
        latency_us = drawn(context, "latency", config.latency_us)
        tokens = drawn(context, "tokens", config.tokens)
        if ask.max_tokens is not None:
            tokens = min(tokens, ask.max_tokens)
        cost = drawn(context, "cost", config.cost)
        answer = AgentAnswer(
            run=ask.run, agent=ask.agent, outcome="ok", tokens=max(0, tokens), cost=cost
        )
        failure = drawn(context, "failure", config.failure)
        if failure and context.random("fails").random() < failure:
            answer = _replace(answer, outcome="failed", error="the agent failed")
        else:
            answer = _replace(answer, value=self.value(context, ask))
        return Planned(answer, latency_us)

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
