"""What a scenario, or a deployment, may set of a server."""

from __future__ import annotations

from typing import Annotated

import msgspec

from transports.units import Duration, parse_duration


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See the module's docstring."""

    start_deadline_us: Annotated[Duration, "a run that has not started by then has expired"] = (
        msgspec.field(name="start_deadline", default=parse_duration("7d"))
    )
    run_deadline_us: Annotated[
        Duration, "a run that has not ended so long after its start is interrupted"
    ] = msgspec.field(name="run_deadline", default=parse_duration("1d"))
    retention_us: Annotated[Duration, "how long an ended run is kept"] = msgspec.field(
        name="retention", default=parse_duration("30d")
    )
    agent_limit: Annotated[int, msgspec.Meta(ge=1), "open runs an agent may have"] = 1_000
    device_limit: Annotated[int, msgspec.Meta(ge=1), "open runs a desktop may have"] = 10_000
    wait_limit_us: Annotated[
        Duration, "how long it holds back a poll that would wait; 0s never"
    ] = msgspec.field(name="wait_limit", default=Duration(0))
    hints: Annotated[bool, "tells agents when to poll next, fixed at each change of a run"] = False
    reconcile: Annotated[bool, "ends runs that a relay no longer reports"] = False
    fair: Annotated[bool, "offers a desktop's runs by turns of their agents"] = False
    delivery_limit: Annotated[
        int, msgspec.Meta(ge=0), "boots of a desktop that a run may see before it fails; 0 any"
    ] = 0
