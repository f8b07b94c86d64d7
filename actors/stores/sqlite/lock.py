"""Who may have a database open: one store at a time, by a lock file beside it.

A lock of the operating system on a file of its own, so it ends with its process however that ends,
and the sqlite3 command can still look into the database, which SQLite's exclusive mode forbids.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from actors.stores.failures import UnusableStoreError


class Lock:
    """Holds `<database>.lock`, which has the process id of who holds it and is never removed.

    Raises UnusableStoreError if another store has it, in this process or in another one, or if
    the file can't be written.
    """

    def __init__(self, path: Path) -> None:
        place = path.with_name(f"{path.name}.lock")
        try:
            self._file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UnusableStoreError(path, f"can't be opened: {error.strerror}: {place}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._file, 0)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            os.close(self._file)
            who = f"process {holder}" if holder else "another process"
            if holder == str(os.getpid()):
                who = "this process"
            sentence = f"{who} has it open; stop that one first, or name another file"
            raise UnusableStoreError(path, sentence) from None
        except OSError as error:
            os.close(self._file)
            raise UnusableStoreError(path, f"can't be locked: {error.strerror}") from error
        with suppress(OSError):  # a full disk: the lock holds, it just doesn't say whose it is
            os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others open the database; what is released may be released again."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
