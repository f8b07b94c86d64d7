"""Clock drift: a machine's clocks go too fast or too slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import World, asks, say
from tests.contracts.fault import FakeWorld, StrikingContract
from transports.clock import EPOCH_US
from transports.faults.clock_drift import ClockDrift
from transports.units import Duration


class TestClockDrift(StrikingContract):
    """The suite on clock drift."""

    kind = ClockDrift
    act = "rate 950000"
    fields: Mapping[str, Any] = {"actor": "relay", "rate": 0.95, "for": "20s"}

    def test_it_goes_right_after_its_time(self) -> None:
        world = FakeWorld()
        self.works(world=world, at="1s")
        world.until(100 * S)
        assert world.done == [(1 * S, "rate 950000", "relay"), (21 * S, "rate 1000000", "relay")]

    @pytest.mark.parametrize("rate", [0, -1, 0.05, 11, "fast"])
    def test_a_rate_that_no_clock_has_is_refused(self, rate: Any) -> None:
        with pytest.raises(msgspec.ValidationError, match="rate"):
            self.make(rate=rate)

    def test_one_without_an_end_is_refused(self) -> None:
        table = {"kind": "clock_drift", "actor": "relay", "rate": 2.0}
        with pytest.raises(msgspec.ValidationError, match="needs `for`"):
            msgspec.convert(table, ClockDrift)

    def test_a_program_can_t_be_hit(self) -> None:
        assert not self.kind.on_programs


@COMMITTING_HOST
def test_what_is_under_way_arrives_and_timers_and_time_outs_go_by_the_clock(host: MakeHost) -> None:
    stamps: list[int] = []

    def start(context: Any) -> None:
        asks(30 * S, "a")(context)
        context.set_timer("before", 15 * S)
        context.set_timer("after", 50 * S)

    fields: dict[str, Any] = {"at": Duration(10 * S), "lasts": Duration(20 * S)}
    world = World(
        host=host,
        faults=[ClockDrift(name="slow", actor="b", rate=0.5, **fields)],
        links={("a", "b"): lambda: 4 * S},
        a={
            "start": lambda c: c.set_timer("mail", 8 * S),
            "timer": lambda c, name: say("b", name)(c),
        },
        b={
            "start": start,
            "timer": lambda c, _: stamps.append((c.stamp_us - EPOCH_US) // S),
        },
    )
    trace = Trace()
    seen = [(entry[0] // S, *entry[2:]) for entry in world.run(0, trace) if entry[1] == "b"]
    assert seen == [
        (11, "mail"),  # after twelve seconds, of which it counted eleven
        (15, "timer", "before"),
        (30, "unanswered", "question"),
        (50, "timer", "after"),
    ]
    turns = [r[2] // S for r in trace.records if r[3] == "b" and r[1] in ("timer", "unanswered")]
    assert turns == [20, 40, 60]
    assert stamps == [15, 50], "what the wall clock has lost stays"
    assert [record[2:] for record in trace.kinds("fault")] == [
        (10 * S, "b", "slow", "rate 0.5"),
        (30 * S, "b", "slow", "rate 1"),
    ]
