"""What a relay keeps on its desktop: consent, every run that it ever attempted, unsent results."""

from __future__ import annotations

import msgspec

from actors.actor import TableSpec
from actors.messages import Command, Complete, Completion, SessionMeta


class Consent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One session as the owner set it; `generation` grows with every change."""

    meta: SessionMeta
    shared: bool


class Project(msgspec.Struct, frozen=True, gc=False):
    """Whether the owner lets a project reach this desktop."""

    enabled: bool


class Attempt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run that may have started on this desktop, for ever."""

    command: Command
    open: bool | None = True  # None once its completion is written
    cancelled: bool = False  # the flag was read: the outcome is cancelled, whatever a crash forgets


class Posting(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A completion that the server has not accepted yet."""

    complete: Complete
    order: int
    traceparent: str = ""


CONSENTS = TableSpec("graph_sessions", Consent)
PROJECTS = TableSpec("projects", Project)
JOURNAL = TableSpec("journal", Attempt, open=("open",))
OUTBOX = TableSpec("outbox", Posting, order=("order",))
ENABLED = Project(True)
ATTEMPTED = Completion(
    execution_id=None, status="interrupted", error="this desktop attempted the run before"
)
NEVER_GOT = Completion(
    execution_id=None, status="interrupted", error="the engine never got this run"
)


def given_up(execution_id: str | None) -> Completion:
    """Return the end of a run that was told to stop, and whose engine says nothing of an end.

    Who reads `cancelled` relies on what has not begun never to begin. An engine that has not told
    of a start may only be asleep, with the order to run in its mailbox.
    """
    if execution_id is None:
        error = "the run was told to stop, and its engine never said whether it had begun"
        return Completion(execution_id=None, status="interrupted", error=error)
    error = "the Graph did not stop when it was told to, and its engine said nothing of it"
    return Completion(execution_id=execution_id, status="cancelled", error=error)
