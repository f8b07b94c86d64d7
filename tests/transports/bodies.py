"""Bodies that no codec takes for a message, whatever form its frames have."""

from __future__ import annotations

from typing import Any

SYNC = {"type": "Sync", "boot": "b", "sessions": [], "open": []}
MALFORMED: list[Any] = [
    {"type": "Explode"},
    {"command_id": "c"},
    {"type": "Accepted"},
    {"type": "Accepted", "command_id": 5},
    {"type": "Accepted", "command_id": None},
    {"type": "GetGraphRun", "command_id": "c", "wait_us": 1.5},
    {"type": "GetGraphRun", "command_id": "c", "wait_us": -1},
    SYNC | {"capacity": 1, "poll_us": 0},
    SYNC | {"capacity": -1, "poll_us": 1},
    {"type": "Start", "command_id": "c", "boot": "b", "delivery": True},
    {"type": "Start", "command_id": "c", "boot": "b", "delivery": 1.5},
    ["Accepted", "c"],
    None,
]
