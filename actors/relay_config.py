"""What may be set of a relay: its times, its bounds, and how it takes its owner's word."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from actors.chance import Durations
from transports.units import Duration

SLOTS_LIMIT = 16  # each is a Graph with its agents, on one person's machine


class RelayConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario may set of a relay."""

    poll_us: Annotated[Duration, "the time between two polls"] = msgspec.field(
        name="poll", default=Duration(20_000_000)
    )
    phase_us: Annotated[
        Durations | None, "when it first polls; without it anywhere in one interval"
    ] = msgspec.field(name="phase", default=None)
    jitter: Annotated[
        Literal["none", "window"], '"window" polls at a random time in each interval'
    ] = "none"
    control_us: Annotated[Duration, "how often it asks whether a run should stop"] = msgspec.field(
        name="control", default=Duration(3_000_000)
    )
    timeout_us: Annotated[Duration, "how long it waits for an answer"] = msgspec.field(
        name="timeout", default=Duration(10_000_000)
    )
    outbox: Annotated[bool, "keeps a result until the server has it, and posts it again"] = True
    presence: Annotated[bool, "syncs while busy too, taking no new work"] = False
    strict_consent: Annotated[
        bool, "a change of its session cancels what was queued before and stops what runs"
    ] = False
    slots: Annotated[
        int, msgspec.Meta(ge=1, le=SLOTS_LIMIT), "how many runs execute at once; others wait"
    ] = 1
    stop_limit_us: Annotated[
        Duration, "a Graph that has not stopped by then is dropped; 0s waits for ever"
    ] = msgspec.field(name="stop_limit", default=Duration(0))

    def __post_init__(self) -> None:
        """Refuse times that would make a relay ask without end at one instant."""
        for key in ("poll", "control", "timeout"):
            if not getattr(self, f"{key}_us"):
                raise ValueError(f"{key} must be longer than 0s")
