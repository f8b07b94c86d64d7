"""What a fleet engine says to its model and its tools, and what they answer."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from actors.messages import Message, Natural

Outcome = Literal["ok", "failed", "cancelled", "tools"]


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent wants of a tool. `id` is its model's own, and goes back with the result."""

    id: str
    tool: str
    arguments: Any = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a tool call, as its agent is told; with `ok` False the text says why not."""

    id: str
    ok: bool
    text: str


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of an agent's work: what it said, the tools that it called, what came of them."""

    text: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]


class AgentAsk(Message, frozen=True, kw_only=True):
    """Engine asks its model for one agent's answer, which may take up to `timeout_us`.

    `agent` is the agent's number in its run. With `problem` it is asked a second time, since its
    first answer did not fit `schema`. `rounds` are what it did with its `tools` before.
    """

    run: str
    agent: int
    prompt: str
    timeout_us: Natural
    model: str | None = None
    schema: Any = None
    max_tokens: int | None = None
    tools: tuple[str, ...] = ()
    rounds: tuple[Round, ...] = ()
    problem: str | None = None


class AgentCancel(Message, frozen=True, kw_only=True):
    """Engine asks its model to stop an agent, and what it has used."""

    run: str
    agent: int


class AgentAnswer(Message, frozen=True, kw_only=True):
    """Model gives an agent's end: its answer, or why there is none, and what was used for it.

    It answers both questions. A cancelled agent used what it used until then; an agent that the
    model does not know used nothing. With the outcome "tools" it is no end: `calls` are to be made,
    and the agent asked again with what came of them; `value` is what it said beside, a text.
    """

    run: str
    agent: int
    outcome: Outcome
    value: Any = None
    error: str | None = None
    retryable: bool = True
    tokens: Natural = 0
    cost: float = 0.0
    calls: tuple[ToolCall, ...] = ()


class ToolAsk(Message, frozen=True, kw_only=True):
    """Engine has its tools make one call, which was allowed; at most once for a run and `call`.

    `call` is the call's number in its run.
    """

    run: str
    call: int
    tool: str
    arguments: Any = None
    timeout_us: Natural


class ToolCancel(Message, frozen=True, kw_only=True):
    """Engine has its tools stop a call, if that still goes on; nobody waits for its answer."""

    run: str
    call: int


class ToolAnswer(Message, frozen=True, kw_only=True):
    """Tools tell what came of a call; with `ok` False the text says why it failed."""

    run: str
    call: int
    ok: bool
    text: str


# owner and engine


class ListApprovals(Message, frozen=True, kw_only=True):
    """Owner asks which tool calls wait for a decision."""


class Approval(Message, frozen=True, kw_only=True):
    """One tool call that waits for its owner; it is denied when `left_us` is over."""

    run: str
    graph: str
    agent: int
    label: str | None
    call: int
    tool: str
    arguments: Any
    waited_us: Natural
    left_us: Natural


class Approvals(Message, frozen=True, kw_only=True):
    """Engine answers with what waits, the longest first."""

    waiting: tuple[Approval, ...]


class Decide(Message, frozen=True, kw_only=True):
    """Owner allows or denies one waiting call; said again it changes nothing."""

    run: str
    call: int
    allow: bool


class Decided(Message, frozen=True, kw_only=True):
    """Engine has the decision on disk; with `known` False nothing of that number waits."""

    run: str
    call: int
    known: bool


GRAPH_MESSAGES: tuple[type[Message], ...] = (
    AgentAsk,
    AgentCancel,
    AgentAnswer,
    ToolAsk,
    ToolCancel,
    ToolAnswer,
    ListApprovals,
    Approvals,
    Decide,
    Decided,
)
