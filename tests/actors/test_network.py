"""The trio host's network: back-pressure, bounds, broken wires and whose name a message bears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from actors.errors import ActorFailedError, SimulationError
from actors.mailbox import Mailbox
from actors.network import EAGER_LIMIT, JOIN_LIMIT_S, QUEUE_LIMIT, Network
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import Hosted, by_actor
from tests.actors.puppets import Say, World, say
from tests.contracts.fault import FakeWorld
from transports.codec import FrameError
from transports.connection import BrokenLinkError
from transports.envelope import Envelope
from transports.faults.black_hole import BlackHole
from transports.local import Handle, TcpTransport
from transports.units import Duration
from transports.wire import WireCodec
from transports.wiring import Wiring

CODEC = WireCodec([Say])


class TestWire:
    """One end of a wire that a test holds the other end of."""

    __test__ = False

    def __init__(self) -> None:
        self.sent, self.taken = trio.open_memory_channel[bytes](0)
        self.given, self.received = trio.open_memory_channel[bytes](0)
        self.reads = 0
        self.room = 0  # for frames that are taken at once
        self.taken_at_once: list[bytes] = []

    def send_nowait(self, frame: bytes) -> bool:
        if self.room:
            self.room -= 1
            self.taken_at_once.append(frame)
            return True
        return False

    async def send(self, frame: bytes) -> None:
        try:
            await self.sent.send(frame)
        except trio.BrokenResourceError:
            raise BrokenLinkError("cut") from None

    async def receive(self) -> bytes:
        self.reads += 1
        try:
            return await self.received.receive()
        except trio.EndOfChannel:
            raise BrokenLinkError("cut") from None

    def cut(self) -> None:
        """Break it, as the other end would."""
        self.taken.close()
        self.given.close()


class TestTransport:
    """Hands out wires when a test says so."""

    __test__ = False

    def __init__(self, eager: bool = False) -> None:
        self.eager = eager
        self.in_real_time = False
        self.joined: list[tuple[str, str]] = []
        self.reasons: list[str] = []

    async def open(self, nursery: trio.Nursery, names: Sequence[str], handle: Handle) -> None:
        self.nursery, self.names, self.handle = nursery, names, handle
        await trio.lowlevel.checkpoint()

    def join(self, one: str, other: str) -> None:
        self.joined.append((one, other))

    def connect(self, me: str, peer: str) -> TestWire:
        """Let one end come up."""
        wire = TestWire()

        async def hold() -> None:
            try:
                await self.handle(me, peer, wire)
            except (BrokenLinkError, FrameError) as error:
                self.reasons.append(str(error))

        self.nursery.start_soon(hold)
        return wire


class Rig:
    """A network of a and b on test wires, whose mailbox for a is small."""

    def __init__(self) -> None:
        self.transport = TestTransport()
        self.box = Mailbox(limit=2)
        self.lost: list[tuple[int, str]] = []
        self.network = Network(self.transport, CODEC, self.arrive, self.lose)

    async def arrive(self, me: str, envelope: Envelope[Any]) -> None:
        assert me == "a"
        await self.box.put(envelope)

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        self.lost.append((envelope.id, fault))

    def send(self, *numbers: int) -> None:
        for number in numbers:
            before = len(self.lost)
            queued = self.network.send(Envelope(number, "a", "b", 0, 0, Say(str(number))), 0)
            assert queued == (len(self.lost) == before), "either it is queued or it is lost"


async def at_rest(network: Network) -> bool:
    """Whether nothing waits to be written, once all have done what they can."""
    await trio.testing.wait_all_tasks_blocked()
    return network.idle


def frame(number: int, source: str = "b", target: str = "a") -> bytes:
    return CODEC.encode(Envelope(number, source, target, 0, 0, Say(str(number))))


async def test_messages_wait_for_their_wire_and_go_in_order(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1, 2)
    assert rig.transport.joined == [("a", "b")], "joined by the first message"
    assert rig.network.idle is False
    wire = rig.transport.connect("a", "b")
    rig.send(3)
    assert [await wire.taken.receive() for _ in range(3)] == [
        frame(number, "a", "b") for number in (1, 2, 3)
    ]
    assert await at_rest(rig.network)
    assert rig.transport.joined == [("a", "b")]
    assert rig.lost == []


async def test_what_a_wire_takes_at_once_is_not_queued_and_overtakes_nothing(
    nursery: trio.Nursery,
) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    assert await wire.taken.receive() == frame(1, "a", "b")
    assert await at_rest(rig.network)
    wire.room = 2
    rig.send(2, 3)
    assert rig.network.idle
    assert wire.taken_at_once == [frame(2, "a", "b"), frame(3, "a", "b")]
    rig.send(4)
    wire.room = 9
    rig.send(5)
    await trio.testing.wait_all_tasks_blocked()
    rig.send(6)
    assert [await wire.taken.receive() for _ in range(3)] == [
        frame(number, "a", "b") for number in (4, 5, 6)
    ]
    assert len(wire.taken_at_once) == 2, "while some wait, the others wait behind them"
    assert rig.lost == []


async def test_a_full_mailbox_stops_reading_its_wire(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    for number in (1, 2, 3):
        await wire.given.send(frame(number))
    await trio.testing.wait_all_tasks_blocked()
    assert (len(rig.box), wire.reads) == (2, 3), "the third is read, and waits for room"
    with pytest.raises(trio.WouldBlock):
        wire.given.send_nowait(frame(4))
    assert (await rig.box.get()).id == 1
    await wire.given.send(frame(4))
    assert [(await rig.box.get()).id for _ in range(3)] == [2, 3, 4]


async def test_a_queue_that_nobody_reads_is_bounded(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(*range(1, QUEUE_LIMIT + 3))
    assert rig.lost == [(QUEUE_LIMIT + 1, "queue full"), (QUEUE_LIMIT + 2, "queue full")]


async def test_a_broken_wire_loses_what_it_did_not_write_until_it_is_up_again(
    nursery: trio.Nursery,
) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    rig.send(2, 3)
    wire.cut()
    await trio.testing.wait_all_tasks_blocked()
    assert rig.lost == [(2, "disconnected"), (3, "disconnected")], "1 was under way"
    assert rig.transport.reasons == ["cut"]
    rig.send(4)
    assert rig.lost[2:] == [(4, "disconnected")]
    wire = rig.transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    rig.send(5)
    assert await wire.taken.receive() == frame(5, "a", "b")
    assert len(rig.lost) == 3


async def test_a_new_wire_ends_the_one_whose_break_was_not_noticed(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    old = rig.transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    rig.send(2)
    new = rig.transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    assert rig.transport.reasons == ["it has connected anew"]
    rig.send(3)
    assert [await new.taken.receive() for _ in range(2)] == [
        frame(number, "a", "b") for number in (2, 3)
    ]
    old.cut()
    await trio.testing.wait_all_tasks_blocked()
    rig.send(4)
    assert await new.taken.receive() == frame(4, "a", "b"), "the old one's end broke nothing"
    assert rig.lost == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"\x93", "not an envelope"),
        (frame(1, target="c"), "a message to c, but this is a"),
    ],
)
async def test_what_is_no_message_to_us_breaks_the_wire(
    nursery: trio.Nursery, bad: bytes, reason: str
) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    await wire.given.send(bad)
    await trio.testing.wait_all_tasks_blocked()
    [told] = rig.transport.reasons
    assert reason in told
    assert len(rig.box) == 0


async def test_a_message_bears_the_name_of_the_wire_that_it_came_by(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    await wire.given.send(frame(1, source="mallory"))
    assert (await rig.box.get()).source == "b"


async def test_once_it_stops_reading_it_still_writes(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    rig.send(1)
    wire = rig.transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    rig.network.stop_reading()
    rig.send(2)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(trio.WouldBlock):
        wire.given.send_nowait(frame(1))
    assert [await wire.taken.receive() for _ in range(2)] == [
        frame(number, "a", "b") for number in (1, 2)
    ]


async def test_all_are_joined_before_the_first_turn_if_joining_takes_time(
    nursery: trio.Nursery,
) -> None:
    transport = TestTransport(eager=True)
    rig = Rig()
    network = Network(transport, CODEC, rig.arrive, rig.lose)
    opened = trio.Event()

    async def open_it() -> None:
        await network.open(nursery, ["a", "b"])
        opened.set()

    nursery.start_soon(open_it)
    await trio.testing.wait_all_tasks_blocked()
    assert transport.joined == [("a", "b")]
    transport.connect("a", "b")
    await trio.testing.wait_all_tasks_blocked()
    assert not opened.is_set(), "one end is not enough"
    transport.connect("b", "a")
    await opened.wait()


async def test_two_that_cannot_be_joined_are_named(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    rig = Rig()
    network = Network(TestTransport(eager=True), CODEC, rig.arrive, rig.lose)
    with pytest.raises(SimulationError, match="a and b could not be joined within 10 s"):
        await network.open(nursery, ["a", "b"])
    assert autojump_clock.current_time() >= JOIN_LIMIT_S


async def test_a_message_without_bytes_is_told_to_its_sender(nursery: trio.Nursery) -> None:
    rig = Rig()
    await rig.network.open(nursery, ["a", "b"])
    with pytest.raises(ActorFailedError, match=r"a failed on its Say to b at 0\.5 s"):
        rig.network.send(Envelope(1, "a", "b", 0, 0, Say("\ud800")), 500_000)


# In a world


def test_two_actors_that_flood_each_other_do_not_lock_up() -> None:
    trace = Trace()

    def flood(context: Any, _timer: str) -> None:
        other = "b" if context.name == "a" else "a"
        for number in range(600):
            context.send(other, Say(str(number)))

    acts = {"start": lambda c: c.set_timer("t", 1), "timer": flood}
    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, mailbox_limit=4), a=acts, b=acts, until_us=10
    )
    seen = world.run(recorder=trace)
    lost = trace.kinds("drop")
    assert {record[4] for record in lost} == {"queue full"}
    for name in "ab":
        heard = [int(what[1]) for what in by_actor(seen, name) if len(what) == 2]
        assert heard == sorted(heard)
        assert len(heard) >= QUEUE_LIMIT
    assert len(trace.kinds("message")) + len(lost) == 2 * 600, "each is heard or known to be lost"


def test_a_message_to_oneself_is_lost_if_the_mailbox_is_full() -> None:
    trace = Trace()
    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, mailbox_limit=2),
        a={"start": lambda c: [say("a", str(n))(c) for n in range(4)]},
    )
    assert [text for _, text in by_actor(world.run(recorder=trace), "a")] == ["0", "1"]
    assert [(record[4], record[5].body.text) for record in trace.kinds("drop")] == [
        ("mailbox full", "2"),
        ("mailbox full", "3"),
    ]


async def test_detours_take_sockets_so_fewer_are_joined_beforehand(nursery: trio.Nursery) -> None:
    names = [str(number) for number in range(13)]
    pairs = len(names) * (len(names) - 1) // 2
    assert pairs < EAGER_LIMIT < 3 * pairs

    def network(*faults: BlackHole) -> Network:
        transport = TcpTransport()
        transport.interpose(Wiring(FakeWorld(), [fault.at_work() for fault in faults]), 1.0)
        return Network(transport, CODEC, Rig().arrive, lambda *_: None)

    few, many = network(BlackHole(source="1", target="2")), network(BlackHole())
    await few.open(nursery, names)
    await many.open(nursery, names)
    assert len(few._ends) == 2 * pairs
    assert many._ends == {}, "each two with their first message"
    nursery.cancel_scope.cancel()


def test_what_a_broken_connection_took_is_told_when_both_ends_know() -> None:
    hole = BlackHole(name="hole", source="b", lasts=Duration(10 * S), close=Duration(3 * S))

    def over_tcp(seed: int, cell: str) -> TrioWorld:
        return TrioWorld(seed, cell, transport=TcpTransport(), clock=None, speed=200)

    world = World(
        host=over_tcp,
        faults=[hole],
        until_us=8 * S,
        a={},
        b={"start": lambda c: c.set_timer("t", S), "timer": lambda c, _: say("a", "x")(c)},
    )
    trace = Trace()
    assert by_actor(world.run(0, trace), "a") == []
    (drop,) = (record for record in trace.records if record[1] == "drop")
    assert (drop[3], drop[4]) == ("a", "hole")
    assert drop[2] < 7 * S


def test_nothing_that_is_under_way_at_the_end_is_told_as_lost() -> None:
    trace = Trace()

    def flood(context: Any, _timer: str) -> None:
        for number in range(100):
            context.send("b", Say(str(number)))

    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, mailbox_limit=1),
        a={"start": lambda c: c.set_timer("t", 9), "timer": flood},
        b={},
        until_us=10,
    )
    world.at(5, world.sim.suspend, "b", "it", True)
    world.run(recorder=trace)
    assert trace.kinds("drop") == []
