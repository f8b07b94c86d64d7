"""A host as an edge sees it: what comes in is kept, and may be answered at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import trio

from transports.envelope import Envelope


class FakeInside:
    """Keeps what is brought in and what is lost. `answer` may return what the actor replies."""

    def __init__(self, answer: Callable[[Envelope[Any]], Any] = lambda _envelope: None) -> None:
        self.answer = answer
        self.take: Callable[[Envelope[Any]], bool] = lambda _envelope: False
        self.heard: list[Envelope[Any]] = []
        self.lost: list[tuple[Any, str]] = []
        self.room = trio.Event()
        self.room.set()
        self.came = trio.Event()  # set by the first that comes in
        self._numbers = count(1000)

    def number(self) -> int:
        return next(self._numbers)

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        self.lost.append((envelope.body, fault))

    async def enter(self, envelope: Envelope[Any]) -> None:
        await self.room.wait()
        self.heard.append(envelope)
        self.came.set()
        body = self.answer(envelope)
        if body is not None:
            self.reply(envelope, body)

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer as the actor does: what nobody takes is lost."""
        out = Envelope(self.number(), envelope.target, envelope.source, envelope.id, 0, body)
        if not self.take(out):
            self.lose(out, "disconnected")

    def bodies(self, source: str) -> list[Any]:
        """What came from somebody."""
        return [one.body for one in self.heard if one.source == source]
