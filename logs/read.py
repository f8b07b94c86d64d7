"""Reading logs: a file's sections one after another, each record as the struct that was written.

Readers ignore what they don't know: a kind of a later version counts as nothing, a field too. What
ends without its closing record is truncated, and what it has is good; a line that was being written
when its writer died is left out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from logs.record import FORMAT, KINDS, EndRecord, HeaderRecord, Record

HEADER = b'{"kind":"header"'  # how the line begins that begins a section
_END = b'{"kind":"end"'
_JOURNAL = "journal.jsonl"  # of a results folder: it has every value, and is no log
_PARTS = "parts"  # of a results folder: its logs as long as the run goes on
_PACKED = {
    b"\x1f\x8b": "zcat",
    b"\x28\xb5\x2f\xfd": "zstdcat",
    b"\xfd7zXZ": "xzcat",
    b"BZh": "bzcat",
}


MEND = "keep the lines before it: a log that was cut is read as far as it goes"


class LogError(Exception):
    """A log can't be read: the place, what is wrong there, and the cure if there is one."""

    def __init__(self, place: str, sentence: str, cure: str = "") -> None:
        self.place = place
        self.cure = cure
        super().__init__(f"{place}: {sentence}")


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One replication's log: its records, numbered from 1, between its header and its end.

    `path` and `line` say where it begins, the file's lines counted from 1. Without an `end` it is
    truncated; `torn` tells whether the last line was cut and left out. Bodies of messages are as
    JSON has them.
    """

    path: str
    line: int
    header: HeaderRecord
    records: list[Record]
    end: EndRecord | None = None
    torn: bool = False

    @property
    def where(self) -> str:
        """The section in words: its scenario, cell and replication."""
        cell = f" [{self.header.cell}]" if self.header.cell else ""
        return f"{self.header.scenario}{cell}, replication {self.header.replication}"


class _Kind(msgspec.Struct):
    kind: str


_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, KINDS.values()))
_KIND = msgspec.json.Decoder(_Kind)


def log_files(target: Path) -> list[Path]:
    """Return the log files that a path means: itself, or those of a results folder, in order.

    LogError if there is nothing.
    """
    if not target.is_dir():
        if not target.exists():
            raise LogError(str(target), "there is no such file", "give a log, or a results folder")
        return [target]
    found = sorted(target.glob("logs/*.jsonl")) or [
        path for path in sorted(target.glob("*.jsonl")) if path.name != _JOURNAL
    ]
    if not found and (target / _PARTS).is_dir():
        cure = f"go on with it: {shlex.join(['pullcord', 'run', '--resume', str(target)])}"
        raise LogError(str(target), "its run was interrupted before its logs were whole", cure)
    if not found:
        cure = "run with --logs all, or --logs failed"
        raise LogError(str(target), "this folder has no logs", cure)
    return found


class RawSection(NamedTuple):
    """A section as it lies in its file, which is called `path` in errors: not decoded yet."""

    path: str
    line: int
    lines: list[bytes]

    def section(self) -> Section:
        """Decode it; LogError with the place of what can't be."""
        return _section(self.path, self.line, self.lines)

    def header(self) -> HeaderRecord:
        """Decode its first line alone; LogError if that can't be."""
        return _section(self.path, self.line, self.lines[:1]).header


def read_sections(path: Path) -> Iterator[Section]:
    """Read a file's sections, one at a time in memory; LogError, or OSError with the file's name.

    An empty file has none.
    """
    with path.open("rb") as file:
        yield from sections_of(file, str(path))


def sections_of(file: BinaryIO, path: str) -> Iterator[Section]:
    """Read sections from an open binary file, called `path` in errors."""
    return (raw.section() for raw in _parts(file, path))


def raw_sections(path: Path) -> Iterator[RawSection]:
    """Read a file's sections without decoding them."""
    with path.open("rb") as file:
        yield from _parts(file, str(path))


def _parts(file: BinaryIO, path: str) -> Iterator[RawSection]:
    """Cut a file at its headers."""
    part: list[bytes] = []
    first = number = 0
    for number, line in enumerate(file, 1):
        if line.startswith(HEADER) and part:
            yield RawSection(path, first, part)
            part = []
        if not part:
            if not line.startswith(HEADER):
                raise _no_log(f"{path}, line {number}", path, line)
            first = number
        part.append(line)
    if part:
        yield RawSection(path, first, part)


def _no_log(place: str, path: str, line: bytes) -> LogError:
    for magic, program in _PACKED.items():
        if line.startswith(magic):
            cure = f"give it as a pipe: <({program} {shlex.quote(path)})"
            return LogError(place, "this is no log: it is compressed", cure)
    cure = "logs are written by pullcord run --logs all"
    return LogError(place, "this is no log: a log begins with a header", cure)


def _section(path: str, line: int, lines: list[bytes]) -> Section:
    torn = not lines[-1].endswith(b"\n")
    if torn:
        lines = lines[:-1]
    if not lines:
        raise LogError(f"{path}, line {line}", "its header was cut: nothing of it can be read")
    try:
        found = _DECODER.decode_lines(b"".join(lines))
    except msgspec.DecodeError:
        found = [
            record
            for number, one in enumerate(lines, line)
            if (record := record_of(one, f"{path}, line {number}")) is not None
        ]
    header = found[0]
    if header.format > FORMAT:
        raise LogError(
            f"{path}, line {line}",
            f"it was written by pullcord {header.pullcord} in format {header.format}, "
            f"and this one reads up to {FORMAT}",
            "update pullcord",
        )
    end = found.pop() if type(found[-1]) is EndRecord else None
    if any(type(record) is EndRecord for record in found):
        at = next(at for at, one in enumerate(lines, line) if one.startswith(_END))
        raise LogError(
            f"{path}, line {at}",
            "records come behind this closing record, so parts of several logs were put together",
            "give each log by itself; whole ones may follow one another",
        )
    del found[0]
    return Section(path=path, line=line, header=header, records=found, end=end, torn=torn)


def record_of(line: bytes, place: str) -> Any:
    """Return a line's record, header or end; None if its kind is not known, LogError if bad."""
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        try:
            kind = _KIND.decode(line).kind
        except msgspec.DecodeError:
            raise LogError(place, f"this line is no record: {error}", MEND) from None
        if kind not in KINDS:
            return None
        raise LogError(place, f"this {kind} record can't be read: {error}", MEND) from None
