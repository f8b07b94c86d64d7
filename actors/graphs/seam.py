"""What the engine and a script's VM say to each other: the seam between a Graph's two halves.

A VM runs one script. It is passive: `start` runs the script until it waits for the host, `settle`
answers some of what it asked for and runs it on. Each returns a turn: what the script asks for now,
what it says, and its end. Between turns nothing runs, so a script that is cancelled is closed and
never notices. Only JSON crosses, and every call ends within its limits or raises `VmLimitError`;
after that the VM is dead, and all that may be done is to close it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

Seed = tuple[int, int, int, int]  # each of 32 bits, 0 to 2**32 - 1
LimitKind = Literal["cpu", "wall", "memory", "output", "jobs", "died"]
FailureKind = Literal["agent", "budget", "graph"]


class VmLimits(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one VM may use; time, jobs and output in one turn.

    A turn of an honest script takes milliseconds: these are for those that never end.
    """

    cpu_us: int = 2_000_000  # computing between two waits
    wall_us: int = 5_000_000  # the same by the clock, on a busy machine; then its process is killed
    memory_bytes: int = 64 << 20  # 4,096 pending agents take 14 MB
    stack_bytes: int = 4 << 20  # 2,400 calls deep, and half of a main thread's own stack
    jobs: int = 200_000  # promise reactions in one turn; 4,096 agents at once take 40,000
    output_bytes: int = 8 << 20  # of requests, notices and result together, as JSON


class VmState(msgspec.Struct, frozen=True, gc=False):
    """What a script may see of the host: the time, and its root run's use of the token ceiling.

    `now_ms` counts from 1970 by the run's own clock. `total` is the ceiling, None without one;
    `agents` is how many were started so far.
    """

    now_ms: float
    spent: int
    total: int | None
    agents: int


class AgentOptions(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The second argument of `agent`, checked by the VM: other names never reach the host."""

    label: str | None = None
    phase: str | None = None  # the script's current one unless it said another
    model: str | None = None
    schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    timeout_ms: float | None = None
    tools: tuple[str, ...] | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something the script waits for: settled once, at any later time, in any order.

    `id` counts from 1 in each VM. An agent has `prompt` and `options`, a graph `name` and `args`, a
    sleep `ms`, which is finite and not negative.
    """

    id: int
    op: Literal["agent", "graph", "sleep"]
    prompt: str = ""
    options: AgentOptions = AgentOptions()
    name: str = ""
    args: Any = None
    ms: float = 0.0


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something the script says, which needs no answer.

    `text` is a phase's title, a log line, or the error that a retry follows; `attempt` is the one
    that failed, from 1, and `delay_ms` how long the script waits before the next. `after` is the id
    of the last request before it, 0 for none, so both lists can be read in the script's order.
    """

    type: Literal["phase", "log", "retry"]
    text: str
    level: Literal["debug", "info", "warn", "error"] = "info"
    attempt: int = 0
    delay_ms: float = 0.0
    after: int = 0


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request failed: the script gets AgentError, BudgetError or GraphError.

    Codes are token_ceiling, agent_failed, agent_timeout, agent_limit, graph_not_found, graph_depth,
    graph_limit and graph_failed. `info` becomes properties of the error, such as `retryable`;
    without that a retry is worth while after agent_failed, agent_timeout and graph_failed alone.
    """

    kind: FailureKind
    message: str
    code: str
    info: dict[str, Any] = {}


class Settlement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to request `id`: its value, any JSON, or why there is none."""

    id: int
    ok: bool
    value: Any = None
    error: Failure | None = None


class ScriptFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error that ended a script, in the terms of the source as its user wrote it.

    `line` and `column` count from 1; 0 where nobody knows. `code` is one of a Failure's, or
    unawaited_agents, result_not_json or graph_stalled, None for an error of the script's own.
    `errors` are the messages of an AggregateError, `partial` what `parallel` had at the ceiling.
    """

    name: str
    message: str
    stack: str = ""
    code: str | None = None
    errors: tuple[str, ...] = ()
    partial: Any = None
    line: int = 0
    column: int = 0


class Finished(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script's end: what it returned, or the error that it ended with."""

    value: Any = None
    error: ScriptFailure | None = None


class VmTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one call: requests and notices in the script's order, its end if it has ended.

    `pending` is how many requests are not settled yet, these included. Without an end it is never
    0: a script that waits for nothing that can come has failed with graph_stalled. What is pending
    at the end (sleeps, and the losers of a race) nobody waits for any more: cancel it.
    """

    requests: tuple[Request, ...] = ()
    notices: tuple[Notice, ...] = ()
    finished: Finished | None = None
    pending: int = 0


class VmLimitError(Exception):
    """A script went over a limit, or its VM died; `kind` says which, the text is one sentence."""

    def __init__(self, kind: LimitKind, sentence: str) -> None:
        self.kind: LimitKind = kind
        self.sentence = sentence
        super().__init__(sentence)


STOPPED = "the script was stopped in the middle of its computing, since its run is cancelled"


class VmMissingError(Exception):
    """Scripts can't run in this installation; the text says what to install."""


class Vm(Protocol):
    """One script's VM. Calls never overlap, but may come from different threads."""

    def start(self, source: str, args: Any, seed: Seed, state: VmState) -> VmTurn:
        """Run the script from its beginning; once, and first.

        A script that can't be compiled has finished with its SyntaxError. Raises VmLimitError.
        """

    def settle(self, settlements: Sequence[Settlement], state: VmState) -> VmTurn:
        """Answer requests, in this order, and run the script on. Raises VmLimitError.

        Answers to requests that are settled already or never were are ignored.
        """

    def hurry(self) -> None:
        """Its run is to be cancelled: don't wait for a call that computes on and on.

        From any thread, while a call may be going on; that raises VmLimitError with `STOPPED` soon,
        where it can be ended at all, and so may later ones.
        """

    def close(self) -> None:
        """Drop the script, wherever it stands. May be called again; raises nothing."""


class VmPort(Protocol):
    """Where an engine gets its VMs."""

    def open(self, limits: VmLimits) -> Vm:
        """Return a new VM.

        Raises VmMissingError where scripts can't run, VmLimitError ("died") where no process can be
        started.
        """
