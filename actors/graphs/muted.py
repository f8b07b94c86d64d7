"""A context in which nothing leaves an actor: for turns that are taken again.

Time is what it is told to be. Whatever is sent, asked, set, logged or written goes nowhere, since
it left already when the turn was taken first. Scripts run as they do.
"""

from __future__ import annotations

from typing import Any, NoReturn

from actors.actor import Context, Key, Row, TableSpec
from actors.graphs.seam import VmPort
from transports.envelope import Envelope


class MutedTable:
    """A table that is empty and stays so."""

    def get(self, key: Key) -> Any:
        """Find nothing."""
        return None

    def put(self, key: Key, row: Any) -> None:
        """Write nothing."""

    def insert_unique(self, key: Key, row: Any) -> bool:
        """Write nothing."""
        return True

    def delete(self, key: Key) -> None:
        """Remove nothing."""

    def scan(
        self,
        index: str,
        prefix: tuple[Any, ...] = (),
        *,
        limit: int,
        up_to: Any = None,
        above: Any = None,
    ) -> list[Any]:
        """Find nothing."""
        return []

    claim = scan

    def count(self, index: str, prefix: tuple[Any, ...] = ()) -> int:
        """Find nothing."""
        return 0


class MutedStore:
    """A store of nothing but empty tables."""

    writable = True

    def table(self, spec: TableSpec[Row]) -> MutedTable:
        """Return an empty table."""
        return MutedTable()


class MutedContext:
    """See the module's docstring. `at` sets the time: microseconds, the actor's own and wall."""

    traceparent = ""

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self.vm: VmPort | None = context.vm
        self.store = MutedStore()
        self.now_us = self.stamp_us = 0

    def at(self, now_us: int, stamp_us: int) -> None:
        """Let it be this time."""
        self.now_us, self.stamp_us = now_us, stamp_us

    def random(self, purpose: str) -> NoReturn:
        """Refuse: a turn that is taken again draws nothing new."""
        raise AssertionError(f"a turn that is taken again draws from {purpose!r}")

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        """Ask nothing; no answer has this id."""
        return -1

    def send(self, target: str, body: Any) -> None:
        """Send nothing."""

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer nothing."""

    def request_every(
        self, timer: str, period_us: int, target: str, body: Any, timeout_us: int
    ) -> None:
        """Ask nothing."""

    def set_timer(self, timer: str, delay_us: int) -> None:
        """Set nothing."""

    def cancel_timer(self, timer: str) -> None:
        """Take nothing back."""

    def new_id(self, prefix: str = "") -> NoReturn:
        """Refuse: a turn that is taken again makes no new names."""
        raise AssertionError(f"a turn that is taken again makes an id {prefix!r}")

    def log(self, event: str, **fields: Any) -> None:
        """Tell nothing."""

    def done(self) -> None:
        """Say nothing."""

    def trace(self, traceparent: str) -> None:
        """Belong to no trace."""
