"""Backups of an open store: whole turns, sound files, and nothing that was there is harmed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from actors.stores.sqlite import (
    DamagedStoreError,
    SqliteStore,
    StoreFailedError,
    UnusableStoreError,
    backup,
    restore,
)
from bench.run import ROOT
from tests.contracts.store import ITEMS, item


def filled(path: Path, rows: int = 3) -> SqliteStore:
    store = SqliteStore(path, synchronous=False)
    for number in range(rows):
        store.table(ITEMS).put(str(number), item("left", number, "x" * 100))
    store.commit()
    return store


def keys_of(path: Path) -> set[str]:
    with closing(SqliteStore(path)) as store:
        store.table(ITEMS)
        return {str(key) for key in store.snapshot().get("items", {})}


def test_it_has_what_is_committed_while_the_store_is_open(tmp_path: Path) -> None:
    with closing(filled(tmp_path / "store.db")) as store:
        store.table(ITEMS).put("uncommitted", item("left", 9))
        backup(tmp_path / "store.db", tmp_path / "copy.db")
        store.commit()
        assert store.table(ITEMS).count("shelf") == 4, "nothing of the turn is lost by it"
    names = {place.name for place in tmp_path.iterdir() if place.name.startswith("copy")}
    assert names == {"copy.db"}, "one file, and nothing beside it"
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert keys_of(tmp_path / "copy.db") == {"0", "1", "2"}


def test_a_closed_store_can_be_copied_and_a_copy_too(tmp_path: Path) -> None:
    filled(tmp_path / "store.db").close()
    backup(tmp_path / "store.db", tmp_path / "copy.db")
    backup(tmp_path / "copy.db", tmp_path / "again.db")
    assert keys_of(tmp_path / "again.db") == {"0", "1", "2"}


def test_every_copy_of_a_busy_store_has_whole_turns(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db", synchronous=False)) as store:
        table = store.table(ITEMS)
        over = threading.Event()

        def write() -> None:
            turn = 0
            while not over.is_set():
                for half in ("first", "second"):
                    table.put((str(turn), half), item(half, turn, "x" * 2_000))
                store.commit()
                turn += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(5):
                backup(tmp_path / "store.db", tmp_path / f"{number}.db")
        finally:
            over.set()
            writer.join()
    counts = []
    for number in range(5):
        with closing(SqliteStore(tmp_path / f"{number}.db")) as copy:
            first, second = (
                copy.table(ITEMS).count("shelf", (half,)) for half in ("first", "second")
            )
            assert first == second
            counts.append(first)
    assert counts == sorted(counts)


def test_it_never_replaces_a_file(tmp_path: Path) -> None:
    filled(tmp_path / "store.db").close()
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(UnusableStoreError, match=r"copy\.db: there is a file already; name anoth"):
        backup(tmp_path / "store.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_not_even_one_that_came_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "store.db").close()
    link = os.link

    def late(source: Path, target: Path) -> None:
        target.write_text("precious")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UnusableStoreError, match=r"copy\.db: can't be written: File exists"):
        backup(tmp_path / "store.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
    assert not (tmp_path / "copy.db.part").exists()


def test_one_that_was_killed_is_no_backup_and_is_made_anew(tmp_path: Path) -> None:
    filled(tmp_path / "store.db").close()
    lines = (
        "import os, sys, actors.stores.sqlite.copying as module",
        "from pathlib import Path",
        "module._give_name = lambda part, to: os.kill(os.getpid(), 9)",
        "module.backup(Path(sys.argv[1]), Path(sys.argv[2]))",
    )
    files = [str(tmp_path / name) for name in ("store.db", "copy.db")]
    killed = subprocess.run([sys.executable, "-c", "\n".join(lines), *files], cwd=ROOT, check=False)
    assert killed.returncode == -9
    assert not (tmp_path / "copy.db").exists()
    assert (tmp_path / "copy.db.part").exists()
    backup(tmp_path / "store.db", tmp_path / "copy.db")
    assert keys_of(tmp_path / "copy.db") == {"0", "1", "2"}
    assert not (tmp_path / "copy.db.part").exists()


def test_what_is_no_store_of_ours_is_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(UnusableStoreError, match="there is no database to back up"):
        backup(tmp_path / "none.db", tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE things (a)")
    with pytest.raises(UnusableStoreError, match="this is some other program's database"):
        backup(tmp_path / "other.db", tmp_path / "copy.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to have a header " * 9)
    with pytest.raises(DamagedStoreError, match="the file is damaged"):
        backup(tmp_path / "text.db", tmp_path / "copy.db")
    assert not list(tmp_path.glob("copy*"))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    filled(tmp_path / "store.db").close()
    with pytest.raises(UnusableStoreError, match=r"copy\.db: can't be written: No such file or"):
        backup(tmp_path / "store.db", tmp_path / "nowhere" / "copy.db")


def test_damage_is_found_before_it_is_kept(tmp_path: Path) -> None:
    filled(tmp_path / "store.db", 500).close()
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises((DamagedStoreError, StoreFailedError), match="damaged"):
        backup(tmp_path / "store.db", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def test_a_restored_store_is_the_copied_one_and_goes_on(tmp_path: Path) -> None:
    with closing(filled(tmp_path / "store.db")) as store:
        backup(tmp_path / "store.db", tmp_path / "copy.db")
        with pytest.raises(UnusableStoreError, match="this process has it open"):
            restore(tmp_path / "copy.db", tmp_path / "store.db")
        store.table(ITEMS).put("later", item("left", 9))
        store.commit()
    with pytest.raises(UnusableStoreError, match="there is a database already; set it aside first"):
        restore(tmp_path / "copy.db", tmp_path / "store.db")
    for place in tmp_path.glob("store.db*"):
        place.unlink()
    restore(tmp_path / "copy.db", tmp_path / "store.db")
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.table(ITEMS).put("new", item("left", 1))
        store.commit()
    assert keys_of(tmp_path / "store.db") == {"0", "1", "2", "new"}
    assert keys_of(tmp_path / "copy.db") == {"0", "1", "2"}
