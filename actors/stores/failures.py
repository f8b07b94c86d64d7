"""What may go wrong with a store, in words: place, cause and cure.

A turn may fail at its commit or, since a disk is read and written before that, at any call of a
table. Whichever it is, the host hears a `StoreFailedError` and the turn never was. What keeps a
store from being opened is the user's to mend: a command that meets it ends with exit code 2.
"""

from __future__ import annotations

from pathlib import Path


class StoreError(Exception):
    """Something is wrong with the store in `path`, a file or a database's address."""

    def __init__(self, path: Path | str, sentence: str) -> None:
        self.path = path
        self.sentence = sentence
        super().__init__(f"{path}: {sentence}")


class StoreFailedError(StoreError):
    """A turn was not committed and never was; the store goes on. The message has the cause."""


class StoreConflictError(StoreError):
    """Another process changed what the turn has read or written: undone, it may be tried again."""


class UnusableStoreError(StoreError):
    """The store can't be opened: in use, too new, somebody else's, out of reach."""


class DamagedStoreError(StoreError):
    """The store is damaged. Nothing of it was changed; `set_aside` makes room for a new file."""

    def __init__(self, path: Path | str, sentence: str) -> None:
        super().__init__(path, f"{sentence}; restore a backup, or set it aside and begin anew")


class UnreadableRowError(StoreError):
    """A row is whole, but no row of its table's type any more; the message has table and key."""
