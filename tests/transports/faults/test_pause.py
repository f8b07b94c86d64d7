"""Pause: a process is stopped and goes on, and its clock did not wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S, Trace
from tests.actors.puppets import World, say
from tests.contracts.fault import FakeWorld, StrikingContract
from transports.faults.pause import Pause
from transports.units import Duration


class TestPause(StrikingContract):
    """The suite on pause."""

    kind = Pause
    act = "pause"
    fields: Mapping[str, Any] = {"actor": "relay", "for": "20s"}

    def test_it_goes_on_after_its_time(self) -> None:
        world = FakeWorld()
        self.works(world=world, at="1s")
        world.until(100 * S)
        assert world.done == [(1 * S, "pause", "relay"), (21 * S, "resume", "relay")]

    def test_a_pause_without_an_end_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="needs `for`"):
            msgspec.convert({"kind": "pause", "actor": "relay"}, Pause)


def test_what_was_due_comes_at_once_after_the_messages_that_waited() -> None:
    world = World(
        faults=[Pause(name="stop", actor="b", at=Duration(5 * S), lasts=Duration(100 * S))],
        until_us=1_000 * S,
        a={"start": lambda c: c.set_timer("6", 6 * S), "timer": lambda c, name: say("b", name)(c)},
        b={"start": lambda c: [c.set_timer("t", 8 * S), c.set_timer("far", 300 * S)]},
    )
    trace = Trace()
    seen = [entry for entry in world.run(0, trace) if entry[1] == "b"]
    assert seen == [
        (105 * S, "b", "6"),
        (105 * S, "b", "timer", "t"),
        (300 * S, "b", "timer", "far"),
    ]
