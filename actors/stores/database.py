"""What stores in databases have in common: their turns are their transaction's."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from actors.actor import Key


class Turns(Protocol):
    """What turns begin and end in: a database's transaction, and so any store on one."""

    writable: bool

    def begin_turn(self) -> None:
        """Begin a turn that may be rolled back by itself."""

    def end_turn(self) -> None:
        """End the turn; what it wrote waits for the commit."""

    def roll_back(self) -> None:
        """Undo the open turn, or without one all that was written since the last commit."""

    @property
    def has_to_commit(self) -> bool:
        """False if a commit has nothing to do: to write, to tell or to mend."""

    def commit(self) -> None:
        """Make what was written durable, or raise StoreFailedError: then none of it ever was."""


class DatabaseStore:
    """A store whose tables read and write through a transaction."""

    _transaction: Turns
    _tables: dict[str, Any]  # those that were opened here, by name
    _allowed = True  # whether its host lets it be written

    @property
    def writable(self) -> bool:
        """False from a failure until a commit succeeds; a conflict is none.

        A host may set it to False, for a fault, and back.
        """
        return self._allowed and self._transaction.writable

    @writable.setter
    def writable(self, allowed: bool) -> None:
        self._allowed = allowed

    def snapshot(self) -> dict[str, dict[Key, msgspec.Struct]]:
        """Return the rows of every table that was opened here and has any, as the turn sees them.

        What other rows are is in no table's type here. Raises StoreError.
        """
        rows = {name: table.rows() for name, table in sorted(self._tables.items())}
        return {name: found for name, found in rows.items() if found}

    def begin_turn(self) -> None:
        """Begin one of several turns that share a commit."""
        self._transaction.begin_turn()

    def end_turn(self) -> None:
        """End it; what it wrote waits for the commit."""
        self._transaction.end_turn()

    def roll_back(self) -> None:
        """Undo the open turn; with none begun, all that was written since the last commit."""
        self._transaction.roll_back()

    @property
    def has_to_commit(self) -> bool:
        """False if a commit has nothing to do, and so waits for nothing."""
        return self._transaction.has_to_commit

    def commit(self) -> None:
        """Make what was written durable; it is also told what failed since the last commit.

        Raises StoreFailedError, StoreConflictError or DamagedStoreError, and then none of it ever
        was; but of a database whose connection is lost during the commit nobody can know.
        """
        self._transaction.commit()
