"""The detour: stages between a dialler and who it dials, on the clock of a world."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from tests.contracts.fault import Chance
from tests.transports.serving import LOCAL, is_reset, service
from transports.connection import Timings
from transports.detour import Detour, WorldTime
from transports.faults.byte_fault import ByteFault
from transports.faults.reset import Reset
from transports.faults.throttle import Throttle
from transports.listening import listen
from transports.units import Duration, Size
from transports.wiring import Wiring

FAST = 1_000.0  # seconds of the world in one of the machine's


class World:
    """A world whose time is trio's, at a speed; actions are done by a test."""

    def __init__(self, speed: float) -> None:
        self.begun_s = trio.current_time()
        self.speed = speed
        self.told: list[tuple[str, str, str]] = []
        self.actions = []  # type: ignore[var-annotated]  # (time, action), as of a heap

    @property
    def now_us(self) -> int:
        return round((trio.current_time() - self.begun_s) * self.speed * 1e6)

    def tell(self, name: str, fault: str, act: str) -> None:
        self.told.append((name, fault, act))

    def at(self, due_us: int, action: object) -> None:
        self.actions.append((due_us, action))


class Rig:
    """An echo behind a detour."""

    def __init__(self, *faults: ByteFault, speed: float = FAST) -> None:
        self.world = World(speed)
        self.faults = [fault.at_work() for fault in faults]
        for fault in self.faults:
            fault.attach(self.world, ())  # type: ignore[arg-type]  # the part of it that is used
        self.wiring = Wiring(self.world, self.faults)  # type: ignore[arg-type]  # likewise
        for fault in self.faults:
            fault.start(Chance())
        self.time = WorldTime(self.wiring, speed)

    def begin(self) -> None:
        for due_us, action in self.world.actions:
            if not due_us:
                action()


@asynccontextmanager
async def detour(rig: Rig) -> AsyncIterator[trio.SocketStream]:
    """Connect through the detour to an echo."""
    async with service() as there, trio.open_nursery() as nursery:
        (listener,), address = await listen(LOCAL)
        connect = partial(trio.open_tcp_stream, there.host, there.port)
        way = Detour("relay", "server", connect, rig.wiring, rig.time)
        nursery.start_soon(way.serve, listener)
        client = await trio.open_tcp_stream(address.host, address.port)
        yield client
        await client.aclose()
        nursery.cancel_scope.cancel()


async def test_without_an_active_fault_it_carries_both_ways() -> None:
    rig = Rig(Reset(at=Duration(3_600_000_000)))
    with trio.fail_after(5):
        async with detour(rig) as client:
            await client.send_all(b"there and back")
            assert await client.receive_some() == b"there and back"


async def test_a_reset_on_the_world_s_clock_is_an_rst() -> None:
    rig = Rig(Reset(name="cut", after=Duration(60_000_000)))  # a minute is 60 ms here
    with trio.fail_after(5):
        async with detour(rig) as client:
            await client.send_all(b"x")
            assert await client.receive_some() == b"x"
            rig.begin()
            assert await is_reset(client)
    assert rig.faults[0].fired >= 1
    assert rig.world.told == [("relay", "cut", "disconnect")]


async def test_a_throttle_s_second_is_the_world_s() -> None:
    rig = Rig(Throttle(rate=Size(100), source="relay"))
    with trio.fail_after(5):
        async with detour(rig) as client:
            await client.send_all(b"x")
            await client.receive_some()
            rig.begin()
            begun_us = rig.world.now_us
            await client.send_all(b"y" * 1_000)
            came = b""
            while len(came) < 1_000:
                came += await client.receive_some()
            assert rig.world.now_us - begun_us >= 9_900_000, "1,000 bytes at 100 a second"


async def test_whom_it_can_t_reach_is_a_reset_to_the_dialler_and_ends_nobody_else() -> None:
    rig = Rig(Reset(at=Duration(1)))

    async def nobody() -> trio.SocketStream:
        raise OSError("nobody is there")

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            (listener,), address = await listen(LOCAL)
            way = Detour("relay", "server", nobody, rig.wiring, rig.time)
            nursery.start_soon(way.serve, listener)
            for _ in range(2):
                client = await trio.open_tcp_stream(address.host, address.port)
                assert await is_reset(client)
                await client.aclose()
            nursery.cancel_scope.cancel()
    assert rig.wiring.connections == (), "and nothing is kept"


@pytest.mark.parametrize("speed", [0.5, 20.0])
async def test_the_world_s_time_is_trio_s_by_its_speed(
    speed: float, autojump_clock: MockClock
) -> None:
    rig = Rig(speed=speed)
    await trio.sleep(4)
    assert rig.time.now_us() == round(4 * speed * 1e6)
    assert rig.time.deadline(round(6 * speed * 1e6)) == pytest.approx(
        autojump_clock.current_time() + 2
    )


def test_a_fast_world_s_times_are_shorter_but_no_machine_has_to_answer_within_a_blink() -> None:
    usual = Timings()
    assert usual.at_speed(1.0) == usual
    assert usual.at_speed(0.5).silence_s == 70
    fast = usual.at_speed(20.0)
    assert (fast.retry_first_s, fast.retry_limit_s) == (0.025, 1.5)
    assert (fast.silence_s, fast.heartbeat_s) == (1.75, 0.5)
    assert (fast.handshake_s, fast.connect_s, fast.frame_s) == (1.0, 1.0, 3.0)
    faster = usual.at_speed(1_000.0)
    assert faster.silence_s == faster.frame_s == 1.0
    assert faster.heartbeat_s == pytest.approx(10 / 35)
    assert Timings(silence_s=0.1, heartbeat_s=0.02).at_speed(10.0).silence_s == 0.1
