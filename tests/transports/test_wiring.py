"""The connections of a scenario: which faults meet which, and what stands on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.chance import Durations, Sizes
from tests.contracts.fault import Chance, FakeWorld
from transports.faults.black_hole import BlackHole
from transports.faults.byte_fault import DOWN, UP, ByteFault, Ends, Stage
from transports.faults.reset import Reset
from transports.faults.slice import Slice
from transports.units import Duration
from transports.wiring import Wiring

S = 1_000_000


class Line:
    """A connection that shows what stands on it."""

    def __init__(self) -> None:
        self.stages: Mapping[Any, tuple[Stage, ...]] = {}

    def set_stages(self, stages: Mapping[Any, tuple[Stage, ...]]) -> None:
        self.stages = stages

    def count(self) -> tuple[int, int]:
        """How many stages stand on the way up, and down."""
        return len(self.stages[UP]), len(self.stages[DOWN])


class Rig:
    """A world whose connections a test opens and closes."""

    def __init__(self, *faults: ByteFault) -> None:
        self.world = FakeWorld()
        self.faults = [fault.at_work() for fault in faults]
        for fault in self.faults:
            fault.attach(self.world, ("relay", "server"))
        self.wiring = Wiring(self.world, self.faults)
        self.begin()

    def begin(self) -> None:
        self.wiring.reset()
        self.world.now_us = 0
        for fault in self.faults:
            fault.start(Chance(lambda: 0.5))

    def healed_us(self) -> int | None:
        """When the first fault had healed."""
        return self.faults[0].healed_us

    def open(self, client: str = "relay", server: str = "server") -> tuple[Line, Ends]:
        line = Line()
        return line, self.wiring.opened(client, server, line)


def test_it_concerns_those_that_a_fault_names() -> None:
    wiring = Rig(Reset(source="relay*", target="server")).wiring
    assert wiring.concerns("relay-2", "server")
    assert wiring.concerns("server", "relay-2"), "whoever dials"
    assert not wiring.concerns("agent", "server")


def test_a_fault_meets_open_connections_when_it_begins_and_new_ones_as_they_come() -> None:
    rig = Rig(BlackHole(source="relay", at=Duration(10 * S), lasts=Duration(5 * S)))
    (early, _), (other, _) = rig.open(), rig.open("agent")
    assert early.count() == (0, 0)
    rig.world.until(10 * S)
    assert early.count() == (1, 0), "on the way that it names"
    assert other.count() == (0, 0)
    late, _ = rig.open()
    assert late.count() == (1, 0)
    stages = [*early.stages[UP], *late.stages[UP]]
    rig.world.until(15 * S)
    assert (early.count(), late.count()) == ((0, 0), (0, 0))
    assert all(stage.healed for stage in stages)
    assert rig.open()[0].count() == (0, 0)
    assert rig.healed_us() == 15 * S


def test_stages_stand_in_the_order_of_the_faults_whoever_began_first() -> None:
    rig = Rig(
        Slice(name="one", size=Sizes.parse("1B"), at=Duration(5 * S)),
        BlackHole(name="two"),
    )
    line, _ = rig.open()
    rig.world.until(5 * S)
    kinds = [type(stage).__name__ for stage in line.stages[UP]]
    assert kinds == ["Slicing", "Swallowing"]


def test_nth_and_every_count_the_connections_of_each_two_by_themselves() -> None:
    rig = Rig(BlackHole(name="second", nth=2), BlackHole(name="thirds", every=3))
    rig.world.until(0)
    ours = [rig.open()[0].count()[0] for _ in range(6)]
    theirs = [rig.open("agent")[0].count()[0] for _ in range(3)]
    assert ours == [0, 1, 1, 0, 0, 1]
    assert theirs == [0, 1, 1]


def test_chance_depends_on_the_connection_and_not_on_the_order() -> None:
    def picked(pairs: list[tuple[str, str]]) -> dict[Ends, int]:
        rig = Rig(BlackHole(probability=0.5))
        rig.world.until(0)
        opened = [rig.open(*pair) for pair in pairs]
        return {ends: line.count()[0] for line, ends in opened}

    pairs = [(name, "server") for name in ("a", "b") for _ in range(20)]
    there, back = picked(pairs), picked(pairs[::-1])
    assert there == back
    assert 5 < sum(there.values()) < 35


def test_what_is_over_is_forgotten_and_an_nth_fault_has_healed_then() -> None:
    rig = Rig(Reset(nth=1))
    rig.world.until(3 * S)
    line, ends = rig.open()
    (stage,) = line.stages[UP]
    assert rig.healed_us() is None
    stage.on_due()
    assert rig.faults[0].fired == 1
    assert rig.healed_us() is None, "its connection is still there"
    rig.wiring.closed(ends)
    assert rig.healed_us() == 3 * S
    assert rig.open()[0].count() == (0, 0)


def test_an_nth_fault_may_still_act_while_two_have_not_had_so_many_connections() -> None:
    rig = Rig(Reset(nth=2))
    rig.world.until(S)
    _, first = rig.open("agent")
    rig.wiring.closed(first)
    for line, ends in (rig.open(), rig.open()):
        for stage in line.stages[UP]:
            stage.on_due()
        rig.wiring.closed(ends)
    assert rig.faults[0].fired == 1
    assert rig.healed_us() is None
    line, second = rig.open("agent")
    line.stages[UP][0].on_due()
    rig.wiring.closed(second)
    assert rig.healed_us() == S


def test_it_says_which_fault_was_the_last_to_do_something() -> None:
    rig = Rig(BlackHole(name="hole"))
    rig.world.until(0)
    line, ends = rig.open()
    assert rig.wiring.culprit("relay", "server") is rig.wiring.blamed(ends) is None
    rig.wiring.broke(ends)
    assert rig.world.done == [], "it was no fault"
    list(line.stages[UP][0].on_bytes(b"x", 0))
    assert rig.wiring.culprit("server", "relay") == rig.wiring.blamed(ends) == "hole"
    rig.wiring.broke(ends)
    assert rig.world.done == [(0, "disconnect", "relay")]
    rig.wiring.closed(ends)
    assert rig.wiring.blamed(ends) is None
    assert rig.wiring.culprit("relay", "server") == "hole"
    rig.begin()
    assert rig.wiring.culprit("relay", "server") is None


def test_a_connection_that_ends_as_another_gets_its_stages_gets_none() -> None:
    rig = Rig(BlackHole(at=Duration(S)))
    (one, _), (_, other_ends) = rig.open(), rig.open()

    def ends_the_other(stages: Mapping[Any, tuple[Stage, ...]]) -> None:
        one.stages = stages
        rig.wiring.closed(other_ends)

    one.set_stages = ends_the_other  # type: ignore[method-assign]  # what a reset does
    rig.world.until(S)
    assert one.count() == (1, 1)


def test_a_new_replication_has_no_connections_and_counts_anew() -> None:
    rig = Rig(BlackHole(nth=1, at=Duration(S)))
    _, first = rig.open()
    rig.begin()
    line, again = rig.open()
    assert first == again == Ends("relay", "server", 1)
    rig.world.until(S)
    assert line.count() == (1, 1)


def test_an_event_begins_it() -> None:
    rig = Rig(BlackHole(on="run.started", at=Duration(2 * S), lasts=Duration(S)))
    line, _ = rig.open()
    rig.world.until(S)
    rig.world.happen("run.started")
    rig.world.happen("run.started")
    assert rig.healed_us() == 4 * S
    rig.world.until(3 * S)
    assert line.count() == (1, 1)
    rig.world.until(4 * S)
    assert line.count() == (0, 0)


def test_a_stage_s_time_is_the_world_s() -> None:
    rig = Rig(Slice(size=Sizes.parse("1B"), pause=Durations.parse("3s")))
    rig.world.until(0)
    line, _ = rig.open()
    (stage,) = line.stages[UP]
    rig.world.now_us = 7 * S
    assert stage.site.now_us() == 7 * S
