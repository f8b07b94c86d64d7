"""The states of a run: every legal change, as data.

A run begins as `queued`. Whatever is not in the table does not happen; what the server's `close`
and its start gate look up here, the tests try for every state and every cause.
"""

from __future__ import annotations

import msgspec


class Transition(msgspec.Struct, frozen=True):
    """One legal change of a run: what causes it, whose act it is, what watches the new state.

    `task` is the state of the MCP task that stands for the run.
    """

    source: str
    cause: str
    target: str
    owner: str
    watcher: str
    task: str


TRANSITIONS = (
    Transition("", "queue", "queued", "agent", "start deadline", "working"),
    Transition("queued", "start", "running", "relay", "run deadline", "working"),
    Transition("queued", "cancel", "cancelled", "agent", "retention", "cancelled"),
    Transition("queued", "cancelled", "cancelled", "relay", "retention", "cancelled"),
    Transition("queued", "failed", "failed", "relay", "retention", "completed"),
    # These two only after the server lost what it knew, as a restored backup has:
    Transition("queued", "completed", "completed", "relay", "retention", "completed"),
    Transition("queued", "interrupted", "interrupted", "relay", "retention", "failed"),
    Transition("queued", "deadline", "expired", "server", "retention", "failed"),
    Transition("queued", "poison", "failed", "server", "retention", "completed"),
    Transition("queued", "revoked", "cancelled", "owner", "retention", "cancelled"),
    Transition("running", "completed", "completed", "relay", "retention", "completed"),
    Transition("running", "failed", "failed", "relay", "retention", "completed"),
    Transition("running", "cancelled", "cancelled", "relay", "retention", "cancelled"),
    Transition("running", "interrupted", "interrupted", "relay", "retention", "failed"),
    Transition("running", "forgotten", "interrupted", "server", "retention", "failed"),
    Transition("running", "deadline", "interrupted", "server", "retention", "failed"),
    Transition("running", "revoked", "interrupted", "owner", "retention", "failed"),
)
TARGETS = {(rule.source, rule.cause): rule.target for rule in TRANSITIONS}

ERRORS = {
    "deadline": "the time limit passed before the run ended",
    "forgotten": "the desktop no longer holds this run; it may have had effects",
    "poison": "the desktop stopped each time that it was given this run, before it could start",
    "revoked": "the desktop was removed by its owner; what had started may have had effects",
}
