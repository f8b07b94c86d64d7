"""Room on the disk that is kept for the moment when there is none left.

A file beside the database holds the room. It is given back at the first write that finds the disk
full, so that what is under way can still be committed, and taken again once there is space.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

# The largest row is a run's result of at most 600,000 bytes: one turn, and the pages around it.
RESERVE_BYTES = 1 << 20

_UNABLE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class Reserve:
    """The file `<database>.reserve`. `held` says whether it is all there."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.reserve")
        self.held = False

    def take(self) -> bool:
        """Make the file; return whether it is all there. A part of it is given back at once."""
        if not self.held:
            try:
                _allocate(self._path)
                self.held = True
            except OSError:
                self.release()
        return self.held

    def release(self) -> bool:
        """Give the room back; return whether there was any."""
        self.held = False
        with suppress(OSError):
            self._path.unlink()
            return True
        return False


def _allocate(path: Path) -> None:
    """Have the disk set the bytes aside, or write them where it can't. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _set_aside(file):
            if os.pwrite(file, bytes(RESERVE_BYTES), 0) < RESERVE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)  # until then a disk may not know that it has no room
    finally:
        os.close(file)


def _set_aside(file: int) -> bool:
    """Have the disk set the bytes aside; return False where system or disk can't."""
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(file, 0, RESERVE_BYTES)
    except OSError as error:
        if error.errno in _UNABLE:
            return False
        raise
    return True
