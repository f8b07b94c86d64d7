"""A store in one SQLite file, for a deployed actor: what is committed survives a kill.

store        the file: opened, checked, migrated, set aside; turns and commits
transaction  what is written since the last commit, and what a full disk makes of it
table        rows with the fields that they are found by
copying      backups of an open database, and their way back
lock         one process at a time;  reserve  room on the disk for the last commit
"""

from actors.stores.failures import (
    DamagedStoreError,
    StoreError,
    StoreFailedError,
    UnreadableRowError,
    UnusableStoreError,
)
from actors.stores.sqlite.copying import backup, restore
from actors.stores.sqlite.store import SqliteStore, set_aside

__all__ = [
    "DamagedStoreError",
    "SqliteStore",
    "StoreError",
    "StoreFailedError",
    "UnreadableRowError",
    "UnusableStoreError",
    "backup",
    "restore",
    "set_aside",
]
