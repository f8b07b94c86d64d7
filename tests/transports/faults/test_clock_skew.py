"""Clock skew: a wall clock is off for a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import World, say
from tests.contracts.fault import FakeWorld, StrikingContract, decode
from transports.clock import EPOCH_US
from transports.faults.clock_skew import ClockSkew
from transports.units import Duration, Offset


class TestClockSkew(StrikingContract):
    """The suite on clock skew."""

    kind = ClockSkew
    act = f"by {86_400 * S}"
    fields: Mapping[str, Any] = {"actor": "relay", "by": "+1d", "for": "20s"}

    def test_it_is_set_right_after_its_time(self) -> None:
        world = FakeWorld()
        self.works(world=world, at="1s")
        world.until(100 * S)
        day_us = 86_400 * S
        assert world.done == [(1 * S, f"by {day_us}", "relay"), (21 * S, f"by -{day_us}", "relay")]

    def test_one_without_an_end_is_refused(self) -> None:
        table = {"kind": "clock_skew", "actor": "relay", "by": "1h"}
        with pytest.raises(msgspec.ValidationError, match=r"needs `for`.* is a clock_step"):
            msgspec.convert(table, ClockSkew, dec_hook=decode)

    def test_a_program_can_t_be_hit(self) -> None:
        assert not self.kind.on_programs


@COMMITTING_HOST
@pytest.mark.parametrize("by_s", [6, -6])
def test_what_is_under_way_arrives_and_the_stamp_goes_on_when_the_clock_is_right(
    host: MakeHost, by_s: int
) -> None:
    stamps: list[int] = []
    fields: dict[str, Any] = {"at": Duration(10 * S), "lasts": Duration(10 * S)}
    world = World(
        host=host,
        faults=[ClockSkew(name="unset", actor="b", by=Offset(by_s * S), **fields)],
        links={("a", "b"): lambda: 4 * S},
        a={
            "start": lambda c: [c.set_timer(str(at), at * S) for at in (5, 7, 14, 18, 25)],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={"say": lambda c, _: stamps.append((c.stamp_us - EPOCH_US) // S)},
    )
    heard = [entry[0] // S for entry in world.run() if entry[1] == "b"]
    assert heard == [9, 11, 18, 22, 29], "its timers and its mail go by another clock"
    assert stamps == ([9, 17, 24, 24, 29] if by_s > 0 else [9, 10, 12, 22, 29])
