"""What a Graph's run consists of: scripts, and the operations that they wait for."""

from __future__ import annotations

from math import fsum, isfinite
from typing import Any, Literal

import msgspec

from actors.graphs.messages import AgentAnswer
from actors.graphs.seam import Failure, FailureKind, Request, Settlement, Vm
from actors.text import clean_text

State = Literal["waiting", "flying", "stopping", "dropped"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may do. Its sub-graphs share all of it.

    `token_ceiling` is None for none. An agent gets `agent_timeout_us` at most, the whole run
    `deadline_us` from its first script's start, a model `stop_us` to say what an agent that it
    stops has used.
    """

    max_concurrency: int
    token_ceiling: int | None
    max_agents: int
    agent_timeout_us: int
    deadline_us: int
    stop_us: int


class Operation:
    """One request of a script, from its making to its end. `number` orders a run's operations.

    An agent is `waiting` for admission, `flying` while its model works on it, and `stopping` while
    its model is asked what it used. `verdict` is what its script gets, once that is known.
    """

    __slots__ = (
        "asks", "costs", "due_us", "number", "question", "request", "reserved", "script", "state",
        "tokens", "verdict",
    )  # fmt: skip

    def __init__(self, number: int, script: Script, request: Request) -> None:
        self.number = number
        self.script = script
        self.request = request
        self.state: State = "waiting"
        self.verdict: Settlement | None = None
        self.question = 0  # the id of the open question to the model
        self.due_us = 0  # when an agent's time is up
        self.reserved = 0  # tokens kept for it
        self.asks = 0  # how often its model was asked
        self.tokens = 0
        self.costs: list[float] = []

    @property
    def cost(self) -> float:
        """What it has cost so far."""
        return fsum(self.costs)

    def use(self, answer: AgentAnswer) -> float:
        """Count what an answer used, and return its cost; no model earns anything."""
        cost = answer.cost if isfinite(answer.cost) and answer.cost > 0 else 0.0
        self.tokens += answer.tokens
        self.costs.append(cost)
        return cost

    def succeed(self, value: Any) -> Settlement:
        """Return the settlement of a value."""
        return Settlement(id=self.request.id, ok=True, value=value)

    def fail(self, kind: FailureKind, code: str, message: str, **info: Any) -> Settlement:
        """Return the settlement of a failure."""
        error = Failure(kind=kind, message=message, code=code, info=info)
        return Settlement(id=self.request.id, ok=False, error=error)

    def of_answer(self, answer: AgentAnswer) -> Settlement:
        """Return the settlement of an answer that is no value."""
        message = clean_text(answer.error or "") or f"the agent {answer.outcome}"
        return self.fail("agent", "agent_failed", message, retryable=answer.retryable)


class Script:
    """One Graph that runs: the root, or a sub-graph that operation `parent` waits for.

    `path` names it in events: the Graph's name, with those of its callers before it.
    """

    __slots__ = (
        "args", "batch", "depth", "number", "open", "parent", "path", "source", "started", "vm",
    )  # fmt: skip

    def __init__(
        self, number: int, name: str, source: str, args: Any, parent: Operation | None
    ) -> None:
        self.number = number
        self.source = source
        self.args = args
        self.parent = parent
        self.path: str = name if parent is None else f"{parent.script.path}/{name}"
        self.depth: int = 0 if parent is None else parent.script.depth + 1
        self.vm: Vm | None = None
        self.started = False
        self.batch: list[Settlement] = []  # what its VM is told next
        self.open: dict[int, Operation] = {}  # by number

    def close(self) -> None:
        """Drop the VM."""
        if self.vm is not None:
            self.vm.close()
            self.vm = None
