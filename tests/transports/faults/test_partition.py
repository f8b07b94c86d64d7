"""Partition: two sides don't reach each other while it lasts."""

from __future__ import annotations

from tests.actors.harness import S, Trace
from tests.actors.puppets import World, asks, replies, say
from tests.contracts.fault import LinkFaultContract, get
from transports.faults.partition import Partition
from transports.units import Duration
from transports.verdict import LOST


class TestPartition(LinkFaultContract):
    """The suite on partition."""

    kind = Partition

    def test_it_cuts_both_ways_or_one(self) -> None:
        both = self.make(**{"from": "relay", "to": "server"})
        assert both.acts_on("relay", "server")
        assert both.acts_on("server", "relay")
        assert not both.acts_on("agent", "server")
        one = self.make(**{"from": "relay", "to": "server", "both": False})
        assert not one.acts_on("server", "relay")

    def test_everything_is_lost(self) -> None:
        assert self.works().judge(get(1)) == LOST


def cut(at_us: int, for_us: int, both: bool = True) -> Partition:
    return Partition(
        name="cut", source="a", target="b", at=Duration(at_us), lasts=Duration(for_us), both=both
    )


def test_questions_into_a_partition_stay_unanswered_and_it_heals() -> None:
    world = World(
        faults=[cut(0, 5 * S)],
        a={
            "start": lambda c: [asks(2 * S)(c), c.set_timer("again", 5 * S)],
            "timer": lambda c, _: asks(2 * S)(c),
        },
        b={"say": replies()},
    )
    trace = Trace()
    assert world.run(0, trace) == [
        (2 * S, "a", "unanswered", "question"),
        (5 * S, "a", "timer", "again"),
        (5 * S, "b", "question"),
        (5 * S, "a", "answer 0"),
    ]
    assert [record[4] for record in trace.kinds("drop")] == ["cut"]


def test_one_way_loses_the_answer_alone() -> None:
    one_way = Partition(name="cut", source="b", target="a", both=False)
    world = World(faults=[one_way], a={"start": asks(2 * S)}, b={"say": replies()})
    assert world.run() == [(0, "b", "question"), (2 * S, "a", "unanswered", "question")]


def test_what_is_under_way_when_it_begins_arrives() -> None:
    world = World(
        faults=[cut(1 * S, 5 * S)],
        links={("a", "b"): lambda: 3 * S},
        a={"start": say("b", "before")},
        b={},
    )
    assert world.run() == [(3 * S, "b", "before")]
