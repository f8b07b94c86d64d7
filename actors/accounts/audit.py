"""The audit: who did what, on what, with what outcome, from where; rows are only ever added.

A row is written in the turn of the act, so one is never without the other. What is denied is
counted, a row for each minute, principal and act, so that a flood can't fill the disk; what comes
without a principal at all is one row a minute.
"""

from __future__ import annotations

from actors.accounts.rows import AUDIT, AuditRow, newest_first
from actors.actor import Context

MINUTE_US = 60_000_000
SUBJECT_CHARS = 200  # what somebody made up may be long
SWEEP_LIMIT = 100  # rows deleted in one turn, so that a turn stays short
_TIES = 1_000_000
NOBODYS = ""  # the book of what belongs to no owner: the administrator alone reads it


class AuditLog:
    """Writes rows, and deletes those that are older than they are kept."""

    def __init__(self, context: Context, retention_us: int) -> None:
        self.rows = context.store.table(AUDIT)
        self.retention_us = retention_us
        self.serial = 0

    def note(
        self,
        context: Context,
        owner: str,
        who: str,
        act: str,
        subject: str,
        outcome: str = "ok",
        address: str = "",
    ) -> None:
        """Add a row to an owner's book."""
        said = (owner, who, act, subject, outcome, address)
        self.write(context, context.new_id(), 1, said)

    def count(
        self,
        context: Context,
        owner: str,
        who: str,
        act: str,
        subject: str,
        outcome: str,
        address: str = "",
    ) -> None:
        """Count what was denied; the row tells of the last of its minute.

        While the disk is full nothing is counted, so that what only reads is answered.
        """
        if not context.store.writable:
            return
        key = f"{who}:{act}:{context.stamp_us // MINUTE_US}"
        known = self.rows.get(key)
        count = 1 if known is None else known.count + 1
        self.write(context, key, count, (owner, who, act, subject, outcome, address))

    def write(self, context: Context, key: str, count: int, said: tuple[str, ...]) -> None:
        """Write a row under its key, as the newest."""
        owner, who, act, subject, outcome, address = said
        at_us = context.stamp_us
        # Of one moment the last comes first too, as far as this process knows.
        self.serial += 1
        tie = f"{_TIES - self.serial % _TIES:07}{key}"
        row = AuditRow(
            key=key,
            owner=owner,
            at_us=at_us,
            listed=newest_first(at_us, tie),
            who=who,
            act=act,
            subject=subject[:SUBJECT_CHARS],
            outcome=outcome,
            address=address[:SUBJECT_CHARS],
            count=count,
        )
        self.rows.put(key, row)

    def page(self, owner: str | None, cursor: str, limit: int) -> list[AuditRow]:
        """Return the rows of an owner's book, or of all books, that follow the cursor."""
        above = cursor or None
        if owner is None:
            return self.rows.scan("all", limit=limit, above=above)
        return self.rows.scan("mine", (owner,), limit=limit, above=above)

    def sweep(self, context: Context) -> bool:
        """Delete what was kept long enough; return whether there may be more."""
        up_to = context.stamp_us - self.retention_us
        old = self.rows.claim("due", limit=SWEEP_LIMIT, up_to=up_to)
        for row in old:
            self.rows.delete(row.key)
        return len(old) == SWEEP_LIMIT
