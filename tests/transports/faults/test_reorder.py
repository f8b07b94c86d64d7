"""Reorder: a message comes later, and those sent after it may pass it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.chance import Durations
from tests.actors.harness import S
from tests.actors.puppets import World, say
from tests.contracts.fault import LinkFaultContract, get
from transports.faults.reorder import Reorder


class TestReorder(LinkFaultContract):
    """The suite on reorder."""

    kind = Reorder
    fields: Mapping[str, Any] = {"delay": "3s"}

    def test_a_message_may_be_overtaken(self) -> None:
        verdict = self.works().judge(get(1))
        assert verdict.overtaken
        assert verdict.later_us == 3 * S


def test_a_message_is_passed_by_the_next_one() -> None:
    fault = Reorder(name="passed", delay=Durations.parse("3s"), nth=1)
    start = lambda context: [say("b", "first")(context), say("b", "second")(context)]  # noqa: E731  two lines
    world = World(faults=[fault], a={"start": start}, b={})
    assert world.run() == [(0, "b", "second"), (3 * S, "b", "first")]
