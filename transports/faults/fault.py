"""What every fault has: where it acts, and when.

A fault's fields are its configuration in a scenario file. It is made once for a cell, told the
replication's chance by `start`, and then judges each message on the links that its place matches.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec

from transports.envelope import Envelope

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Ordinal = Annotated[int, msgspec.Meta(ge=1)]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where: `source` and `target` are globs of actor names, `message` a message type's name.

    When: every message, or the `nth` that matches, or each `every`-th, or with a `probability` a
    message that is drawn from the fault's own stream. `min_fired` is how often a probabilistic
    fault must fire in its cell for the cell to count; a deterministic one must fire in each
    replication.
    """

    name: Annotated[str, "its name in results; without it the kind and a number"] = ""
    source: Annotated[str, "the senders that it acts on, a glob of actor names"] = msgspec.field(
        name="from", default="*"
    )
    target: Annotated[str, "the receivers that it acts on, a glob of actor names"] = msgspec.field(
        name="to", default="*"
    )
    message: Annotated[str | None, "the message type that it acts on; without it every one"] = None
    nth: Annotated[Ordinal | None, "acts on this message alone, counted from 1"] = None
    every: Annotated[Ordinal | None, "acts on each so many-th message"] = None
    probability: Annotated[
        Probability | None, "acts on a message with this probability, 0 to 1"
    ] = None
    min_fired: Annotated[Ordinal, "how often it must fire in a cell for the cell to count"] = 1

    def __post_init__(self) -> None:
        given = [key for key in ("nth", "every", "probability") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"a fault has one of nth, every and probability, not {given}")

    @property
    def probabilistic(self) -> bool:
        """Whether chance decides if it fires."""
        return self.probability is not None and 0.0 < self.probability < 1.0

    def acts_on(self, source: str, target: str) -> bool:
        """Return whether it stands on the link from `source` to `target`."""
        return fnmatchcase(source, self.source) and fnmatchcase(target, self.target)


class Trigger:
    """Decides for each message whether a fault fires, and counts how often it did."""

    __slots__ = ("_chance", "_fault", "_message", "_seen", "fired")

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._message = fault.message
        self._seen = 0
        self.fired = 0
        self._chance: Callable[[], float] = float

    def start(self, chance: Callable[[], float]) -> None:
        """Begin a replication with the fault's own stream of uniform numbers."""
        self._seen = 0
        self.fired = 0
        self._chance = chance

    def fires(self, envelope: Envelope[Any]) -> bool:
        """Return whether the fault acts on this message."""
        if self._message is not None and type(envelope.body).__name__ != self._message:
            return False
        self._seen += 1
        fault = self._fault
        if fault.nth is not None:
            hit = self._seen == fault.nth
        elif fault.every is not None:
            hit = self._seen % fault.every == 0
        else:
            hit = fault.probability is None or self._chance() < fault.probability
        self.fired += hit
        return hit
