"""The table of docs/logs.md, made from the kinds of records: `python -m tests.log_page`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import msgspec

from logs.record import KINDS, Record
from transports.envelope import Envelope

COMMON = Record.__struct_fields__  # what every numbered record has


def page() -> str:
    """Return the table, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f"| kind | fields besides `{' '.join(COMMON)}` | meaning |"
    yield "|---|---|---|"
    for name, kind in KINDS.items():
        yield f"| `{name}` | {_fields(kind)} | {meaning(kind)} |"


def _fields(kind: type[msgspec.Struct]) -> str:
    shared = COMMON if issubclass(kind, Record) else ()
    return f"`{' '.join(name for name in kind.__struct_fields__ if name not in shared)}`"


def meaning(kind: type[msgspec.Struct]) -> str:
    """Return what a kind's class says of it, in one line."""
    return " ".join((inspect.getdoc(kind) or "").split())


def envelope() -> str:
    """Return the fields of an envelope, as the page names them."""
    return f"`{' '.join(Envelope.__struct_fields__)}`"


if __name__ == "__main__":
    sys.stdout.write(page())
