"""Failed write: a commit fails once, as on a disk with a bad sector."""

from __future__ import annotations

from typing import ClassVar

from actors.actor import Commit
from transports.faults.fault import CommitFault, Committing


class FailedWrite(CommitFault, frozen=True, kw_only=True, tag_field="kind", tag="failed_write"):
    """Lets a commit fail: the turn never was, and the actor is rebuilt from its store.

    Only turns that write count. The turn's input is dropped, so its sender must ask again.
    """

    in_flight: ClassVar[str] = "arrives"
    writes_only: ClassVar[bool] = True

    def at_work(self) -> Committing:
        """Return what acts in one cell."""
        return FailingWrite(self)


class FailingWrite(Committing):
    """A `FailedWrite` at work in one cell."""

    def act(self, name: str) -> Commit:
        """Let the commit fail."""
        return Commit.FAILED
