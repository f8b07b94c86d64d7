"""Copies of a database: made while it is in use, and put back where there is none.

A copy is what one commit left, whole: later turns are not in it, and none is held up by it. It is
written beside its name and gets that only when it is on the disk and was found sound, so whatever
bears the name is a backup. One that was interrupted leaves `NAME.part`; the next one replaces it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from actors.stores.failures import UnusableStoreError
from actors.stores.sqlite.lock import Lock
from actors.stores.sqlite.store import check
from actors.stores.sqlite.transaction import SQLITE_ERRORS, in_words


def backup(path: Path, to: Path) -> None:
    """Copy the database `path`, open or not, into the one new file `to`.

    Raises UnusableStoreError if there is no database of ours, or `to` is there already or can't be
    written; DamagedStoreError if the database is damaged; StoreFailedError if the disk fails.
    """
    path, to = path.resolve(), to.resolve()
    if not path.exists():
        raise UnusableStoreError(path, "there is no database to back up")
    if to.exists():
        raise UnusableStoreError(to, "there is a file already; name another one")
    part = to.with_name(f"{to.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _copy(path, part)
        _give_name(part, to)
    except OSError as error:
        raise UnusableStoreError(to, f"can't be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def restore(copy: Path, path: Path) -> None:
    """Make the database `path` of a backup. What stood there must have been set aside.

    Raises as `backup` does, and UnusableStoreError if somebody has `path` open.
    """
    path = path.resolve()
    lock = Lock(path)
    try:
        wal = path.with_name(f"{path.name}-wal")
        if path.exists() or wal.exists():
            raise UnusableStoreError(path, "there is a database already; set it aside first")
        backup(copy, path)
    finally:
        lock.release()


def _copy(path: Path, part: Path) -> None:
    """Copy what is committed at this moment, and look whether all of it is there."""
    place = path
    try:
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)) as source,
            closing(sqlite3.connect(part, isolation_level=None)) as target,
        ):
            source.execute("PRAGMA query_only = ON")
            check(source, path)
            source.backup(target)  # in one step: a writer in between would have it begin anew
            place = part
            target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            check(target, part)
    except SQLITE_ERRORS as error:
        raise in_words(place, error) from error


def _give_name(part: Path, to: Path) -> None:
    """Have the copy on the disk, then under its name, which is nobody's. Raises OSError."""
    _flush(part)
    os.link(part, to)  # unlike a renaming, it never replaces a file
    part.unlink()
    _flush(to.parent)


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
