"""Suspend: a machine sleeps, and time stands still for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S, Trace
from tests.actors.puppets import World, asks, say
from tests.contracts.fault import FakeWorld, StrikingContract
from transports.faults.suspend import Suspend
from transports.units import Duration

NIGHT = Suspend(name="night", actor="b", at=Duration(5 * S), lasts=Duration(100 * S))


class TestSuspend(StrikingContract):
    """The suite on suspend."""

    kind = Suspend
    act = "suspend"
    fields: Mapping[str, Any] = {"actor": "relay", "for": "20s"}

    def test_it_wakes_after_its_time(self) -> None:
        world = FakeWorld()
        self.works(world=world, at="1s")
        world.until(100 * S)
        assert world.done == [(1 * S, "suspend", "relay"), (21 * S, "resume", "relay")]

    def test_a_sleep_without_an_end_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="needs `for`"):
            msgspec.convert({"kind": "suspend", "actor": "relay"}, Suspend)


def test_timers_and_time_outs_go_on_where_they_were() -> None:
    world = World(
        faults=[NIGHT],
        until_us=1_000 * S,
        a={},
        b={
            "start": lambda c: [
                c.set_timer("t", 8 * S),
                c.set_timer("far", 300 * S),
                asks(9 * S, "a")(c),
            ]
        },
    )
    trace = Trace()
    seen = [entry for entry in world.run(0, trace) if entry[1] == "b"]
    assert seen == [
        (8 * S, "b", "timer", "t"),  # by its own clock
        (9 * S, "b", "unanswered", "question"),
        (300 * S, "b", "timer", "far"),
    ]
    assert [record[2] for record in trace.kinds("timer")] == [108 * S, 400 * S]
    assert [record[2] for record in trace.kinds("unanswered")] == [109 * S]


def test_messages_wait_and_come_in_order_when_it_wakes() -> None:
    world = World(
        faults=[NIGHT],
        until_us=1_000 * S,
        a={
            "start": lambda c: [c.set_timer(str(at), at * S) for at in (4, 6, 7)],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={},
    )
    trace = Trace()
    world.run(0, trace)
    heard = [(record[2], record[4].body.text) for record in trace.kinds("message")]
    assert heard == [(4 * S, "4"), (105 * S, "6"), (105 * S, "7")]


def test_one_that_is_killed_in_its_sleep_loses_what_waits() -> None:
    world = World(
        faults=[NIGHT],
        until_us=1_000 * S,
        a={
            "start": lambda c: c.set_timer("6", 6 * S),
            "timer": lambda c, name: say("b", name)(c),
        },
        b={},
    )
    sim: Any = world.sim
    sim.on_begin.append(lambda: sim.at(50 * S, lambda: sim.kill("b", "it")))
    trace = Trace()
    world.run(0, trace)
    assert [record[4] for record in trace.kinds("drop")] == ["down"]
    assert trace.kinds("message") == []
