"""Idempotency keys, kept until the ticket is there: the same call again queues nothing twice.

A key is on disk before it is sent. Each call that has no ticket yet has a file, named by a hash of
what is called and of the server, locked while a process makes the call. So whoever repeats a call
that was cut off finds its key; and the same call made twice at one time has two keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

KEY_BYTES = 24
KEPT_S = 7 * 86_400.0  # by default a run that has not started by then has expired
SAME_LIMIT = 1000  # calls that are the same, at one time


class Kept(msgspec.Struct, kw_only=True):
    """A key that was kept; `again` if a call before this one had made it."""

    key: str
    again: bool
    done: bool = False  # set by the caller once there is an answer


@contextmanager
def kept_key(folder: Path, *call: str) -> Iterator[Kept]:
    """Give the key of a call: the one of a call that was cut off, else a new one. OSError.

    The caller sets `done` when the call was answered; then the next one gets another key.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_old(folder)
    name = hashlib.sha256(msgspec.json.encode(call)).hexdigest()[:32]
    # What was cut off goes before what is new.
    new = (folder / f"{name}-{number:03}.key" for number in range(SAME_LIMIT))
    for path in [*sorted(folder.glob(f"{name}-*.key")), *new]:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(file, path):
                continue
            told = os.pread(file, 200, 0).decode("ascii", errors="replace")
            kept = Kept(key=told, again=len(told) >= KEY_BYTES)
            if not kept.again:
                kept.key = secrets.token_urlsafe(KEY_BYTES)
                os.pwrite(file, kept.key.encode(), 0)
                os.fsync(file)
            try:
                yield kept
            finally:
                if kept.done:
                    path.unlink(missing_ok=True)
            return
        finally:
            os.close(file)
    raise OSError(f"{SAME_LIMIT} calls like this one are made already")


def _locked(file: int, path: Path) -> bool:
    """Lock a file unless another process has it, or has removed it since it was opened."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(file).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _forget_old(folder: Path) -> None:
    """Remove the keys of calls that nobody has repeated for long."""
    since_s = time.time() - KEPT_S
    for path in folder.glob("*.key"):
        try:
            if path.stat().st_mtime < since_s:
                path.unlink()
        except OSError:  # another process was faster
            continue
