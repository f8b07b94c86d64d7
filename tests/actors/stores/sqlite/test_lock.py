"""One store at a time has a database, and the next one is told which."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from actors.stores.sqlite import SqliteStore, UnusableStoreError, set_aside
from bench.run import ROOT

HOLDER = """
import sys
from pathlib import Path
from actors.stores.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = [sys.executable, "-c", HOLDER, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        message = rf"store\.db: process {holder.pid} has it open; stop that one first, or name"
        with pytest.raises(UnusableStoreError, match=message):
            SqliteStore(path)
        with pytest.raises(UnusableStoreError, match=message):
            set_aside(path)
        holder.kill()
    SqliteStore(path).close()


def test_a_second_store_in_this_process_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (tmp_path / "link.db").symlink_to(path)
    with closing(SqliteStore(path)):
        for name in ("store.db", "link.db"):
            with pytest.raises(UnusableStoreError, match="this process has it open"):
                SqliteStore(tmp_path / name)
    SqliteStore(path).close()


def test_the_lock_names_its_holder_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    place = tmp_path / "store.db.lock"
    place.write_text("1234567890123")
    with closing(SqliteStore(tmp_path / "store.db")):
        assert place.read_text() == str(os.getpid())


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnusableStoreError, match="can't be opened: No such file or directory: "):
        SqliteStore(tmp_path / "nowhere" / "store.db")
