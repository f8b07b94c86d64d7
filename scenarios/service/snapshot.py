"""What a process's stores hold when it begins, as events at the beginning of its log.

With these a log that has everything else can be re-executed. Rows stand there as they are kept; so
who may read the log may read the database.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from actors.actor import Key
from actors.recorded import STORE_LEFT_OUT, STORE_ROWS
from logs.record import Recorder


@runtime_checkable
class Dumped(Protocol):
    """A store that tells all that it holds."""

    def dump(self) -> Iterator[tuple[str, list[tuple[Key, str | bytes]]]]:
        """Yield all rows as they are kept, with their table's name, in parts."""


def write_stores(
    stores: Mapping[str, object],
    recorder: Recorder,
    flush: Callable[[], None],
    limit_bytes: int,
) -> Iterator[str]:
    """Record the stores of actors by name; yield what whoever runs the process should know.

    No more than `limit_bytes` of them all is written: beyond that the log can't be re-executed.
    """
    left_bytes = limit_bytes
    for name, store in stores.items():
        if not isinstance(store, Dumped):
            continue
        for table, rows in store.dump():
            size_bytes = sum(len(data) for _, data in rows)
            left_bytes -= size_bytes
            if left_bytes < 0:
                recorder.event(0, name, 0, STORE_LEFT_OUT, {"limit_bytes": limit_bytes})
                flush()
                yield (
                    f"the store of {name} has more than a log may begin with ({limit_bytes:,}"
                    " bytes, half of log_files x log_size): this log can't be replayed"
                )
                return
            fields = {"table": table, "rows": [_row(key, data) for key, data in rows]}
            recorder.event(0, name, 0, STORE_ROWS, fields)
            flush()


def _row(key: Key, data: str | bytes) -> list[Any]:
    """Return a row as a log has it: its key, its JSON, or nothing and its msgpack in base 64."""
    shown = key if isinstance(key, str) else list(key)
    if isinstance(data, str):
        return [shown, msgspec.Raw(data)]
    return [shown, None, b64encode(data).decode()]
