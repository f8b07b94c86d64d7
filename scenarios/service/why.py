"""Why a run has not begun, or not ended: the server's reasons in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from actors.accounts.messages import Reason, RunExplained
from transports.units import Duration

WORDS: Final[Mapping[Reason, str]] = {
    "not_shared": "its session is not shared any more, or was changed: it will be cancelled",
    "away": "its desktop has not been heard of lately",
    "behind_others": "other runs come first on its desktop",
    "not_begun": "its desktop has it, and has not begun it",
    "takes_none": "its desktop is there and takes no work: its owner sees why by `desktop status`",
    "next_sync": "its desktop gets it with its next sync",
    "approval": "tool calls of it wait for its desktop's owner",
    "stopping": "it is being stopped",
    "running": "its desktop runs it",
    "ended": "it has ended",
}


def words_of(told: RunExplained) -> str:
    """Return a reason in words, with what an owner is told of the desktop."""
    words = WORDS[told.reason]
    if told.reason == "behind_others" and told.ahead:
        come = "1 other run comes" if told.ahead == 1 else f"{told.ahead} other runs come"
        words = f"{come} first on its desktop"
    if not told.device:
        return words
    heard = "never synced"
    if told.synced_ago_us is not None:
        heard = f"synced {Duration(told.synced_ago_us // 1_000_000 * 1_000_000)} ago"
    return f"{words} ({told.name or told.device}, {heard})"
