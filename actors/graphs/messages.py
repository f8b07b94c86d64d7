"""What a fleet engine and its model say to each other: one question an agent, and its end."""

from __future__ import annotations

from typing import Any, Literal

from actors.messages import Message, Natural

Outcome = Literal["ok", "failed", "cancelled"]


class AgentAsk(Message, frozen=True, kw_only=True):
    """Engine asks its model for one agent's answer, which may take up to `timeout_us`.

    `agent` is the agent's number in its run. With `problem` it is asked a second time, since its
    first answer did not fit `schema`.
    """

    run: str
    agent: int
    prompt: str
    timeout_us: Natural
    model: str | None = None
    schema: Any = None
    max_tokens: int | None = None
    tools: tuple[Any, ...] = ()
    problem: str | None = None


class AgentCancel(Message, frozen=True, kw_only=True):
    """Engine asks its model to stop an agent, and what it has used."""

    run: str
    agent: int


class AgentAnswer(Message, frozen=True, kw_only=True):
    """Model gives an agent's end: its answer, or why there is none, and what was used for it.

    It answers both questions. A cancelled agent used what it used until then; an agent that the
    model does not know used nothing.
    """

    run: str
    agent: int
    outcome: Outcome
    value: Any = None
    error: str | None = None
    retryable: bool = True
    tokens: Natural = 0
    cost: float = 0.0


GRAPH_MESSAGES: tuple[type[Message], ...] = (AgentAsk, AgentCancel, AgentAnswer)
