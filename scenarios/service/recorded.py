"""What a log that is written whole says of each actor, so that it can be made again."""

from __future__ import annotations

from typing import Any, Final

import msgspec

SHARED: Final = ("PostgreSQL",)  # stores in which other processes may write meanwhile


class RecordedActor(msgspec.Struct, frozen=True, kw_only=True):
    """An actor's class by name, what its settings file said of it, and where its state is kept."""

    kind: str
    config: dict[str, Any] = {}
    store: str = "memory"
