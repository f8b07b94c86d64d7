"""Held polls: until the first one's time is up, in bounded numbers, forgotten once released."""

from __future__ import annotations

import pytest

from actors.waiting import TIMER, WAITING_LIMIT, Waiting
from tests.actors.harness import FakeContext, S
from transports.envelope import Envelope


def poll(number: int) -> Envelope[None]:
    return Envelope(number, "agent", "server", 0, 0, None)


def test_all_who_wait_are_released_together_by_the_first_one_s_time() -> None:
    context, waiting = FakeContext("server"), Waiting()
    for number, wait_us in ((1, 20 * S), (2, 5 * S), (3, 9 * S)):
        assert waiting.hold(context, poll(number), "r", wait_us)
    assert context.timers == {f"{TIMER}r": 5 * S}
    assert waiting.release(context, "r") == [poll(1), poll(2), poll(3)]
    assert context.timers == {}
    assert waiting.release(context, "r") == []


@pytest.mark.parametrize("one_run", [False, True])
def test_so_many_wait_at_most(one_run: bool) -> None:
    context, waiting = FakeContext("server"), Waiting()
    runs = ["r" if one_run else f"r{number}" for number in range(WAITING_LIMIT + 1)]
    held = [waiting.hold(context, poll(1), run, S) for run in runs]
    assert held == [True] * WAITING_LIMIT + [False]
    assert len(context.timers) == (1 if one_run else WAITING_LIMIT)
