"""A connection is lost and made again, turns fail and heal, and the time goes forward."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise

import psycopg
import pytest

from actors.stores.failures import StoreFailedError
from actors.stores.postgres import PostgresStore
from tests.contracts.store import ITEMS, item
from tests.postgresql import address, connect


def schema_of(store: PostgresStore) -> str:
    return store._address.schema


def cut(store: PostgresStore) -> None:
    """Have the database end a store's connection."""
    connection = store._transaction._connection
    assert connection is not None
    with connect() as other:
        sql = "SELECT pg_terminate_backend(%s, 5000)"
        other.execute(sql, (connection.info.backend_pid,))


def test_a_connection_that_is_lost_between_turns_is_made_again_and_nobody_notices() -> None:
    with closing(PostgresStore(address())) as store:
        table = store.table(ITEMS)
        table.put("a", item("left", 1))
        store.commit()
        cut(store)
        assert table.get("a") == item("left", 1)
        assert store.writable


@pytest.mark.parametrize("at", ["read", "write", "commit", "roll_back"])
def test_a_connection_that_is_lost_in_a_turn_fails_it(at: str) -> None:
    with closing(PostgresStore(address())) as store:
        table = store.table(ITEMS)
        store.begin_turn()
        table.put("a", item("left", 1))
        store.end_turn()
        store.begin_turn()
        table.put("b", item("left", 1))
        cut(store)
        if at == "read":
            with pytest.raises(StoreFailedError):
                table.get("a")
        elif at == "write":
            with pytest.raises(StoreFailedError):
                table.put("c", item("left", 1))
        if at != "commit":
            store.roll_back()
        with pytest.raises(StoreFailedError, match=r"shut down|connection is lost"):
            store.commit()
        assert not store.writable
        assert store.snapshot() == {}
        store.commit()
        assert store.writable, "it heals by itself"


def test_a_database_that_is_gone_is_not_asked_at_every_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(PostgresStore(address())) as store:
        table = store.table(ITEMS)
        table.get("a")
        store.commit()
        tries: list[float] = []
        now_s = [100.0]

        def connect_in_vain() -> None:
            tries.append(now_s[0])
            raise psycopg.OperationalError("connection refused")

        monkeypatch.setattr("actors.stores.postgres.transaction.time.monotonic", lambda: now_s[0])
        monkeypatch.setattr(store._transaction, "_connect", connect_in_vain)
        cut(store)
        for _ in range(1_000):
            with pytest.raises(StoreFailedError, match="can't be reached: connection refused"):
                table.get("a")
            store.roll_back()
            now_s[0] += 0.01
        gaps = [after - before for before, after in pairwise(tries)]
        assert [round(gap, 1) for gap in gaps] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
        assert not store.writable


# Time


def test_the_time_is_the_database_s_and_never_goes_back() -> None:
    where = address()
    with (
        closing(PostgresStore(where)) as one,
        closing(PostgresStore(where)) as other,
        connect() as third,
    ):
        sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
        [(before,)] = third.execute(sql).fetchall()
        stamps = [one.stamp_us(), other.stamp_us(), one.stamp_us()]
        one.commit()
        stamps += [one.stamp_us(), other.stamp_us()]
        [(after,)] = third.execute(sql).fetchall()
        assert isinstance(before, int)
        assert isinstance(after, int)
        assert before <= min(stamps) <= max(stamps) <= after
        assert stamps[0] <= stamps[2] <= stamps[3]
        # Somebody has told a later time, before the clock was set back by an hour.
        ahead_us = after + 3_600_000_000
        third.execute(f"SELECT setval('{schema_of(one)}.pullcord_clock', {ahead_us})")
        told: dict[PostgresStore, list[int]] = {one: [], other: []}
        for _ in range(20):
            for store, so_far in told.items():
                store.commit()
                so_far.append(store.stamp_us())
        assert all(so_far == sorted(so_far) for so_far in told.values())
        assert all(so_far[0] >= ahead_us for so_far in told.values())
        apart_us = abs(told[one][-1] - told[other][-1])
        assert apart_us < 30_000_000, "each goes on from where the other was"
        assert told[one][-1] - ahead_us < 30_000_000, "and no faster than time goes"


def test_a_second_of_time_is_written_once() -> None:
    with closing(PostgresStore(address())) as store:
        marks = set()
        for _ in range(20):
            store.stamp_us()
            store.commit()
            marks.add(store._transaction.read("SELECT 1")[0])
            with connect() as other:
                sql = f"SELECT last_value FROM {schema_of(store)}.pullcord_clock"
                marks.add(other.execute(sql).fetchall()[0])
            store.commit()
        assert len(marks) <= 3
