"""What a Graph's run consists of: scripts, what they wait for, and agents' tool calls."""

from __future__ import annotations

from math import fsum, isfinite
from typing import Any, Literal

import msgspec

from actors.actor import Context
from actors.graphs.messages import AgentAnswer, Round, ToolCall, ToolResult
from actors.graphs.seam import Failure, FailureKind, Request, Settlement, Vm
from actors.text import clean_text

State = Literal["waiting", "flying", "calling", "parked", "returning", "stopping", "over"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may do. Its sub-graphs share all of it.

    `token_ceiling` is None for none. An agent gets `agent_timeout_us` at most, the whole run
    `deadline_us` from its first script's start, a model `stop_us` to say what an agent that it
    stops has used. A tool call gets `tool_timeout_us` at most, its owner `approval_timeout_us` to
    allow it.
    """

    max_concurrency: int
    token_ceiling: int | None
    max_agents: int
    agent_timeout_us: int
    deadline_us: int
    stop_us: int
    tool_timeout_us: int
    approval_timeout_us: int


class RunClock:
    """A run's own time, which goes on after a restart where it stood."""

    def __init__(self) -> None:
        self.ahead_us = 0  # of the boot's time

    def now_us(self, context: Context) -> int:
        """Return how old the run's first boot would be."""
        return context.now_us + self.ahead_us

    def go_on_from(self, context: Context, now_us: int) -> None:
        """Let the run's time be this one now."""
        self.ahead_us = now_us - context.now_us


class Call:
    """A tool call of an agent's current round. `number` orders a run's calls, and names it."""

    __slots__ = ("asked", "begun_us", "number", "operation", "question", "result", "waits")

    def __init__(self, number: int, operation: Operation, asked: ToolCall) -> None:
        self.number = number
        self.operation = operation
        self.asked = asked
        self.waits = False  # for its owner
        self.question = -1  # the id of the open question to the tools
        self.begun_us = 0  # since when it waits or is made, in wall time
        self.result: ToolResult | None = None


class Operation:
    """One request of a script, from its making to its end. `number` orders a run's operations.

    An agent is `waiting` for admission, `flying` while its model works on it, `calling` while its
    tools do, `parked` while a call of it waits for its owner, `returning` when it waits to be asked
    again, and `stopping` while its model is asked what it used. It has a slot while it is flying,
    stopping, and as long as it was not parked calling. Its time goes only while somebody works on
    it. `verdict` is what its script gets, once that is known.
    """

    __slots__ = (
        "calls", "costs", "due_us", "left_us", "number", "question", "repairs", "request",
        "reserved", "rounds", "said", "script", "state", "tokens", "verdict",
    )  # fmt: skip

    def __init__(self, number: int, script: Script, request: Request) -> None:
        self.number = number
        self.script = script
        self.request = request
        self.state: State = "waiting"
        self.verdict: Settlement | None = None
        self.question = -1  # the id of the open question to the model
        self.due_us = (
            0  # when an agent's time is up, in the run's; of a sleep its end, in wall time
        )
        self.left_us: int | None = None  # what is left of its time, while that stands still
        self.reserved = 0  # tokens kept for it
        self.repairs = 0  # how often its model was told what was wrong
        self.tokens = 0
        self.costs: tuple[float, ...] = ()
        self.rounds: tuple[Round, ...] = ()
        self.calls: tuple[Call, ...] = ()  # of the current round
        self.said = ""  # beside them

    def stop_time(self, now_us: int) -> None:
        """Let its time stand still."""
        if self.left_us is None:
            self.left_us = max(0, self.due_us - now_us)

    def start_time(self, now_us: int) -> None:
        """Let its time go on."""
        if self.left_us is not None:
            self.due_us, self.left_us = now_us + self.left_us, None

    def time_left_us(self, now_us: int) -> int:
        """Return what is left of its time."""
        return self.due_us - now_us if self.left_us is None else self.left_us

    @property
    def tokens_left(self) -> int | None:
        """What its model may use for the next answer, None for any number."""
        most = self.request.options.max_tokens
        return most if most is None or not self.rounds else most - self.tokens

    @property
    def cost(self) -> float:
        """What it has cost so far."""
        return fsum(self.costs)

    def use(self, answer: AgentAnswer) -> float:
        """Count what an answer used, and return its cost; no model earns anything."""
        cost = answer.cost if isfinite(answer.cost) and answer.cost > 0 else 0.0
        self.tokens += answer.tokens
        self.costs = (*self.costs, cost)
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

    `names` are the Graph's and before it its callers', and `path` names it so in events.
    """

    __slots__ = (
        "args", "batch", "depth", "names", "number", "open", "parent", "path", "source", "vm",
    )  # fmt: skip

    def __init__(
        self, number: int, name: str, source: str, args: Any, parent: Operation | None
    ) -> None:
        self.number = number
        self.source = source
        self.args = args
        self.parent = parent
        self.names: tuple[str, ...] = (name,) if parent is None else (*parent.script.names, name)
        self.path = "/".join(self.names)
        self.depth = len(self.names) - 1
        self.vm: Vm | None = None
        self.batch: list[Settlement] = []  # what its VM is told next
        self.open: dict[int, Operation] = {}  # by number

    def close(self) -> None:
        """Drop the VM."""
        if self.vm is not None:
            self.vm.close()
            self.vm = None
