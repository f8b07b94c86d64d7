"""Suspend: a machine sleeps; its processes don't know that time passes."""

from __future__ import annotations

from typing import ClassVar

from transports.faults.fault import StoppingFault


class Suspend(StoppingFault, frozen=True, kw_only=True, tag_field="kind", tag="suspend"):
    """Puts the actors that it hits to sleep for `for`, as a laptop whose lid is closed.

    Their monotonic clocks stop: timers and time-outs go on where they were. The wall clock has
    jumped when they wake.
    """

    in_flight: ClassVar[str] = "waits until the victim wakes, then arrives in order"
    clock_stops: ClassVar[bool] = True
