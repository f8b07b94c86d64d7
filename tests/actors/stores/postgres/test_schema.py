"""A schema is made, taken, or refused and left alone."""

from __future__ import annotations

from contextlib import closing

import pytest

from actors.stores.failures import DamagedStoreError, UnusableStoreError
from actors.stores.postgres import PostgresStore
from tests.contracts.store import ITEMS, item
from tests.postgresql import address, connect


def schema_of(store: PostgresStore) -> str:
    return store._address.schema


def test_a_schema_of_some_other_program_is_refused_and_left_alone() -> None:
    with connect() as other:
        other.execute("CREATE SCHEMA theirs; CREATE TABLE theirs.things (a int)")
        with pytest.raises(UnusableStoreError, match="this schema is some other program's"):
            PostgresStore(address("theirs"))
        sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'theirs'"
        assert other.execute(sql).fetchall() == [(1,)]


def test_a_schema_that_is_there_and_empty_is_taken() -> None:
    with connect() as other:
        other.execute('CREATE SCHEMA "an empty ""one"', ())
    with closing(PostgresStore(address('an empty "one'))) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()


def test_a_newer_form_is_refused() -> None:
    where = address()
    with closing(PostgresStore(where)) as store, connect() as other:
        other.execute(f"UPDATE {schema_of(store)}.pullcord_form SET version = 7")
    with pytest.raises(UnusableStoreError, match="in version 7 of its form, and this one reads up"):
        PostgresStore(where)


def test_a_database_of_another_encoding_is_refused() -> None:
    with connect() as other:
        other.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(UnusableStoreError, match="the database is in LATIN1; make one with"):
        PostgresStore(address(database="latin"))


def test_a_user_who_may_not_is_told_so() -> None:
    with connect() as other:
        other.execute("CREATE ROLE visitor LOGIN")
    with pytest.raises(UnusableStoreError, match="its user may not do this; grant it what docs"):
        PostgresStore(address().replace("postgres@", "visitor@"))


def test_a_table_that_somebody_dropped_is_damage() -> None:
    with closing(PostgresStore(address())) as store, connect() as other:
        table = store.table(ITEMS)
        other.execute(f"DROP TABLE {schema_of(store)}.items")
        with pytest.raises(DamagedStoreError, match="its tables were changed by another program"):
            table.get("a")
