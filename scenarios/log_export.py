"""`pullcord log export`: logs in the formats of other tools, to a file or to stdout."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from logs.export.lnav import definition
from logs.export.otlp import request
from logs.export.perfetto import trace
from logs.export.table import write_head, write_rows
from logs.seek import Entry
from scenarios.folder import unwritable
from scenarios.log_sections import refuse, sections

Target = Literal["perfetto", "csv", "otlp-json", "lnav-format"]


def export(entries: Sequence[Entry], to: Target, out: Path | None) -> None:
    """Write the sections; ScenarioError for bytes that would go to a terminal, OSError.

    A file gets its name when it is complete; FolderError if it can't be written.
    """
    if to == "perfetto" and out is None and sys.stdout.isatty():
        refuse(
            "--to perfetto", "writes bytes that a terminal can't show", "add --out trace.pftrace"
        )
    chunks = _CHUNKS[to](entries)
    if out is None:
        _write(chunks, out)
        return
    try:
        _write(chunks, out)
    except OSError as error:
        raise unwritable(out, error) from None


def _write(chunks: Iterator[bytes], out: Path | None) -> None:
    with _opened(out) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def _opened(out: Path | None) -> Iterator[BinaryIO]:
    if out is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif out.exists() and not out.is_file():
        with out.open("wb") as file:  # a pipe or a device; a folder is an error
            yield file
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        draft = out.with_name(f".{out.name}.part")
        try:
            with draft.open("wb") as file:
                yield file
            draft.replace(out)
        finally:
            draft.unlink(missing_ok=True)


def _perfetto(entries: Sequence[Entry]) -> Iterator[bytes]:
    for number, section in enumerate(sections(entries)):
        yield from trace(section, number)


def _csv(entries: Sequence[Entry]) -> Iterator[bytes]:
    head = io.StringIO()
    write_head(head)
    yield head.getvalue().encode()
    for section in sections(entries):
        rows = io.StringIO()
        write_rows(section, rows)
        yield rows.getvalue().encode("utf-8", "backslashreplace")


def _otlp(entries: Sequence[Entry]) -> Iterator[bytes]:
    """A line a section, as collectors read files: each is a request of its own."""
    for section in sections(entries):
        yield msgspec.json.encode(request(section)) + b"\n"


def _lnav(_entries: Sequence[Entry]) -> Iterator[bytes]:
    yield msgspec.json.format(msgspec.json.encode(definition()), indent=4) + b"\n"


_CHUNKS = {"perfetto": _perfetto, "csv": _csv, "otlp-json": _otlp, "lnav-format": _lnav}
