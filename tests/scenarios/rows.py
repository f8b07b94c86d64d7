"""Rows of a server, for tests that need one."""

from __future__ import annotations

from typing import Any

from actors.ledger import Run


def run_row(**fields: Any) -> Run:
    """A run of agent `claude` on desktop `relay`, running unless said otherwise."""
    usual: dict[str, Any] = {
        "command_id": "r1",
        "agent": "claude",
        "key": "key-0001",
        "device": "relay",
        "session": "s",
        "slug": "s",
        "generation": 0,
        "arguments": {},
        "status": "running",
        "queued_us": 0,
        "open_on": None,
        "open_for": None,
        "due_us": 0,
    }
    return Run(**usual | fields)
