"""Joining actors of one process: in memory and over TCP, the same contract."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.contracts.fault import Chance
from transports.connection import BrokenLinkError, Timings
from transports.faults.reset import Reset
from transports.handshake import Hello, RefusedError, greet
from transports.local import RANKS, MemoryTransport, TcpTransport, Transport, UnixTransport, Wire
from transports.tcp import connect_tcp
from transports.wiring import Wiring

QUICK = Timings(retry_first_s=0.01, retry_limit_s=0.01)
BOTH = pytest.mark.parametrize(
    "make", [MemoryTransport, TcpTransport, UnixTransport], ids=["memory", "tcp", "unix"]
)


class Joined:
    """What a transport hands over, by (me, peer)."""

    def __init__(self) -> None:
        self.send, self.receive = {}, {}  # type: ignore[var-annotated]  # of channels, below
        self.reasons: dict[tuple[str, str], str] = {}

    def _channel(self, pair: tuple[str, str]) -> None:
        if pair not in self.send:
            self.send[pair], self.receive[pair] = trio.open_memory_channel[Any](10)

    async def handle(self, me: str, peer: str, wire: Wire) -> None:
        """Lend the wire to the test until it breaks it off."""
        self._channel((me, peer))
        over = trio.Event()
        await self.send[me, peer].send((wire, over))
        await over.wait()
        raise BrokenLinkError("the test is over")

    async def wire(self, me: str, peer: str) -> tuple[Any, trio.Event]:
        """Return one end, once it is up."""
        self._channel((me, peer))
        got: tuple[Any, trio.Event] = await self.receive[me, peer].receive()
        return got


@asynccontextmanager
async def opened(transport: Transport, *names: str) -> AsyncIterator[Joined]:
    joined = Joined()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await transport.open(nursery, names, joined.handle)
            yield joined
            nursery.cancel_scope.cancel()


@BOTH
async def test_two_are_joined_both_ways(make: Callable[[], Transport]) -> None:
    transport = make()
    async with opened(transport, "a", "b", "c") as joined:
        transport.join("b", "a")
        (near, _), (far, _) = await joined.wire("a", "b"), await joined.wire("b", "a")
        await near.send(b"there")
        await far.send(b"back 1")
        await far.send(b"back 2")
        assert await far.receive() == b"there"
        assert [await near.receive(), await near.receive()] == [b"back 1", b"back 2"]
        assert set(joined.send) == {("a", "b"), ("b", "a")}


@BOTH
async def test_when_one_end_is_over_the_other_learns_it(make: Callable[[], Transport]) -> None:
    transport = make()
    async with opened(transport, "a", "b") as joined:
        transport.join("a", "b")
        (_, over), (far, _) = await joined.wire("a", "b"), await joined.wire("b", "a")
        over.set()
        with pytest.raises(BrokenLinkError):
            await far.receive()


@BOTH
async def test_with_the_nursery_all_is_gone(make: Callable[[], Transport]) -> None:
    transport = make()
    async with opened(transport, "a", "b") as joined:
        transport.join("a", "b")
        near, _ = await joined.wire("a", "b")
    with pytest.raises(BrokenLinkError):
        await near.send(b"x")


async def test_memory_takes_no_time_however_long_nobody_reads(
    autojump_clock: trio.testing.MockClock,
) -> None:
    transport = MemoryTransport()
    async with opened(transport, "a", "b") as joined:
        transport.join("a", "b")
        (near, _), (far, _) = await joined.wire("a", "b"), await joined.wire("b", "a")
        sent = []

        async def flood() -> None:
            for number in range(4):
                await near.send(b"x" * 50_000)
                sent.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood)
            await trio.testing.wait_all_tasks_blocked()
            assert sent == [0]
            autojump_clock.jump(0.5)
            for _ in range(4):
                assert len(await far.receive()) == 50_000
        assert trio.current_time() < 1


async def test_over_tcp_the_higher_rank_dials_and_a_broken_connection_is_made_again() -> None:
    events: dict[str, list[str]] = defaultdict(list)

    def log(event: str, /, **fields: Any) -> None:
        events[event].append(f"{fields['actor']} and {fields.get('peer')}")
        assert "token" not in fields

    ranks = {name: RANKS[kind] for name, kind in (("s", "server"), ("r", "relay"))}
    transport = TcpTransport(ranks, log=log, timings=QUICK)
    async with opened(transport, "r", "s") as joined:
        transport.join("r", "s")
        ends = await joined.wire("s", "r"), await joined.wire("r", "s")
        assert set(events["link.up"]) == {"s and r", "r and s"}
        for _, over in ends:
            over.set()
        (near, _), (far, _) = await joined.wire("s", "r"), await joined.wire("r", "s")
        await near.send(b"again")
        assert await far.receive() == b"again"
        assert events["link.down"], "told why it broke"
        assert list(transport._ports) == ["s"], "nobody needs to dial the relay"


async def test_over_tcp_a_stranger_is_refused() -> None:
    refused: list[str] = []

    def log(event: str, /, **fields: Any) -> None:
        if event == "link.refused":
            refused.append(fields["reason"])

    transport = TcpTransport(log=log)
    async with opened(transport, "a", "b"):
        stream = await connect_tcp("127.0.0.1", transport._ports["a"])
        await stream.send(b"GET / HTTP/1.1\r\n\r\n")
        assert b"this is HTTP" in await stream.receive()
        await stream.aclose()
        with trio.move_on_after(2):
            while not refused:  # noqa: ASYNC110  the log is a plain function
                await trio.sleep(0.01)
    assert "this is HTTP" in refused[0]


async def test_over_tcp_nobody_else_may_take_a_name() -> None:
    transport = TcpTransport()
    async with opened(transport, "a", "b"):
        for token in ("", "guessed"):
            stream = await connect_tcp("127.0.0.1", transport._ports["a"])
            with pytest.raises(RefusedError, match="unknown name or wrong token"):
                await greet(stream, Hello(name="b", boot="x", token=token), Timings())


class World:
    """As much of a world as faults at work need; its time stands still."""

    now_us = 0

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def at(self, _due_us: int, action: Callable[[], None]) -> None:
        self.begin = action

    def tell(self, *what: str) -> None:
        self.told.append(what)  # type: ignore[arg-type]  # of three


@pytest.mark.parametrize("make", [TcpTransport, UnixTransport], ids=["tcp", "unix"])
async def test_whom_a_byte_fault_names_is_joined_through_it_and_the_others_directly(
    make: Callable[..., TcpTransport],
) -> None:
    fault = Reset(name="cut", source="b", target="a", nth=1).at_work()
    world = World()
    fault.attach(world, ())  # type: ignore[arg-type]  # the part of a world that is used
    fault.start(Chance())
    transport = make({"b": 1, "c": 2}, timings=QUICK)
    wiring = Wiring(world, [fault])  # type: ignore[arg-type]  # likewise
    transport.interpose(wiring, 20.0)
    assert transport._timings == QUICK.at_speed(20.0)
    assert (transport.is_faulty("a", "b"), transport.is_faulty("a", "c")) == (True, False)
    async with opened(transport, "a", "b", "c") as joined:
        transport.join("a", "b")
        transport.join("c", "a")
        (near, over), (far, far_over) = await joined.wire("b", "a"), await joined.wire("a", "b")
        other, _ = await joined.wire("c", "a")
        await near.send(b"through it")
        assert await far.receive() == b"through it"
        assert [ends[:2] for ends in wiring.connections] == [("b", "a")]
        world.begin()
        for end in (near, far):
            with pytest.raises(BrokenLinkError):
                await end.receive()
        over.set()
        far_over.set()
        (near, _), (far, _) = await joined.wire("b", "a"), await joined.wire("a", "b")
        await near.send(b"and again")
        assert await far.receive() == b"and again"
        assert world.told == [("b", "cut", "disconnect")]
        await other.send(b"all the time")
        (there, _) = await joined.wire("a", "c")
        assert await there.receive() == b"all the time"
        assert transport.culprit("a", "b") == "cut"
    assert wiring.connections == (), "nothing is left open"
