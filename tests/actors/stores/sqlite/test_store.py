"""A database is opened, refused, brought up to date or set aside, and never harmed."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from actors.stores.sqlite import (
    DamagedStoreError,
    SqliteStore,
    UnusableStoreError,
    set_aside,
)
from actors.stores.sqlite import store as module
from tests.contracts.store import ITEMS, item


def written(path: Path, rows: int = 200) -> None:
    with closing(SqliteStore(path, synchronous=False)) as store:
        table = store.table(ITEMS)
        for number in range(rows):
            table.put(str(number), item("left", number, "x" * 100))
        store.commit()


def count_of(path: Path) -> int:
    with closing(SqliteStore(path)) as store:
        return store.table(ITEMS).count("shelf")


def test_rows_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        store.table(ITEMS).put("b", item("left", 2))
    assert count_of(path) == 1, "what was not committed is not"


def test_how_late_it_was_is_kept_with_what_is_written(tmp_path: Path) -> None:
    path, now_us = tmp_path / "store.db", 5
    with closing(SqliteStore(path)) as store:
        assert store.keep_stamps(lambda: now_us) == 0
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        now_us = 7
        assert store.table(ITEMS).get("a") is not None
        store.commit()
        assert set(store.snapshot()) == {ITEMS.name}, "it is no actor's"
    with closing(SqliteStore(path)) as store:
        assert store.keep_stamps(lambda: now_us) == 5, "a turn that only reads writes nothing"
        store.table(ITEMS).put("a", item("left", 2))
        store.roll_back()
        store.commit()
    with closing(SqliteStore(path)) as store:
        assert store.keep_stamps(lambda: now_us) == 5
        store.table(ITEMS).put("a", item("left", 2))
        store.commit()
        assert store.keep_stamps(lambda: now_us) == 7


def test_only_its_owner_may_read_any_of_its_files(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in tmp_path.iterdir()}
        others = ("-wal", "-shm", ".lock", ".reserve")
        assert modes == {f"store.db{end}": 0o600 for end in ("", *others)}


def test_a_store_can_be_looked_into_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        with closing(sqlite3.connect(path)) as other:
            query = "SELECT key, json_extract(row, '$.order'), by_shelf FROM items"
            assert other.execute(query).fetchall() == [("a", 1, "left")]
            assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_turns_may_run_in_whichever_thread(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:

        def turn() -> None:
            store.table(ITEMS).put("a", item("left", 1))
            store.commit()

        thread = threading.Thread(target=turn)
        thread.start()
        thread.join()
        assert store.table(ITEMS).get("a") == item("left", 1)


def test_closing_twice_is_closing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.close()
    store.close()


@pytest.mark.parametrize(("synchronous", "level"), [(True, 2), (False, 1)])
def test_a_commit_is_flushed_as_it_was_promised(
    tmp_path: Path, synchronous: bool, level: int
) -> None:
    with closing(SqliteStore(tmp_path / "store.db", synchronous=synchronous)) as store:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_log_is_cut_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOG_LIMIT_BYTES", 1 << 20)
    log = tmp_path / "store.db-wal"
    with closing(SqliteStore(tmp_path / "store.db", synchronous=False)) as store:
        table = store.table(ITEMS)
        for number in range(8):
            table.put(str(number), item("left", number, "x" * 1_000_000))
        store.commit()
        assert log.stat().st_size > 8_000_000
        for _ in range(2):
            table.put("a", item("left", 1))
            store.commit()
        assert log.stat().st_size == 1 << 20


# Versions


def test_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    message = (
        r"store\.db: a newer pullcord wrote it, in version 7 of its form, and this one reads up"
        r" to 1; update pullcord, or name another file"
    )
    with pytest.raises(UnusableStoreError, match=message):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_an_older_version_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    written(path)
    step = ("ALTER TABLE pullcord_tables ADD COLUMN note TEXT", "CREATE TABLE extra (a)")
    monkeypatch.setattr(module, "MIGRATIONS", (*module.MIGRATIONS, step))
    for _ in range(2):
        assert count_of(path) == 200
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (2,)
        assert other.execute("SELECT note FROM pullcord_tables").fetchall() == [(None,)]


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    written(path)
    step = ("CREATE TABLE extra (a)", "CREATE TABLE items (a)")
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", (*module.MIGRATIONS, step))
        with pytest.raises(DamagedStoreError, match="table items already exists"):
            SqliteStore(path)
    assert count_of(path) == 200
    with closing(sqlite3.connect(path)) as other:
        names = other.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert names == [("pullcord_tables",), ("items",)]


# What is no store of ours, or no longer one


def test_some_other_program_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE pages (a)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(UnusableStoreError, match="this is some other program's database; name"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    assert count_of(path) == 0


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableStoreError, match="can't be written: Is a directory"):
        SqliteStore(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_only_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path)
    path.chmod(0o400)
    with pytest.raises(UnusableStoreError, match="can't be written: Permission denied"):
        SqliteStore(path)


def test_a_store_that_is_opened_while_it_can_t_be_written_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0)
    path = tmp_path / "store.db"
    written(path)
    said = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(SqliteStore(path)) as store:
            said.append(store.writable)
            other.execute("COMMIT")
            store.commit()
            said.append(store.writable)
    assert said == [False, True]


def zero_the_second_page(data: bytes) -> bytes:
    return data[:4096] + bytes(4096) + data[8192:]


def lose_the_end(data: bytes) -> bytes:
    return data[: len(data) // 2]


def be_something_else(data: bytes) -> bytes:
    return (b"These are my notes.\n" * len(data))[: len(data)]


def garble(data: bytes) -> bytes:
    return data[:4096] + data[4096:][::-1]


DAMAGES = [zero_the_second_page, lose_the_end, be_something_else, garble]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_named_and_can_be_set_aside(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "store.db"
    written(path)
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"store\.db: the file is damaged") as raised:
            SqliteStore(path)
        assert raised.value.path == path
    data = path.read_bytes()
    assert set_aside(path) == tmp_path / "store.db.1"
    assert (tmp_path / "store.db.1").read_bytes() == data
    assert count_of(path) == 0, "there is room for a new one"


def test_damage_that_shows_while_it_is_open_fails_the_turn(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    written(path, rows=3_000)
    with closing(SqliteStore(path)) as store:
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * (path.stat().st_size - 8192))
        store._connection.execute("PRAGMA shrink_memory")  # it has read all of it already
        with pytest.raises(DamagedStoreError, match=r"store\.db: the file is damaged"):
            store.table(ITEMS).scan("order", limit=-1)


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_log_without_its_database_is_not_thrown_away(tmp_path: Path, left: str) -> None:
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    with closing(SqliteStore(path)) as store:
        store.table(ITEMS).put("a", item("left", 1))
        store.commit()
        saved = log.read_bytes()
    path.unlink()
    if left == "an empty file":
        path.touch()
    log.write_bytes(saved)
    with pytest.raises(
        DamagedStoreError, match=r"the file is gone, .* committed last is in .*-wal"
    ):
        SqliteStore(path)
    assert log.read_bytes() == saved
    assert set_aside(path) == tmp_path / "store.db.1"
    assert (tmp_path / "store.db.1-wal").read_bytes() == saved


def test_setting_aside_never_writes_over_and_takes_the_log_along(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (tmp_path / "store.db.1").write_text("mine")
    (tmp_path / "store.db.2-wal").write_text("mine too")
    written(path)
    (tmp_path / "store.db-wal").write_text("log")
    (tmp_path / "store.db-shm").write_text("index")
    assert set_aside(path) == tmp_path / "store.db.3"
    found = {place.name for place in tmp_path.iterdir()}
    assert {"store.db.3", "store.db.3-wal", "store.db.3-shm"} <= found
    assert not {"store.db", "store.db-wal", "store.db-shm"} & found
    assert (tmp_path / "store.db.1").read_text() == "mine"
    with closing(SqliteStore(tmp_path / "store.db.3")) as store:
        assert store.table(ITEMS).count("shelf") == 200


def test_what_is_not_there_can_t_be_set_aside(tmp_path: Path) -> None:
    with pytest.raises(UnusableStoreError, match="there is nothing to set aside"):
        set_aside(tmp_path / "store.db")
