"""Clock step: a wall clock jumps and stays there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import World, say
from tests.contracts.fault import FakeWorld, StrikingContract
from transports.clock import EPOCH_US
from transports.faults.clock_step import ClockStep
from transports.units import Duration, Offset

HOUR_US = 3_600 * S


class TestClockStep(StrikingContract):
    """The suite on clock step."""

    kind = ClockStep
    act = f"by {-HOUR_US}"
    fields: Mapping[str, Any] = {"actor": "relay", "by": "-1h"}

    def test_for_is_how_long_it_goes_on(self) -> None:
        world = FakeWorld()
        fields: dict[str, Any] = {"at": "10s", "every": "30s", "for": "1m"}
        working = self.works(world=world, **fields)
        world.until(1_000 * S)
        assert self.strikes(world) == [10 * S, 40 * S]
        assert working.healed_us == 40 * S

    def test_a_program_can_t_be_hit(self) -> None:
        assert not self.kind.on_programs


@COMMITTING_HOST
@pytest.mark.parametrize("by_us", [HOUR_US, -5 * S])
def test_what_is_under_way_arrives_and_the_stamp_never_goes_back(
    host: MakeHost, by_us: int
) -> None:
    stamps: list[int] = []
    world = World(
        host=host,
        faults=[ClockStep(name="ntp", actor="b", at=Duration(10 * S), by=Offset(by_us))],
        links={("a", "b"): lambda: 4 * S},
        a={
            "start": lambda c: [c.set_timer(str(at), at * S) for at in (5, 7, 9, 14)],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={"say": lambda c, _: stamps.append(c.stamp_us - EPOCH_US)},
    )
    trace = Trace()
    seen = [entry for entry in world.run(0, trace) if entry[1] == "b"]
    assert seen == [(9 * S, "b", "5"), (11 * S, "b", "7"), (13 * S, "b", "9"), (18 * S, "b", "14")]
    if by_us > 0:
        assert stamps == [9 * S, 11 * S + by_us, 13 * S + by_us, 18 * S + by_us]
    else:
        assert stamps == [9 * S, 10 * S, 10 * S, 13 * S], "it stands still, and goes on five behind"
    assert [record[2:] for record in trace.kinds("fault")] == [
        (10 * S, "b", "ntp", f"clock {Offset(by_us)}")
    ]
