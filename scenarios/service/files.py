"""Where a deployed process keeps its files, and how it writes those that must not be lost.

`$PULLCORD_HOME`, or `pullcord` in the user's data (XDG_DATA_HOME), has the folders `server` and
`desktop`. They are their owner's alone.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from actors.stores.failures import DamagedStoreError, StoreError, UnusableStoreError
from actors.stores.sqlite import SqliteStore, set_aside
from actors.stores.sqlite.lock import Lock
from actors.stores.sqlite.store import APPLICATION_ID
from scenarios.graph_files import refusal
from scenarios.problems import ScenarioError

Kind = Literal["server", "desktop", "agent"]
SHORTER = "give a shorter --folder, or a shorter PULLCORD_HOME"  # what a socket's path needs
SQLITE = "sqlite:"
SQLITE_MARK = b"SQLite format 3\0"
SQLITE_HEAD_BYTES = 100
ANOTHER_DATABASE = "name a file in a folder that is there and may be written"
UNREACHED = "change who may use it, or name another"
NOT_OURS = "name another file; if it is a damaged one of yours, move it away first"


def home() -> Path:
    """Return the folder of everything that is deployed; it need not be there."""
    if chosen := os.environ.get("PULLCORD_HOME"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or ""
    base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return base / "pullcord"


def make_folder(path: Path) -> Path:
    """Make a process's folder, its owner's alone, if it is not there. ScenarioError if it can't be.

    One that is there already stays as it is, but must be writable.
    """
    try:
        if not path.is_dir():
            path.mkdir(parents=True, mode=0o700)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        cure = "give another place by --folder, or change who may write this one"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            cure = "free some space"
        raise refusal(str(path), f"the folder can't be written: {error.strerror}", cure) from None
    return path


def warn_of_readers(path: Path, say: Callable[[str], None]) -> None:
    """Say so if others than its owner may read a file that has a token in it."""
    with suppress(OSError):
        if path.stat().st_mode & 0o077:
            say(f"{path}: others may read the token in it; chmod 600 {path}")


def write_secret(path: Path, text: str) -> None:
    """Write a file that its owner alone may read: whole and on the disk, or not at all. OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # of mode 600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut may bring the old name back
    finally:
        os.close(folder)


def lock_folder(folder: Path, kind: Kind) -> Lock:
    """Return a lock that no other process of this kind on the folder gets. ScenarioError."""
    try:
        return Lock(folder / kind)
    except UnusableStoreError as error:
        if " has it open" not in error.sentence:
            raise refusal(str(folder), error.sentence) from None
        who = error.sentence.partition(" has it open")[0]
        cure = "stop that one first, or give this one another --folder"
        raise refusal(str(folder), f"another {kind} uses this folder: {who}", cure) from None


def open_sqlite(path: Path, say: Callable[[str], None]) -> SqliteStore:
    """Open a database; one that is damaged is set aside and a new one begun, which `say` is told.

    ScenarioError if it can't be had. What never was a database of ours stays where it is, whatever
    it is: a path may be mistyped.
    """
    try:
        if path.exists() and not path.is_file():  # before a lock is put beside it
            raise refusal(str(path), "this is no file", ANOTHER_DATABASE)
        if not path.absolute().parent.is_dir():
            raise refusal(str(path), "its folder is not there", ANOTHER_DATABASE)
        known = _was_ours(path)
    except OSError as error:
        raise refusal(str(path), f"can't be opened: {error.strerror}", ANOTHER_DATABASE) from None
    try:
        try:
            return SqliteStore(path)
        except DamagedStoreError as error:
            if not known:
                raise refusal(str(path), "this is no database of pullcord", NOT_OURS) from None
            aside = set_aside(path)
            say(f"{path}: {error.sentence.partition(';')[0]}")
            say(f"it is kept as {aside}, and a new one is begun: what only it knew is lost")
            say(f"help: sqlite3 {aside} .recover shows what can be read of it")
            return SqliteStore(path)
    except StoreError as error:
        raise store_problem(error) from None


def _was_ours(path: Path) -> bool:
    """Whether a file that is no sound database was one of ours: by its head, or what lies beside.

    OSError if it can't be read. Where there is nothing, nothing else can be lost.
    """
    if not path.exists() or path.with_name(f"{path.name}.reserve").exists():
        return True
    with path.open("rb") as file:
        head = file.read(SQLITE_HEAD_BYTES)
    mark = head[68:72]  # the application id, where SQLite has it
    return not head or (head.startswith(SQLITE_MARK) and mark == APPLICATION_ID.to_bytes(4, "big"))


def store_problem(error: StoreError) -> ScenarioError:
    """Return what is wrong with a store as a user's problem: place, cause and cure."""
    sentence, _, cure = error.sentence.partition("; ")
    if not cure and sentence.startswith("can't be "):
        cure = UNREACHED
    return refusal(str(error.path), sentence, cure or None)
