"""An address is read as libpq reads it, its schema apart, and nothing secret of it is shown."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict

from actors.stores.failures import UnusableStoreError
from actors.stores.postgres.address import read_address


@pytest.mark.parametrize(
    ("given", "schema", "place"),
    [
        ("postgresql://u:s3cret@db:5433/runs", "pullcord", "postgresql://db:5433/runs (pullcord)"),
        ("postgres://u@db/runs?schema=other", "other", "postgresql://db/runs (other)"),
        ("postgresql://u@a,b/runs?schema=", "pullcord", "postgresql://a,b/runs (pullcord)"),
        ("host=db dbname=runs password=s3cret", "pullcord", "postgresql://db/runs (pullcord)"),
        ("postgresql:///runs?host=/run/pg", "pullcord", "postgresql:///run/pg/runs (pullcord)"),
        ("postgresql://", "pullcord", "postgresql://localhost/ (pullcord)"),
    ],
)
def test_where_it_is(given: str, schema: str, place: str) -> None:
    address = read_address(given)
    assert (address.schema, address.place) == (schema, place)
    assert "s3cret" not in address.place
    assert "schema" not in conninfo_to_dict(address.conninfo)


def test_what_is_given_counts_more_than_our_limits() -> None:
    ours = conninfo_to_dict(read_address("postgresql://db/runs").conninfo)
    assert (ours["connect_timeout"], ours["application_name"]) == ("5", "pullcord")
    given = read_address("postgresql://db/runs?connect_timeout=9&sslmode=verify-full").conninfo
    assert conninfo_to_dict(given)["connect_timeout"] == "9"
    assert conninfo_to_dict(given)["sslmode"] == "verify-full"


@pytest.mark.parametrize("given", ["postgresql://[db/z", "colour=green", "nonsense"])
def test_what_can_t_be_read_is_told_without_repeating_it(given: str) -> None:
    with pytest.raises(UnusableStoreError, match="postgresql: its address can't be read: "):
        read_address(given)
