"""Questions of the HTTP side: an answer, none in time, and too many at once."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from actors.accounts.messages import GATEWAY, GetServerStatus, ShowRun
from actors.messages import NOT_FOUND, Message
from scenarios.service.http import asking
from scenarios.service.http.asking import Asker, NotAnsweredError


class Silence:
    async def __call__(self, body: Any, source: str, limit_s: float) -> Message | None:
        return None


class Slow:
    async def __call__(self, body: Any, source: str, limit_s: float) -> Message | None:
        await trio.sleep(1)
        return NOT_FOUND


async def test_the_answer_is_that_of_whoever_asks() -> None:
    asked = []

    async def ask(body: Any, source: str, limit_s: float) -> Any:
        asked.append((body, source, limit_s))
        return NOT_FOUND

    body = ShowRun(command_id="x")
    assert await Asker(ask).ask(body, "own_1", 2.0) is NOT_FOUND
    assert await Asker(ask).ask(GetServerStatus()) is NOT_FOUND
    assert asked == [(body, "own_1", 2.0), (GetServerStatus(), GATEWAY, asking.ANSWER_LIMIT_S)]


async def test_silence_is_an_error_of_its_own() -> None:
    asker = Asker(Silence())
    with pytest.raises(NotAnsweredError):
        await asker.ask(GetServerStatus())
    assert asker.idle


async def test_too_many_questions_are_refused_at_once(autojump_clock: MockClock) -> None:
    assert autojump_clock.autojump_threshold == 0, "an answer takes its time"
    asker = Asker(Slow())
    async with trio.open_nursery() as nursery:
        for _ in range(asking.OPEN_LIMIT):
            nursery.start_soon(asker.ask, GetServerStatus())
        await trio.testing.wait_all_tasks_blocked()
        busy = not asker.idle
        assert busy
        with pytest.raises(NotAnsweredError):
            await asker.ask(GetServerStatus())
    assert asker.idle
    assert await asker.ask(GetServerStatus()) is NOT_FOUND
