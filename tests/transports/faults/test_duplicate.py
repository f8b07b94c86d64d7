"""Duplicate: a message arrives more than once."""

from __future__ import annotations

import msgspec
import pytest

from tests.actors.harness import Trace
from tests.actors.puppets import World, asks, replies, say
from tests.contracts.fault import LinkFaultContract, get
from transports.faults.duplicate import Duplicate
from transports.verdict import Verdict


class TestDuplicate(LinkFaultContract):
    """The suite on duplicate."""

    kind = Duplicate

    def test_copies_follow_the_message(self) -> None:
        assert self.works().judge(get(1)) == Verdict(copies=1)
        assert self.works(copies=3).judge(get(1)) == Verdict(copies=3)

    @pytest.mark.parametrize("copies", [0, 101])
    def test_no_copies_and_too_many_are_refused(self, copies: int) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(copies=copies)


def test_a_message_arrives_twice_in_a_row_and_others_keep_their_order() -> None:
    start = lambda context: [say("b", "one")(context), say("b", "two")(context)]  # noqa: E731  two lines
    world = World(faults=[Duplicate(name="twice", nth=1)], a={"start": start}, b={})
    assert [entry[2] for entry in world.run()] == ["one", "one", "two"]


def test_an_answer_that_comes_twice_is_heard_once() -> None:
    twice = Duplicate(name="twice", source="b")
    world = World(faults=[twice], a={"start": asks(10)}, b={"say": replies()})
    trace = Trace()
    assert world.run(0, trace) == [(0, "b", "question"), (0, "a", "answer 0")]
    assert len(trace.kinds("late")) == 1


def test_what_is_under_way_with_its_copies_keeps_the_order() -> None:
    ways = {("a", "b"): lambda: 5}
    start = lambda context: [say("b", "one")(context), say("b", "two")(context)]  # noqa: E731  two lines
    world = World(faults=[Duplicate(name="twice")], links=ways, a={"start": start}, b={})
    assert [entry[2] for entry in world.run()] == ["one", "one", "two", "two"]
