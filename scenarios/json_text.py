"""JSON for people: indented, with a line's end."""

from __future__ import annotations

from typing import Any

import msgspec


def indented(value: Any) -> str:
    """Return a value as JSON, each field in a line of its own."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
