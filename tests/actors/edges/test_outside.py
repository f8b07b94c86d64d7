"""Actors with tasks are opened with their own voice and closed whatever happens; others are not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from actors.edges.outside import OutsideActor, close_outside, open_outside
from transports.envelope import Envelope


class Waiter:
    """Says something to itself as soon as it is opened."""

    def __init__(self) -> None:
        self.closed = 0

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None]) -> None:
        await trio.lowlevel.checkpoint()
        tell_myself(f"hello from {nursery is not None}")

    async def close(self) -> None:
        await trio.sleep(0.001)
        self.closed += 1


def host_of(**actors: Any) -> list[Any]:
    return [SimpleNamespace(name=name, actor=actor) for name, actor in actors.items()]


async def test_an_actor_with_tasks_speaks_to_itself_alone() -> None:
    said: list[Envelope[Any]] = []
    host = host_of(server=object(), model=Waiter(), tools=Waiter())
    assert [isinstance(one.actor, OutsideActor) for one in host] == [False, True, True]
    async with trio.open_nursery() as nursery:
        await open_outside(host, nursery, said.append)
    assert [(one.source, one.target, one.body) for one in said] == [
        ("model", "model", "hello from True"),
        ("tools", "tools", "hello from True"),
    ]


async def test_it_is_closed_when_its_host_is_cancelled() -> None:
    waiter = Waiter()
    with trio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(trio.Cancelled):
            await trio.lowlevel.checkpoint()
        await close_outside(host_of(model=waiter, relay=object()))
    assert waiter.closed == 1
