"""Schedule: each message arrives at its own time, as often as it did, or never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S
from tests.actors.puppets import World, say
from tests.contracts.fault import FakeWorld, LinkFaultContract, get
from transports.faults.schedule import Schedule
from transports.verdict import LOST


class TestSchedule(LinkFaultContract):
    """The suite on schedule."""

    kind = Schedule
    fields: Mapping[str, Any] = {"arrivals_us": [[30 * S]] * 20}

    def test_a_message_arrives_at_its_time_or_at_once_if_that_is_past(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, arrivals_us=[[5 * S], [2 * S, 3 * S, 3 * S], []])
        world.now_us = 2 * S
        first, second, third = (working.judge(get(number)) for number in range(3))
        assert (first.later_us, first.copies) == (3 * S, 0)
        assert (second.later_us, second.copies) == (0, 2)
        assert third is LOST
        assert first.overtaken, "each has its own time"
        assert working.judge(get(4)) is None, "behind the list"
        assert working.fired == 3

    def test_it_is_over_with_its_last_message(self) -> None:
        assert self.works(arrivals_us=[[5 * S], [], [2 * S, 7 * S]]).healed_us == 7 * S
        assert self.works(arrivals_us=[]).healed_us == 0

    @pytest.mark.parametrize("times", [[[-1]], [["1s"]], [1]])
    def test_what_is_no_time_is_refused(self, times: Any) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(arrivals_us=times)


def test_messages_come_in_the_order_of_the_list_whoever_sent_them_first() -> None:
    fault = Schedule(name="log", arrivals_us=((3 * S,), (1 * S,), (), (2 * S, 2 * S)))
    start = lambda context: [say("b", word)(context) for word in ("a", "b", "c", "d", "e")]  # noqa: E731  one line
    world = World(faults=[fault], a={"start": start}, b={})
    assert world.run() == [
        (0, "b", "e"),
        (1 * S, "b", "b"),
        (2 * S, "b", "d"),
        (2 * S, "b", "d"),
        (3 * S, "b", "a"),
    ]
