"""What every fault has: its place is where it acts, its trigger decides when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contracts.fault import FaultContract, Judging
from transports.envelope import Envelope
from transports.faults.fault import Fault, Trigger


class Count(Fault, frozen=True, kw_only=True, tag_field="kind", tag="count"):
    """A fault that does nothing but fire."""


class CountJudge:
    """A `Count` at work: the smallest fault there is, a pattern for new ones."""

    def __init__(self, fault: Fault) -> None:
        self.name = fault.name
        self.trigger = Trigger(fault)

    def start(self, chance: Callable[[], float]) -> None:
        self.trigger.start(chance)

    @property
    def fired(self) -> int:
        return self.trigger.fired


class TestTrigger(FaultContract):
    """The suite on a fault that is its trigger alone."""

    kind = Count

    def at_work(self, fault: Fault) -> CountJudge:
        return CountJudge(fault)

    def touches(self, judging: Judging, envelope: Envelope[Any]) -> bool:
        assert isinstance(judging, CountJudge)
        return judging.trigger.fires(envelope)
