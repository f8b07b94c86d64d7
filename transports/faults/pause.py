"""Pause: a process is stopped and goes on later, as SIGSTOP and SIGCONT do to it."""

from __future__ import annotations

from typing import ClassVar

from transports.faults.fault import StoppingFault


class Pause(StoppingFault, frozen=True, kw_only=True, tag_field="kind", tag="pause"):
    """Stops the actors that it hits for `for`, while their clocks go on.

    Timers and time-outs that were due meanwhile come when they go on, after the messages that wait.
    A machine that swaps, or a garbage collection of minutes, looks like this.
    """

    in_flight: ClassVar[str] = "waits until the victim goes on, then arrives in order"
