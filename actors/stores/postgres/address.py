"""Where a database is: what a user types, what libpq takes, and what may be shown to anybody."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from actors.stores.failures import UnusableStoreError

SCHEMA = "pullcord"  # unless the address names another

# A turn must not wait for ever for a machine that is gone: every other limit is far above these.
_LIMITS: dict[str, str] = {
    "connect_timeout": "5",  # seconds
    "tcp_user_timeout": "10000",  # milliseconds until what was sent must have been acknowledged
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "application_name": "pullcord",
}


class Address(NamedTuple):
    """A database and a schema in it; `place` has neither password nor anything else secret."""

    conninfo: str
    schema: str
    place: str


def read_address(address: str) -> Address:
    """Read `postgresql://user@host/database?schema=name`, or libpq's `host=… dbname=…`.

    Everything but `schema` is libpq's: its service file, its password file, its variables of the
    environment. Raises UnusableStoreError for what can't be read.
    """
    given, schema = _without_schema(address)
    try:
        found = conninfo_to_dict(given)
    except psycopg.ProgrammingError as error:
        cause = str(error).strip().partition("\n")[0]
        raise UnusableStoreError("postgresql", f"its address can't be read: {cause}") from None
    limits = {name: value for name, value in _LIMITS.items() if name not in found}
    where = ",".join(str(found[name]) for name in ("host", "hostaddr") if found.get(name))
    ports = str(found.get("port", "")).strip(",")
    port = f":{ports}" if ports else ""
    place = f"postgresql://{where or 'localhost'}{port}/{found.get('dbname') or ''} ({schema})"
    return Address(make_conninfo(given, **limits), schema, place)


def _without_schema(address: str) -> tuple[str, str]:
    """Take out the one word that is ours: libpq refuses what it doesn't know."""
    if "://" not in address:
        return address, SCHEMA
    where, _, said = address.partition("?")
    words = parse_qsl(said, keep_blank_values=True)
    schema = next((value for name, value in words if name == "schema" and value), SCHEMA)
    query = urlencode([(name, value) for name, value in words if name != "schema"])
    return f"{where}?{query}" if query else where, schema
