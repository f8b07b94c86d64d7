"""What PostgreSQL says is told by its code; what is a bug of ours stays what it is."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from actors.stores.failures import (
    DamagedStoreError,
    StoreConflictError,
    StoreError,
    StoreFailedError,
)
from actors.stores.postgres.errors import in_words


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (errors.SerializationFailure, StoreConflictError, "another process was first (40001)"),
        (errors.DeadlockDetected, StoreConflictError, "another process was first (40P01)"),
        (errors.DiskFull, StoreFailedError, "the database's disk is full; free some space there"),
        (errors.TooManyConnections, StoreFailedError, "no connection left; raise max_connections"),
        (errors.ReadOnlySqlTransaction, StoreFailedError, "takes no writes: it is a standby"),
        (errors.AdminShutdown, StoreFailedError, "the database is being shut down (57P01)"),
        (errors.LockNotAvailable, StoreFailedError, "another process holds a row or a table"),
        (errors.ConnectionFailure, StoreFailedError, "the database refused (08006: as it says)"),
        (errors.InsufficientPrivilege, StoreFailedError, "its user may not do this; grant it"),
        (errors.DataCorrupted, DamagedStoreError, "the database is damaged (XX001: as it says)"),
        (errors.UndefinedTable, DamagedStoreError, "its tables were changed by another program"),
        (psycopg.OperationalError, StoreFailedError, "the connection is lost (as it says)"),
    ],
)
def test_each_kind(error: type[psycopg.Error], kind: type[StoreError], words: str) -> None:
    told = in_words("postgresql://db/runs (x)", error("as it says\nDETAIL: and more"))
    assert type(told) is kind
    assert words in told.sentence
    assert str(told).startswith("postgresql://db/runs (x): ")


@pytest.mark.parametrize("error", [errors.SyntaxError, errors.UniqueViolation, psycopg.DataError])
def test_a_bug_is_raised_as_it_is(error: type[psycopg.Error]) -> None:
    with pytest.raises(error):
        in_words("x", error("it says"))
