"""What PostgreSQL says, as one of a store's failures: by its code, never by its words."""

from __future__ import annotations

import psycopg

from actors.stores.failures import (
    DamagedStoreError,
    StoreConflictError,
    StoreError,
    StoreFailedError,
)

# Serialization failure, deadlock: another process was first. A new try finds the world as it is.
_CONFLICTS = frozenset(("40001", "40P01"))
# Of classes that are bugs of ours otherwise.
_WORDS = {
    "25006": "the database takes no writes: it is a standby, or set read-only",
    "25P03": "the turn was idle for too long, and the database has ended it",
    "26000": "a pooler forgets prepared statements; connect past it, or give each client a session",
    "42501": "its user may not do this; grant it what docs/stores.md names",
    "53100": "the database's disk is full; free some space there",
    "53200": "the database has no memory left",
    "53300": "the database has no connection left; raise max_connections, or use fewer processes",
    "55P03": "another process holds a row or a table for too long",
    "57014": "a statement took too long",
    "57P01": "the database is being shut down",
    "57P02": "the database has crashed",
    "57P03": "the database is starting up",
}
_FAILED = ("08", "53", "55", "57", "58")  # connections, resources, states, operators, the system
_DAMAGE = ("XX001", "XX002")
_FOREIGN = (
    "42P01",
    "42703",
    "42P06",
    "3F000",
)  # a table, a column or a schema is not as we made it


def in_words(place: str, error: psycopg.Error) -> StoreError:
    """Return what an error means for the turn; raises the error itself if it is a bug of ours."""
    code, said = error.sqlstate or "", str(error).strip().partition("\n")[0]
    if code in _CONFLICTS:
        return StoreConflictError(place, f"another process was first ({code})")
    if code in _DAMAGE:
        return DamagedStoreError(place, f"the database is damaged ({code}: {said})")
    if code in _FOREIGN:
        return DamagedStoreError(place, f"its tables were changed by another program ({said})")
    if code in _WORDS:
        return StoreFailedError(place, f"{_WORDS[code]} ({code})")
    if code.startswith(_FAILED):
        return StoreFailedError(place, f"the database refused ({code}: {said})")
    if not code and isinstance(error, psycopg.OperationalError):
        return StoreFailedError(place, f"the connection is lost ({said})")
    raise error
