"""What every fault has, shown on the smallest: one that fires and does nothing."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.contracts.fault import FakeWorld, LinkFaultContract, get
from transports.envelope import Envelope
from transports.faults.fault import Fault, LinkFault, LinkWorking, Window, fires, one_rule
from transports.units import Duration
from transports.verdict import Verdict

S = 1_000_000


class Noop(LinkFault, frozen=True, kw_only=True, tag_field="kind", tag="noop"):
    """Does nothing to the messages that it fires on: the pattern for new faults."""

    in_flight: ClassVar[str] = "arrives"

    def at_work(self) -> LinkWorking:
        return NothingAtWork(self)


class NothingAtWork(LinkWorking):
    """A `Noop` at work in one cell."""

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        return Verdict()


class TestNoop(LinkFaultContract):
    """The suite on a fault that does nothing but fire."""

    kind = Noop

    def test_it_is_in_the_list_of_kinds_under_its_name(self) -> None:
        """It is no kind that a scenario has."""


def test_a_window_without_an_end_stays_open() -> None:
    window = Window(Fault(at=Duration(5 * S)))
    assert not window.contains(5 * S - 1)
    assert window.contains(5 * S)
    assert window.contains(10**15)
    assert window.end_us is None


def test_a_window_of_an_event_is_open_from_its_first() -> None:
    window = Window(Fault(on="x", lasts=Duration(2 * S)))
    assert not window.contains(0)
    assert window.end_us is None
    assert window.happened(7 * S)
    assert not window.happened(8 * S), "only the first counts"
    assert window.contains(8 * S)
    assert not window.contains(9 * S)
    assert window.end_us == 9 * S


def test_a_kind_says_what_it_is_at_work() -> None:
    with pytest.raises(NotImplementedError):
        Fault().at_work()
    assert not Fault().acts_on("a", "b")


def test_rules_of_when_are_one_and_pick_by_number_or_by_chance() -> None:
    one_rule(None, 2, None)
    with pytest.raises(ValueError, match="one of nth"):
        one_rule(1, None, 0.5)
    assert [fires(n, 2, None, lambda: True) for n in (1, 2, 3)] == [False, True, False]
    assert [fires(n, None, 2, lambda: True) for n in (1, 2, 3, 4)] == [False, True, False, True]
    assert not fires(1, None, None, lambda: False)


def test_a_fault_with_filters_asks_what_accepts() -> None:
    working = Noop(name="it", message="GetGraphRun[command_id=1]").at_work()
    working.attach(FakeWorld(), ())
    working.accepts = lambda body: body.command_id == "1"
    assert [number for number in (1, 2) if working.judge(get(number)) is not None] == [1]


def test_an_nth_fault_has_healed_once_it_has_fired() -> None:
    world = FakeWorld()
    working = Noop(name="it", nth=2).at_work()
    working.attach(world, ())
    world.now_us = 3 * S
    working.judge(get(1))
    assert working.healed_us is None
    working.judge(get(2))
    assert working.healed_us == 3 * S
