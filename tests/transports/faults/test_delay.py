"""Delay: a message comes later, and what is sent after it waits behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.chance import Durations
from tests.actors.harness import S
from tests.actors.puppets import World, say
from tests.contracts.fault import LinkFaultContract, get
from transports.faults.delay import Delay

THREE = Durations.parse("3s")


class TestDelay(LinkFaultContract):
    """The suite on delay."""

    kind = Delay
    fields: Mapping[str, Any] = {"delay": "3s"}

    def test_a_delay_is_drawn_for_each_message(self) -> None:
        numbers = iter([0.0, 0.5])
        judging = self.works(lambda: next(numbers), delay="uniform(0s, 10s)")
        verdicts = [judging.judge(get(number)) for number in (1, 2)]
        assert [verdict.later_us for verdict in verdicts] == [0, 5 * S]
        assert not any(verdict.lost or verdict.overtaken for verdict in verdicts)

    def test_correlated_delays_repeat_the_last_with_that_probability(self) -> None:
        # The first delay; then for each, whether it repeats, and if not, the next delay.
        numbers = iter([0.5, 0.6, 0.1, 0.8, 0.9])
        judging = self.works(lambda: next(numbers), delay="uniform(0s, 10s)", correlation=0.7)
        later = [judging.judge(get(number)).later_us for number in (1, 2, 3, 4)]
        assert later == [5 * S, 5 * S, 5 * S, 9 * S]


def test_what_is_sent_after_a_delayed_message_waits_behind_it() -> None:
    slow = Delay(name="slow", delay=THREE, nth=1)
    start = lambda context: [say("b", "slow")(context), say("b", "next")(context)]  # noqa: E731  two lines
    world = World(faults=[slow], a={"start": start}, b={})
    assert world.run() == [(3 * S, "b", "slow"), (3 * S, "b", "next")]


def test_what_was_under_way_keeps_its_time() -> None:
    late = Delay(name="late", delay=THREE, at=None, on=None, nth=2)
    ways = {("a", "b"): lambda: 5 * S}
    start = lambda context: [say("b", "first")(context), say("b", "second")(context)]  # noqa: E731  two lines
    world = World(faults=[late], links=ways, a={"start": start}, b={})
    assert world.run() == [(5 * S, "b", "first"), (8 * S, "b", "second")]
