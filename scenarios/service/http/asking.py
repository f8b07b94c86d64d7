"""A question of the HTTP side to the server's actor, and its answer.

It goes through the gateway, the one door for all that comes from outside, as the owner who is
signed in: so the actor's own checks are the only ones that decide.
"""

from __future__ import annotations

from typing import Any, Protocol

from actors.accounts.messages import GATEWAY
from actors.messages import Message

ANSWER_LIMIT_S = 5.0  # a page that takes longer is no use; a busy disk takes a second
OPEN_LIMIT = 64  # questions that wait at once: a quarter of the actor's mailbox


class Ask(Protocol):
    """How the gateway is asked to ask."""

    async def __call__(self, body: Any, source: str, limit_s: float) -> Any:
        """Return the answer to what `source` asks, None if there is none in time."""


class NotAnsweredError(Exception):
    """The server's actor did not answer in time: whether it did what was asked is unknown."""


class Asker:
    """Asks the server, a bounded number of questions at a time."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._open = 0

    async def ask(
        self, body: Message, source: str = GATEWAY, limit_s: float = ANSWER_LIMIT_S
    ) -> Message:
        """Return the answer to what `source` asks; NotAnsweredError if there is none in time.

        It is also raised, at once, while too many questions wait already.
        """
        if self._open >= OPEN_LIMIT:
            raise NotAnsweredError
        self._open += 1
        try:
            answer = await self._ask(body, source, limit_s)
        finally:
            self._open -= 1
        if not isinstance(answer, Message):
            raise NotAnsweredError
        return answer

    @property
    def idle(self) -> bool:
        """Whether no question waits for its answer."""
        return not self._open
