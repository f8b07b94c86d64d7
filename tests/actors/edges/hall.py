"""A gateway with a server behind it that knows a few principals, and doors to knock at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import MockClock

from actors.accounts.messages import (
    AddAgent,
    Authenticate,
    Authenticated,
    AuthenticateLocal,
    Changed,
    Denied,
    ListAgents,
    NewPairingCode,
    Paired,
)
from actors.edges.door import (
    MakeLink,
    NewToken,
    PairDevice,
    PrincipalToken,
    SignInLink,
    hash_token,
)
from actors.edges.gateway import SERVER, Door, Gateway
from actors.messages import (
    Commands,
    Failure,
    GetGraphRun,
    GraphRun,
    Start,
    Sync,
)
from tests.actors.edges.fake_inside import FakeInside
from tests.transports.test_acceptor import Log, PipeListener
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.envelope import Envelope
from transports.handshake import PROTOCOL, Hello, greet
from transports.wire import WireCodec

KEY = b"the gateway's own"
CHOSEN = "a hash that an owner sends"
TIMINGS = Timings()
TOKENS = {"agt_1": "agent", "agt_2": "agent", "dev_1": "device", "own_1": "owner"}
UNKNOWN = Denied(reason="unknown", error="unknown name or wrong token")
SYNC = Sync(boot="b", sessions=(), open=(), capacity=1, poll_us=1)
CODEC = WireCodec(
    [
        GraphRun,
        Commands,
        Failure,
        NewToken,
        PrincipalToken,
        Paired,
        Denied,
        GetGraphRun,
        Sync,
        Start,
        AddAgent,
        ListAgents,
        NewPairingCode,
        PairDevice,
        MakeLink,
        SignInLink,
        AuthenticateLocal,
        Changed,
    ]
)


def token_of(name: str) -> str:
    return f"token of {name}"


HASHES = {hash_token(token_of(name)): name for name in TOKENS}


class Hall:
    """A gateway with a server behind it that knows TOKENS, and doors to knock at."""

    def __init__(self, answer: Callable[[Envelope[Any]], Any]) -> None:
        self.rotate_in_us: int | None = None
        self.inside = FakeInside(self.answer)
        self.own = answer
        self.log = Log()
        me = Peer(protocol=PROTOCOL, name=SERVER, boot="s1")
        self.gateway = Gateway(me, self.inside, KEY, self.log)
        self.inside.take = self.gateway.take
        self.outside, self.local = PipeListener(), PipeListener()
        self.doors = [
            Door(self.gateway, [self.outside], local=False, connection_limit=40),
            Door(self.gateway, [self.local], local=True, connection_limit=4),
        ]

    def answer(self, envelope: Envelope[Any]) -> Any:
        body = envelope.body
        if isinstance(body, Authenticate):
            name = HASHES.get(body.token_hash)
            if name is None or (body.name and body.name != name):
                return UNKNOWN
            kind: Any = TOKENS[name]
            return Authenticated(
                principal=name,
                kind=kind,
                owner="own_1",
                name="n",
                rotate_in_us=self.rotate_in_us,
            )
        if isinstance(body, AuthenticateLocal):
            return Authenticated(principal="own_1", kind="owner", owner="own_1", name="me")
        return self.own(envelope)

    async def enter(self, name: str = "agt_1", token: str | None = None) -> Connection:
        word = token_of(name) if token is None else token
        return await greet(self.outside.connect(), Hello(name=name, boot="b", token=word), TIMINGS)


@asynccontextmanager
async def hall(
    clock: MockClock,
    answer: Callable[[Envelope[Any]], Any] = lambda _envelope: None,
) -> AsyncIterator[Hall]:
    assert clock.autojump_threshold == 0, "a denial takes its time"
    made = Hall(answer)
    async with trio.open_nursery() as nursery:
        for door in made.doors:
            nursery.start_soon(door.serve)
        yield made
        nursery.cancel_scope.cancel()


async def say(connection: Connection, body: Any, number: int = 1, target: str = SERVER) -> None:
    await connection.send(CODEC.encode(Envelope(number, "", target, 0, 0, body)))


async def hear(connection: Connection) -> Envelope[Any]:
    return CODEC.decode(await connection.receive(), SERVER)


def ticket(envelope: Envelope[Any]) -> Any:
    return GraphRun(command_id=envelope.body.command_id, status="queued")


async def is_over(connection: Connection) -> bool:
    with trio.move_on_after(1):
        try:
            await connection.receive()
        except BrokenLinkError:
            return True
    return False
