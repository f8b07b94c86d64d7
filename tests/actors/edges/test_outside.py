"""Actors with work outside: opened with a way into their own mailbox, and closed in any case."""

from __future__ import annotations

from typing import Any

import trio

from actors.edges.models.live import LiveModel
from actors.edges.outside import close_outside, open_outside
from actors.world import TrioWorld
from tests.actors.puppets import Puppet, Say
from transports.envelope import Envelope


class Backend:
    """Holds something that is to be given back."""

    def __init__(self) -> None:
        self.closed = 0

    async def answer(self, _ask: Any, _spent: Any) -> Any:
        raise AssertionError("nobody asks")

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1


async def test_each_is_opened_and_closed_and_others_are_left_alone(nursery: trio.Nursery) -> None:
    backend, world = Backend(), TrioWorld(1, "")
    model = LiveModel(backend)
    world.add("model", model)
    world.add("puppet", Puppet([]))
    told: list[Envelope[Any]] = []
    await open_outside(world.contexts.values(), (LiveModel,), nursery, told.append)
    model.tell_myself(Say("done"))
    assert [(one.source, one.target, one.body) for one in told] == [("model", "model", Say("done"))]
    with trio.CancelScope() as scope:
        scope.cancel()
        await close_outside(world.contexts.values(), (LiveModel,))
    assert backend.closed == 1
