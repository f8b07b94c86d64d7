"""Hold: messages are kept back, and released together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S
from tests.actors.puppets import World, say
from tests.contracts.fault import FakeWorld, LinkFaultContract, get
from transports.faults.hold import Hold
from transports.units import Duration


class TestHold(LinkFaultContract):
    """The suite on hold."""

    kind = Hold
    fields: Mapping[str, Any] = {"for": "20s"}

    def test_a_message_waits_for_the_end(self) -> None:
        world = FakeWorld()
        judging = self.works(world=world)
        world.now_us = 5 * S
        assert judging.judge(get(1)).later_us == 15 * S

    def test_a_hold_without_an_end_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="needs `for`"):
            msgspec.convert({"kind": "hold"}, Hold)


def test_all_that_was_held_is_released_in_order() -> None:
    world = World(
        faults=[Hold(name="held", at=Duration(2 * S), lasts=Duration(8 * S))],
        a={
            "start": lambda c: [say("b", "before")(c), *(c.set_timer(n, 3 * S) for n in "12")],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={},
    )
    heard = [entry for entry in world.run() if entry[1] == "b"]
    assert heard == [(0, "b", "before"), (10 * S, "b", "1"), (10 * S, "b", "2")]


def test_what_is_sent_as_it_ends_comes_behind_what_was_held() -> None:
    def heard(context: Any, envelope: Any) -> None:
        if envelope.body.text == "1":
            say("a", "answer")(context)

    def said(context: Any, _envelope: Any) -> None:
        say("b", "new")(context)

    world = World(
        faults=[Hold(name="held", source="a", lasts=Duration(10 * S))],
        a={"start": lambda c: [say("b", "1")(c), say("b", "2")(c)], "say": said},
        b={"say": heard},
    )
    assert [entry[2] for entry in world.run()] == ["1", "answer", "2", "new"]


def test_what_is_under_way_arrives_when_it_was_due() -> None:
    world = World(
        faults=[Hold(name="held", at=Duration(1 * S), lasts=Duration(8 * S))],
        links={("a", "b"): lambda: 3 * S},
        a={"start": say("b", "before")},
        b={},
    )
    assert world.run() == [(3 * S, "b", "before")]
