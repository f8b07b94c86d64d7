"""One direction: what stages hold is held, what they end ends, and the rest passes at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from actors.chance import Durations, Sizes
from actors.streams import HashedStream
from transports.faults.black_hole import BlackHole
from transports.faults.byte_delay import ByteDelay
from transports.faults.byte_fault import ByteFault, End, Pause, Piece, Site, Stage, through
from transports.faults.byte_partition import BytePartition
from transports.faults.close_after import CloseAfter
from transports.faults.half_close import HalfClose
from transports.faults.reset import Reset
from transports.faults.slice import Slice
from transports.faults.slow_close import SlowClose
from transports.faults.throttle import Throttle
from transports.flow import CHUNK_BYTES, QUEUE_LIMIT_BYTES, Flow, Mark
from transports.proxy import Time
from transports.units import Size


class Rig:
    """A flow between a near and a far end, in memory."""

    def __init__(self) -> None:
        self.near, source = memory_stream_pair()
        sink, self.far = memory_stream_pair()
        self.source, self.sink = source, sink
        self.time = Time()
        self.ended: list[End] = []
        self.finished = 0
        self.flow = Flow(source, sink, self.time, self.ended.append, self._finish)

    def _finish(self) -> None:
        self.finished += 1

    def stage(self, fault: ByteFault) -> Stage:
        """A fault's stage on this flow."""
        return fault.stage(Site(self.time.now_us, HashedStream(b"k", "flow"), lambda: None))

    def put(self, *faults: ByteFault) -> list[Stage]:
        """Put faults in place."""
        stages = [self.stage(fault) for fault in faults]
        self.flow.set_stages(stages)
        return stages

    def heal(self, stage: Stage) -> None:
        """Take one away."""
        stage.healed = True
        self.flow.set_stages([one for one in self.flow.stages if one is not stage])

    async def far_end(self) -> bytes:
        """All that arrives up to the end."""
        arrived = b""
        async for data in self.far:
            arrived += data
        return arrived

    @property
    def held_bytes(self) -> int:
        """How much waits in the flow."""
        return self.flow._queued_bytes


class Broken(trio.abc.ReceiveStream):
    """A source whose peer has reset it."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        raise trio.BrokenResourceError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@asynccontextmanager
async def rig(*faults: ByteFault) -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery:
        one = Rig()
        one.put(*faults)
        nursery.start_soon(one.flow.read)
        nursery.start_soon(one.flow.write)
        yield one
        nursery.cancel_scope.cancel()


def delay(text: str) -> ByteDelay:
    return ByteDelay(delay=Durations.parse(text))


async def test_without_a_stage_bytes_and_the_end_pass() -> None:
    async with rig() as one:
        await one.near.send_all(b"hello")
        assert await one.far.receive_some() == b"hello"
        await one.near.send_eof()
        assert await one.far.receive_some() == b""
        assert (one.finished, one.ended) == (1, [])


async def test_a_delay_holds_each_chunk_from_when_it_came(autojump_clock: MockClock) -> None:
    async with rig(delay("2s")) as one:
        await one.near.send_all(b"a")
        await trio.sleep(1)
        await one.near.send_all(b"b")
        await one.near.send_eof()
        arrived = []
        while data := await one.far.receive_some():
            arrived.append((data, round(autojump_clock.current_time(), 3)))
        assert arrived == [(b"a", 2.0), (b"b", 3.0)], "not one after the other"
        assert round(autojump_clock.current_time(), 3) == 3.0, "the end comes right behind"


async def test_two_delays_add_up_for_each_chunk(autojump_clock: MockClock) -> None:
    async with rig(delay("2s"), delay("3s")) as one:
        for data in (b"a", b"b"):
            await one.near.send_all(data)
            await wait_all_tasks_blocked()
        await one.near.send_eof()
        assert await one.far_end() == b"ab"
        assert round(autojump_clock.current_time(), 3) == 5.0


async def test_what_is_held_goes_on_at_once_when_it_heals(autojump_clock: MockClock) -> None:
    async with rig(delay("100s"), delay("2s")) as one:
        await one.near.send_all(b"abc")
        await trio.sleep(1)
        one.heal(one.flow.stages[0])
        assert await one.far.receive_some() == b"abc"
        assert round(autojump_clock.current_time(), 3) == 3.0, "the other one still has its say"


async def test_a_partition_holds_all_and_loses_nothing(autojump_clock: MockClock) -> None:
    async with rig(BytePartition()) as one:
        await one.near.send_all(b"abc")
        await one.near.send_eof()
        with trio.move_on_after(1_000):
            await one.far.receive_some()
        assert autojump_clock.current_time() == 1_000
        one.heal(one.flow.stages[0])
        assert await one.far_end() == b"abc"
        assert one.finished == 1


async def test_a_stage_that_comes_later_acts_from_then_on(autojump_clock: MockClock) -> None:
    async with rig() as one:
        await one.near.send_all(b"abc")
        assert await one.far.receive_some() == b"abc"
        one.put(delay("2s"))
        await one.near.send_all(b"def")
        assert await one.far.receive_some() == b"def"
        assert round(autojump_clock.current_time(), 3) == 2.0


async def test_what_waits_is_bounded_and_the_sender_is_held_back() -> None:
    async with rig(BytePartition()) as one:
        for _ in range(12):
            await one.near.send_all(bytes(CHUNK_BYTES))
            await wait_all_tasks_blocked()
        assert QUEUE_LIMIT_BYTES < one.held_bytes <= QUEUE_LIMIT_BYTES + CHUNK_BYTES + 256
        one.heal(one.flow.stages[0])
        await one.near.send_eof()
        assert await one.far_end() == bytes(12 * CHUNK_BYTES)
        assert one.held_bytes == 0


async def test_single_bytes_are_bounded_too() -> None:
    class Trickle(Broken):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            await trio.lowlevel.checkpoint()
            return b"x"

    flow = Flow(Trickle(), memory_stream_pair()[0], Time(), lambda _: None, lambda: None)
    flow.set_stages([BytePartition().stage(Site(lambda: 0, HashedStream(b"k", ""), lambda: None))])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flow.read)
        await wait_all_tasks_blocked()
        assert len(flow._queue) < 1_100
        nursery.cancel_scope.cancel()


async def test_a_throttle_takes_the_time_of_all_bytes(autojump_clock: MockClock) -> None:
    async with rig(Throttle(rate=Size(100))) as one:
        await one.near.send_all(bytes(1_000))
        await one.near.send_eof()
        assert await one.far_end() == bytes(1_000)
        assert round(autojump_clock.current_time(), 3) == 10.0


async def test_pieces_behind_each_other_keep_their_pauses(autojump_clock: MockClock) -> None:
    faults = Slice(size=Sizes.parse("2B"), pause=Durations.parse("1s")), delay("10s")
    async with rig(*faults) as one:
        await one.near.send_all(b"abcdef")
        await one.near.send_eof()
        assert await one.far_end() == b"abcdef"
        assert round(autojump_clock.current_time(), 3) == 12.0


async def test_a_black_hole_swallows_and_its_healing_leaves_a_gap() -> None:
    async with rig(BlackHole()) as one:
        await one.near.send_all(b"lost")
        await wait_all_tasks_blocked()
        one.heal(one.flow.stages[0])
        await one.near.send_all(b"there")
        assert await one.far.receive_some() == b"there"


async def test_a_stage_ends_the_connection_after_what_passed() -> None:
    for fault, end in ((CloseAfter, End.CLOSE), (Reset, End.RESET)):
        async with rig(fault(limit=Size(3))) as one:
            await one.near.send_all(b"abcdef")
            assert await one.far.receive_some() == b"abc"
            await wait_all_tasks_blocked()
            assert one.ended == [end]


async def test_a_half_close_ends_the_direction_and_swallows_the_rest() -> None:
    async with rig(HalfClose(limit=Size(3))) as one:
        await one.near.send_all(b"abcdef")
        assert await one.far_end() == b"abc"
        await one.near.send_all(b"more")
        await wait_all_tasks_blocked()
        one.heal(one.flow.stages[0])
        await one.near.send_all(b"and more")
        await one.near.send_eof()
        await wait_all_tasks_blocked()
        assert (one.finished, one.ended) == (1, [])


async def test_a_half_close_by_time_comes_behind_what_is_held(autojump_clock: MockClock) -> None:
    async with rig(delay("5s")) as one:
        await one.near.send_all(b"abc")
        await wait_all_tasks_blocked()
        one.flow.half_close()
        assert await one.far_end() == b"abc"
        assert one.finished == 1
        assert round(autojump_clock.current_time(), 3) == 5.0


async def test_a_half_close_waits_for_what_is_being_sent() -> None:
    async with rig() as one:
        gate = trio.Event()
        pump = one.sink.send_stream.send_all_hook

        async def later() -> None:
            await gate.wait()
            assert pump is not None
            await pump()

        one.sink.send_stream.send_all_hook = later
        await one.near.send_all(b"abc")
        await wait_all_tasks_blocked()
        one.put(HalfClose())
        one.flow.half_close()
        await wait_all_tasks_blocked()
        assert one.finished == 0
        gate.set()
        assert await one.far_end() == b"abc"


async def test_a_slow_close_holds_the_end_alone(autojump_clock: MockClock) -> None:
    async with rig(SlowClose(delay=Durations.parse("4s"))) as one:
        await one.near.send_all(b"abc")
        await one.near.send_eof()
        assert await one.far.receive_some() == b"abc"
        assert autojump_clock.current_time() == 0
        assert await one.far.receive_some() == b""
        assert round(autojump_clock.current_time(), 3) == 4.0


async def test_a_broken_source_is_a_reset_behind_what_it_sent(autojump_clock: MockClock) -> None:
    async with rig(delay("3s")) as one:
        await one.near.send_all(b"abc")
        await wait_all_tasks_blocked()
        one.flow._put(Mark.RST)
        await trio.sleep(2)
        assert one.ended == []
        assert await one.far.receive_some() == b"abc"
        await wait_all_tasks_blocked()
        assert one.ended == [End.RESET]
        assert round(autojump_clock.current_time(), 3) == 3.0


async def test_a_source_that_is_reset_resets_the_connection() -> None:
    ended: list[End] = []
    flow = Flow(Broken(), memory_stream_pair()[0], Time(), ended.append, lambda: None)
    await flow.read()
    assert ended == [End.RESET]


async def test_a_broken_sink_is_a_reset() -> None:
    async with rig() as one:
        await one.far.aclose()
        await one.near.send_all(b"abc")
        await wait_all_tasks_blocked()
        assert one.ended == [End.RESET]


async def test_settling_waits_for_what_is_held(autojump_clock: MockClock) -> None:
    async with rig(delay("7s")) as one:
        await one.flow.settle()
        assert autojump_clock.current_time() == 0
        await one.near.send_all(b"abc")
        await wait_all_tasks_blocked()
        await one.flow.settle()
        assert round(autojump_clock.current_time(), 3) == 7.0


async def test_what_is_abandoned_is_held_no_longer() -> None:
    async with rig(BytePartition()) as one:
        for data in (b"abc", b"def"):
            await one.near.send_all(data)
            await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.flow.settle)
            await wait_all_tasks_blocked()
            one.flow.abandon()
        assert not one.flow._queue


def test_through_no_stage_bytes_stay_as_they_are() -> None:
    assert list(through((), b"abc", 5, lambda: 9)) == [(None, Piece(b"abc", 5))]


def test_a_pause_belongs_to_its_stage() -> None:
    site = Site(lambda: 0, HashedStream(b"k", "x"), lambda: None)
    first, second = delay("1s").stage(site), BytePartition().stage(site)
    steps = list(through((first, second), b"abc", 5, lambda: 2_000_000))
    assert steps == [
        (first, Pause(1_000_005)),
        (second, Pause(None)),
        (None, Piece(b"abc", 1_000_005)),
    ]


def test_what_a_healed_stage_lets_go_leaves_it_now() -> None:
    site = Site(lambda: 0, HashedStream(b"k", "x"), lambda: None)
    first, second = delay("100s").stage(site), delay("1s").stage(site)
    steps = through((first, second), b"abc", 0, lambda: 5)
    next(steps)
    first.healed = True
    assert next(steps) == (second, Pause(1_000_005))
