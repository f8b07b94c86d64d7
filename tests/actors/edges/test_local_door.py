"""A desktop's door for its owner: what may be said there, and to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from actors.edges.local_door import OWNER, LocalDoor
from actors.messages import Disable, Enable, Message, Noted, Share
from tests.actors.edges.fake_inside import FakeInside
from tests.transports.test_acceptor import Log, PipeListener
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.envelope import Envelope
from transports.handshake import PROTOCOL, Hello, RefusedError, greet
from transports.wire import WireCodec

DESKTOP = Peer(protocol=PROTOCOL, name="desktop", boot="d1")
CODEC = WireCodec([Enable, Disable, Share, Noted])


class Desk:
    """A door, and what is behind it."""

    def __init__(self) -> None:
        self.inside, self.listener = FakeInside(lambda _envelope: Noted()), PipeListener()
        said: list[type[Message]] = [Enable, Share]
        self.door = LocalDoor(DESKTOP, self.inside, said, ["relay", "engine"], Log())
        self.inside.take = self.door.board.take

    async def enter(self) -> Connection:
        return await greet(self.listener.connect(), Hello(name="owner", boot="b"), Timings())


@asynccontextmanager
async def open_door() -> AsyncIterator[Desk]:
    desk = Desk()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.door.serve, desk.listener)
        yield desk
        nursery.cancel_scope.cancel()


async def say(connection: Connection, body: Any, target: str) -> None:
    await connection.send(CODEC.encode(Envelope(3, "", target, 0, 0, body)))


async def test_the_owner_speaks_to_those_who_are_here_and_is_answered() -> None:
    async with open_door() as it:
        for target in ("relay", "engine"):
            connection = await it.enter()
            await say(connection, Enable(project="p"), target)
            told = CODEC.decode(await connection.receive(), target)
            assert (told.reply_to, told.body) == (3, Noted())
        assert [(one.source, one.target) for one in it.inside.heard] == [
            (OWNER, "relay"),
            (OWNER, "engine"),
        ]


@pytest.mark.parametrize(
    ("body", "target"),
    [(Enable(project="p"), "server"), (Disable(project="p"), "relay"), (Noted(), "relay")],
)
async def test_nothing_else_comes_in(body: Any, target: str) -> None:
    async with open_door() as it:
        connection = await it.enter()
        await say(connection, body, target)
        with pytest.raises(BrokenLinkError):
            await connection.receive()
        assert it.inside.heard == []


async def test_a_door_that_closes_lets_nobody_in() -> None:
    async with open_door() as it:
        it.door.board.stop_reading()
        with pytest.raises(RefusedError, match="shutting down"):
            await it.enter()
        await wait_all_tasks_blocked()
        assert it.inside.heard == []
