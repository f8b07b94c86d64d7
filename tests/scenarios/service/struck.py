"""A deployed process that can be told to kill itself at a commit.

    python -m tests.scenarios.service.struck ORDER server|desktop ...

runs `pullcord server ...`, and nothing of it knows of this. While a file ORDER says, as in
"relay before 7", which store is meant, the seventh commit of it that writes something is the last
thing that the process does: SIGKILL comes just before that commit, or just after it, when nothing
that waited for it has left.

A desktop that lost its server dials again after a second at the latest instead of half a minute,
so that hundreds of strikes take an hour and not ten.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from actors.stores.sqlite import SqliteStore
from transports.connection import Timings


class Order(NamedTuple):
    """Which commit is the last one: the `number`th of a store from now on."""

    store: str
    when: str  # "before" or "after"
    number: int

    @classmethod
    def read(cls, text: str) -> Order:
        """Return the order that a file has."""
        store, when, number = text.split()
        return cls(store, when, int(number))


class Orders:
    """Counts the commits of a process while there is an order."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._order: Order | None = None
        self._left = 0

    def __call__(self, store: str, commit: Callable[[], None]) -> None:
        """Commit, unless this is the last thing to be done."""
        order = self._read()
        if order is None or order.store != store:
            commit()
            return
        self._left -= 1
        if self._left:
            commit()
            return
        if order.when == "after":
            commit()
        os.kill(os.getpid(), signal.SIGKILL)

    def _read(self) -> Order | None:
        try:
            order = Order.read(self._file.read_text())
        except (FileNotFoundError, ValueError):  # or it is being written
            self._order = None
            return None
        if order != self._order:
            self._order, self._left = order, order.number
        return order


def obey(kind: type[Any], orders: Orders, writes: Callable[[Any], bool]) -> None:
    """Have the commits of a class of stores counted, those that write something."""
    commit = kind.commit

    def counted(store: Any) -> None:
        if writes(store._transaction):
            name = store.path.stem if isinstance(store, SqliteStore) else "server"
            orders(name, lambda: commit(store))
        else:
            commit(store)

    kind.commit = counted


def quicken() -> None:
    """Have a desktop dial again soon."""
    desktop: Any = importlib.import_module("scenarios.service.desktop")
    quick = Timings(retry_first_s=0.2, retry_limit_s=1.0)
    desktop.Dialling = partial(desktop.Dialling, timings=quick)


def main() -> None:
    """Run the command with its commits counted."""
    orders = Orders(Path(sys.argv.pop(1)))
    obey(SqliteStore, orders, lambda transaction: bool(transaction._written))
    if any(word.startswith("postgres") for word in sys.argv):
        from actors.stores.postgres import PostgresStore

        obey(PostgresStore, orders, lambda transaction: transaction._begun)
    if sys.argv[1] == "desktop":
        quicken()
    sys.argv[0] = "pullcord"
    from pullcord import main as command_line

    command_line()


if __name__ == "__main__":
    main()
