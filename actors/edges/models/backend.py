"""The contract of what answers agents, and of the dialect that a model server speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from actors.edges.models.sse import SseEvent
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk

ANSWER_LIMIT_CHARS = 100_000  # six bytes each at worst, and a message has 1 MiB


class Backend(Protocol):
    """What answers agents: a model server, or a command. Calls overlap."""

    async def answer(self, ask: AgentAsk, spent: Spent) -> Any:
        """Return an agent's answer, or Called for tools first; BackendError if there is none.

        `spent` is kept up to date, so that whoever cancels this call knows what was used.
        """

    async def close(self) -> None:
        """Give back what it holds. Calls have ended."""


class Assembler(Protocol):
    """One answer that comes in pieces; without I/O."""

    finished: bool  # nothing more is to come

    def take(self, event: SseEvent) -> None:
        """Take the next event of the stream. BackendError if it is none, or tells of a failure."""

    def value(self) -> Any:
        """Return the answer of a stream that has ended; BackendError if that was too early."""


class Dialect(Protocol):
    """What a kind of model server is sent, and how its stream is read; without I/O."""

    path: str  # behind the base URL

    def headers(self, key: str | None) -> Mapping[str, str]:
        """Return the headers of a request."""

    def body(self, ask: AgentAsk) -> bytes:
        """Return what is posted. BackendError if the server can't do what the agent needs."""

    def assembler(self, ask: AgentAsk, spent: Spent) -> Assembler:
        """Return what reads the answer."""
