"""A database is opened, refused, brought up to date, lost and found again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from actors.stores.failures import (
    StoreConflictError,
    UnusableStoreError,
)
from actors.stores.postgres import PostgresStore
from bench.run import ROOT
from tests.contracts.store import ITEMS, OTHERS, item
from tests.postgresql import address, connect


@contextmanager
def pair(where: str | None = None) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """Two processes on one database."""
    where = where or address()
    with closing(PostgresStore(where)) as one, closing(PostgresStore(where)) as other:
        yield one, other


def schema_of(store: PostgresStore) -> str:
    return store._address.schema


def test_rows_are_there_when_it_is_opened_again() -> None:
    where = address()
    with closing(PostgresStore(where)) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        store.table(ITEMS).put("b", item("left", 2))
    with closing(PostgresStore(where)) as store:
        assert store.table(ITEMS).count("shelf") == 1, "what was not committed is not"


def test_schemas_are_apart() -> None:
    with closing(PostgresStore(address())) as one, closing(PostgresStore(address())) as other:
        one.table(ITEMS).put("a", item("left", 1))
        one.commit()
        assert other.table(ITEMS).get("a") is None


def test_people_can_look_into_it() -> None:
    with closing(PostgresStore(address())) as store, connect() as other:
        store.table(ITEMS).put(("a", "b"), item("left", 1))
        store.commit()
        sql = f"SELECT key, row::json ->> 'order', by_shelf FROM {schema_of(store)}.items"
        assert other.execute(sql).fetchall() == [("a\x01b\x01", "1", "left")]


def test_its_place_has_no_password() -> None:
    with pytest.raises(UnusableStoreError) as raised:
        PostgresStore("postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2")
    assert "postgresql://127.0.0.1:1/db (pullcord): can't be reached: " in str(raised.value)
    assert "secret" not in str(raised.value)


def test_what_is_no_address_is_refused_in_a_line() -> None:
    with pytest.raises(UnusableStoreError, match="postgresql: its address can't be read: invalid"):
        PostgresStore("postgresql://host/db?colour=green")


def test_a_database_that_is_not_there_is_refused_in_a_line() -> None:
    with pytest.raises(UnusableStoreError, match=r'be reached: .*"nowhere" does not exist'):
        PostgresStore(address(database="nowhere"))


# Several processes


def test_of_two_turns_on_one_row_the_second_is_a_conflict_and_can_be_taken_again() -> None:
    with pair() as (one, other):
        ours, theirs = one.table(ITEMS), other.table(ITEMS)
        ours.put("a", item("left", 1))
        one.commit()
        assert ours.get("a") == theirs.get("a")
        ours.put("a", item("left", 2))
        one.commit()
        with pytest.raises(StoreConflictError, match="another process was first"):
            theirs.put("a", item("left", 3))
        other.roll_back()
        assert other.writable
        assert theirs.get("a") == item("left", 2)
        theirs.put("a", item("left", 3))
        other.commit()
        assert ours.get("a") == item("left", 3)


def test_two_turns_that_count_before_they_add_never_go_over_a_limit() -> None:
    with pair() as (one, other):
        tables = [(store, store.table(ITEMS)) for store in (one, other)]
        for number, (_, table) in enumerate(tables):
            assert table.count("shelf", ("left",)) == 0
            table.put(str(number), item("left", number))
        one.commit()
        with pytest.raises(StoreConflictError):
            other.commit()
        assert tables[1][1].count("shelf", ("left",)) == 1


def test_a_conflict_takes_the_turns_of_its_group_along() -> None:
    with pair() as (one, other):
        ours, theirs = one.table(ITEMS), other.table(ITEMS)
        other.begin_turn()
        theirs.put("b", item("left", 1))
        other.end_turn()
        other.begin_turn()
        theirs.get("a")
        ours.get("b")
        ours.put("a", item("left", 2))
        one.commit()
        with pytest.raises(StoreConflictError):
            theirs.put("a", item("left", 3))
        other.roll_back()
        with pytest.raises(StoreConflictError):
            other.commit()
        assert theirs.get("b") is None


def test_a_claim_skips_what_another_process_holds() -> None:
    with pair() as (one, other):
        ours, theirs = one.table(ITEMS), other.table(ITEMS)
        for number in range(4):
            ours.put(str(number), item("left", number))
        one.commit()
        assert [row.order for row in ours.claim("shelf", ("left",), limit=2)] == [0, 1]
        assert [row.order for row in theirs.claim("shelf", ("left",), limit=2)] == [2, 3]
        assert theirs.scan("shelf", ("left",), limit=9)[0].order == 0
        one.commit()
        other.commit()
        assert len(theirs.claim("shelf", ("left",), limit=9)) == 4


def test_insert_unique_gives_a_key_to_one_process() -> None:
    with pair() as (one, other):
        ours, theirs = one.table(OTHERS), other.table(OTHERS)
        assert theirs.get("x") is None
        assert ours.insert_unique("k", item("left", 1))
        one.commit()
        with pytest.raises(StoreConflictError):
            theirs.insert_unique("k", item("left", 2))
        other.roll_back()
        assert not theirs.insert_unique("k", item("left", 2))


def test_without_its_package_it_says_what_to_install() -> None:
    lines = "import sys; sys.modules['psycopg'] = None; import actors.stores.postgres"
    told = subprocess.run(
        [sys.executable, "-c", lines], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert told.stderr.splitlines()[-1].endswith("pip install 'pullcord[postgres]'")
