"""Turns that share a commit, and what becomes of them when it fails."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from actors.actor import TableSpec
from actors.stores.sqlite import DamagedStoreError, SqliteStore, StoreFailedError
from actors.stores.sqlite.table import SqliteTable
from bench.run import ROOT
from tests.actors.stores.sqlite.opened import Disk
from tests.contracts.store import OTHERS, Item, item

LONG = "x" * 20_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.db", synchronous=False)) as store:
        store.table(OTHERS).put("before", item("left", 0))
        store.commit()
        yield store


@pytest.fixture
def table(store: SqliteStore) -> SqliteTable[Item]:
    return store.table(OTHERS)


@pytest.fixture
def disk(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(store, monkeypatch)


def turn(store: SqliteStore, key: str, note: str = "") -> None:
    store.begin_turn()
    store.table(OTHERS).put(key, item("left", 1, note))
    store.end_turn()


def keys(store: SqliteStore) -> list[str]:
    """Every key that a second connection sees: what is committed."""
    with closing(sqlite3.connect(store.path)) as other:
        return [key for (key,) in other.execute("SELECT key FROM others ORDER BY key")]


# Turns


def test_turns_share_a_commit_and_each_may_be_undone_alone(
    store: SqliteStore, table: SqliteTable[Item]
) -> None:
    turn(store, "1")
    store.begin_turn()
    table.put("2", item("left", 2))
    table.put("1", item("right", 9))
    table.delete("before")
    store.roll_back()
    assert table.get("1") == item("left", 1)
    turn(store, "3")
    assert keys(store) == ["before"], "nothing is durable before the commit"
    store.commit()
    assert keys(store) == ["1", "3", "before"]


def test_the_first_turn_may_be_undone(store: SqliteStore, table: SqliteTable[Item]) -> None:
    store.begin_turn()
    table.put("1", item("left", 1))
    store.roll_back()
    turn(store, "2")
    store.commit()
    assert keys(store) == ["2", "before"]


def test_without_a_turn_all_since_the_last_commit_is_undone(store: SqliteStore) -> None:
    turn(store, "1")
    turn(store, "2")
    store.roll_back()
    store.commit()
    assert keys(store) == ["before"]


def test_a_turn_that_reads_costs_no_statement(store: SqliteStore, table: SqliteTable[Item]) -> None:
    said: list[str] = []
    store._connection.set_trace_callback(said.append)
    store.begin_turn()
    assert table.get("before") is not None
    store.end_turn()
    store.commit()
    assert [line.split()[0] for line in said] == ["SELECT"]


def test_a_commit_ends_the_open_turn(store: SqliteStore, table: SqliteTable[Item]) -> None:
    store.begin_turn()
    table.put("1", item("left", 1))
    store.commit()
    assert keys(store) == ["1", "before"]
    turn(store, "2")


# A full disk


def test_a_full_disk_is_met_with_the_reserve(
    store: SqliteStore, table: SqliteTable[Item], disk: Disk
) -> None:
    turn(store, "1")
    store.begin_turn()
    table.put("2", item("left", 2))
    disk.fill()
    table.put("3", item("left", 3, LONG))
    store.roll_back()
    assert table.get("2") is None, "what was done again knows where its turn began"
    assert table.get("1") is not None
    turn(store, "4", LONG)
    store.commit()
    assert keys(store) == ["1", "4", "before"]
    assert not store.writable, "the reserve is gone"
    assert not store.path.with_name("store.db.reserve").exists()


def test_a_table_that_is_new_is_made_again_with_the_reserve(store: SqliteStore, disk: Disk) -> None:
    new = store.table(TableSpec("new", Item, shelf=("shelf",)))
    assert new.insert_unique("1", item("left", 1))
    disk.fill()
    new.put("2", item("left", 2, LONG))
    store.commit()
    assert not store.writable, "the disk was full"
    assert new.count("shelf", ("left",)) == 2
    store.roll_back()
    assert new._ready, "it is committed: nothing makes it new"


def test_it_is_writable_once_the_reserve_is_there_again_and_a_commit_succeeds(
    store: SqliteStore, disk: Disk
) -> None:
    disk.fill()
    turn(store, "1", LONG)
    said = []
    for _ in range(2):
        store.commit()
        said.append(store.writable)
    disk.free()
    said.append(store.writable)
    store.commit()
    said.append(store.writable)
    assert said == [False, False, False, True], "a turn that writes nothing tries it"
    assert store.path.with_name("store.db.reserve").exists()


def test_a_disk_that_stays_full_fails_the_turn(
    store: SqliteStore, table: SqliteTable[Item], disk: Disk
) -> None:
    disk.reserve_pages = 0
    disk.fill()
    with pytest.raises(StoreFailedError, match=r"store\.db: the disk is full; free some space \("):
        table.put("1", item("left", 1, LONG))
    with pytest.raises(StoreFailedError, match="the disk is full"):
        table.get("before")
    store.roll_back()
    assert not store.writable
    assert table.get("before") == item("left", 0)
    disk.free()
    turn(store, "2", LONG)
    store.commit()
    assert keys(store) == ["2", "before"]
    assert store.writable


def test_a_turn_that_fails_takes_those_before_it_along(
    store: SqliteStore, table: SqliteTable[Item], disk: Disk
) -> None:
    disk.reserve_pages = 0
    turn(store, "1")
    disk.fill()
    store.begin_turn()
    with pytest.raises(StoreFailedError):
        table.put("2", item("left", 2, LONG))
    store.roll_back()
    store.begin_turn()
    with pytest.raises(StoreFailedError):
        table.get("before")
    store.end_turn()
    with pytest.raises(StoreFailedError, match="the disk is full"):
        store.commit()
    assert keys(store) == ["before"]
    assert table.get("1") is None, "what the table shows is what is on the disk"
    disk.free()
    turn(store, "3")
    store.commit()
    assert keys(store) == ["3", "before"]


# Other failures


def test_what_may_not_be_written_says_so(store: SqliteStore, table: SqliteTable[Item]) -> None:
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(StoreFailedError, match="the file or its folder may not be written"):
        table.put("1", item("left", 1))
    store.roll_back()
    store.commit()
    assert not store.writable
    assert store.path.with_name("store.db.reserve").exists(), "no room is what it lacks"
    store._connection.execute("PRAGMA query_only = 0")
    store.commit()
    assert store.writable


def test_what_has_failed_is_not_done_again_with_the_reserve(
    store: SqliteStore, table: SqliteTable[Item], disk: Disk
) -> None:
    turn(store, "1")
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(StoreFailedError):
        table.put("2", item("left", 2))
    with pytest.raises(StoreFailedError):
        store.commit()
    store._connection.execute("PRAGMA query_only = 0")
    disk.fill()
    turn(store, "3", LONG)
    store.commit()
    assert not store.writable, "the disk was full"
    assert keys(store) == ["3", "before"]


def test_a_host_may_say_that_it_is_not_writable(store: SqliteStore) -> None:
    said = []
    for allowed in (False, True):
        store.writable = allowed
        store.commit()
        said.append(store.writable)
    assert said == [False, True]


def test_another_program_that_writes_is_waited_for_and_told(
    store: SqliteStore, table: SqliteTable[Item]
) -> None:
    store._connection.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailedError, match="another program is writing to the file, the s"):
            table.put("1", item("left", 1))
        store.roll_back()
        assert table.get("before") is not None, "it can still be read"
    turn(store, "2")
    store.commit()
    assert keys(store) == ["2", "before"]


def test_a_turn_that_can_t_be_undone_takes_all_of_them_along(
    store: SqliteStore, table: SqliteTable[Item]
) -> None:
    turn(store, "1")
    store.begin_turn()
    table.put("2", item("left", 2))
    store._connection.execute("RELEASE turn")
    store.roll_back()
    with pytest.raises(DamagedStoreError, match=r"changed by another program \(.*such savepoint"):
        store.commit()
    assert keys(store) == ["before"]
    turn(store, "3")
    store.commit()
    assert keys(store) == ["3", "before"]


def test_a_bug_of_ours_is_no_failure_of_the_disk(store: SqliteStore) -> None:
    with pytest.raises(sqlite3.ProgrammingError):
        store._transaction.write("DELETE FROM others WHERE key = ?", ())
    assert store.writable
    store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store.table(OTHERS).get("a")


# A file that may not grow: the write fails as late as at the commit, as it does on a real disk

COMMITS = """
import resource, sys
from pathlib import Path
from actors.actor import TableSpec
from actors.stores.sqlite import DamagedStoreError, SqliteStore, StoreFailedError
from tests.contracts.store import OTHERS, item

HARD = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
path, reserve_helps = Path(sys.argv[1]), sys.argv[2] == "helps"

def limit(size_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, HARD))

store = SqliteStore(path)
table = store.table(OTHERS)
table.put("before", item("left", 0))
store.commit()
if reserve_helps:
    release = store._transaction._reserve.release
    store._transaction._reserve.release = lambda: limit(1 << 19) or release()

limit(path.with_name("store.db-wal").stat().st_size + 50_000)
for number in range(5):
    store.begin_turn()
    table.put(str(number), item("left", number, "x" * 20_000))
    if number == 2:
        store.roll_back()
    else:
        store.end_turn()
try:
    store.commit()
    print("committed")
except StoreFailedError as error:
    print(error.sentence)
print(table.count("shelf"), store.writable)
table.put("small", item("left", 9))
store.commit()
print(table.count("shelf"), store.writable)
limit(HARD)
store.commit()
print(store.writable)
store.close()
print(SqliteStore(path).table(OTHERS).count("shelf"))
"""


@pytest.mark.parametrize(
    ("reserve", "told"),
    [
        ("helps", ["committed", "5 False", "6 False", "True", "6"]),
        (
            "is too small",
            [
                "the disk can't be read or written (SQLITE_IOERR_WRITE: disk I/O error)",
                *("1 False", "2 False", "True", "2"),
            ],
        ),
    ],
)
def test_a_commit_that_fails_is_done_again_with_the_reserve_or_never_was(
    tmp_path: Path, reserve: str, told: list[str]
) -> None:
    command = [sys.executable, "-c", COMMITS, str(tmp_path / "store.db"), reserve]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == told
