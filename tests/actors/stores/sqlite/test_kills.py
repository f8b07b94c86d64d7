"""What is on the disk after the worst: a kill at any moment, a log torn anywhere, a full disk."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from actors.stores.sqlite import SqliteStore
from actors.stores.sqlite.reserve import Reserve
from bench.run import ROOT
from tests.contracts.store import ITEMS, item

WRITER = """
import sys
from pathlib import Path
from actors.stores.sqlite import SqliteStore
from tests.contracts.store import ITEMS, item

store = SqliteStore(Path(sys.argv[1]), synchronous=sys.argv[2] == "synchronous")
table = store.table(ITEMS)
for turn in range(1_000_000):
    for half in ("first", "second"):
        table.put((str(turn), half), item(half, turn, "x" * 1_000))
    if sys.argv[3] == str(turn):
        print("uncommitted", flush=True)
        sys.stdin.read()
    store.commit()
    print(turn, flush=True)
"""

FULL_DISK = """
import subprocess, sys
from pathlib import Path
from actors.stores.sqlite import SqliteStore, StoreFailedError
from tests.contracts.store import OTHERS, item

place = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=True)
store = SqliteStore(place / "store.db")
table = store.table(OTHERS)
table.put("before", item("left", 0))
store.commit()
print("writable", store.writable)

ballast = place / "ballast"

def fill():
    try:
        with ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        print(error.strerror)

fill()
table.put("under way", item("left", 1, "x" * 300_000))
store.commit()
print("committed from the reserve, writable", store.writable)

kept = 0
try:
    while True:
        table.put(str(kept), item("right", kept, "x" * 100_000))
        store.commit()
        kept += 1
except StoreFailedError as error:
    print(error.sentence)
print("some were kept", kept > 0, "all of them are there", table.count("shelf", ("right",)) == kept)
store.commit()
print("writable", store.writable)

store.close()
store = SqliteStore(place / "store.db")
table = store.table(OTHERS)
print("opened while full, writable", store.writable, table.count("shelf", ("right",)) == kept)
ballast.unlink()
store.commit()
print("writable", store.writable, "reserve", (place / "store.db.reserve").stat().st_size)
table.put("after", item("left", 2))
store.commit()
print(table.get("under way").order, table.get("after").order)

store.close()
fill()
store = SqliteStore(place / "store.db")
print("opened with the reserve, writable", store.writable)
print(store.table(OTHERS).get("after").order)
"""


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def turns_of(path: Path) -> list[int]:
    """Open a store and return the turns that it has; each is whole."""
    with closing(SqliteStore(path, synchronous=False)) as store:
        table = store.table(ITEMS)
        turns = [row.order for row in table.scan("shelf", ("first",), limit=-1)]
        assert turns == [row.order for row in table.scan("shelf", ("second",), limit=-1)]
        assert all(table.get((str(turn), "second")) is not None for turn in turns)
    return turns


@pytest.mark.parametrize("mode", ["synchronous", "not synchronous"])
def test_what_was_committed_survives_a_kill_and_nothing_else(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "store.db"
    with start(path, mode, "20") as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline().strip() for _ in range(21)]
        assert lines[-1] == "uncommitted"
        writer.send_signal(signal.SIGKILL)
    assert turns_of(path) == list(range(20))


@pytest.mark.parametrize("until", [1, 7, 40])
def test_a_kill_at_any_moment_leaves_whole_turns(tmp_path: Path, until: int) -> None:
    path = tmp_path / "store.db"
    with start(path, "not synchronous", "never") as writer:
        assert writer.stdout is not None
        for _ in range(until):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        told = until + len(writer.stdout.readlines())
    turns = turns_of(path)
    assert turns == list(range(len(turns)))
    assert told <= len(turns) <= told + 1, "the last may have been committed and not told"


def test_a_log_torn_anywhere_has_the_turns_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reserve, "take", lambda _: True)  # a MiB for each of them is slow
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store:
        table = store.table(ITEMS)
        for turn in range(5):
            for half in ("first", "second"):
                table.put((str(turn), half), item(half, turn, "x" * 1_000))
            store.commit()
        saved = {name: (tmp_path / name).read_bytes() for name in ("store.db", "store.db-wal")}
    torn = tmp_path / "torn.db"
    log = saved["store.db-wal"]
    counts = []
    for length in (*range(0, len(log), 2_003), len(log)):
        torn.write_bytes(saved["store.db"])
        torn.with_name("torn.db-wal").write_bytes(log[:length])
        torn.with_name("torn.db-shm").unlink(missing_ok=True)
        turns = turns_of(torn)
        assert turns == list(range(len(turns)))
        counts.append(len(turns))
    assert counts == sorted(counts)
    assert set(counts) == set(range(6)), "from none of them to all of them"


def may_mount(place: Path) -> bool:
    """Whether this user may mount a file system where nobody else sees it."""
    if shutil.which("unshare") is None:
        return False
    mount = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", str(place)]
    return subprocess.run(mount, check=False, capture_output=True).returncode == 0


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("no user namespaces: tests of a full disk without a disk are in others")
    command = ["unshare", "-Urm", sys.executable, "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "writable True",
        "No space left on device",
        "committed from the reserve, writable False",
        "the disk is full; free some space (SQLITE_FULL: database or disk is full)",
        "some were kept True all of them are there True",
        "writable False",
        "opened while full, writable False True",
        "writable True reserve 1048576",
        "1 2",
        "No space left on device",
        "opened with the reserve, writable False",
        "2",
    ]
