"""Drop: a message is lost on its way. Messages already under way are not touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transports.envelope import Envelope
from transports.faults.fault import Fault, Trigger


class Drop(Fault, frozen=True, kw_only=True, tag_field="kind", tag="drop"):
    """Loses the messages that it fires on; the sender is told nothing."""


class DropJudge:
    """A `Drop` at work in one cell."""

    __slots__ = ("_trigger", "name")

    def __init__(self, fault: Drop) -> None:
        self.name = fault.name
        self._trigger = Trigger(fault)

    def start(self, chance: Callable[[], float]) -> None:
        """Begin a replication with the fault's own stream of uniform numbers."""
        self._trigger.start(chance)

    @property
    def fired(self) -> int:
        """How often it fired in this replication."""
        return self._trigger.fired

    def drops(self, envelope: Envelope[Any]) -> bool:
        """Return whether this message is lost."""
        return self._trigger.fires(envelope)
