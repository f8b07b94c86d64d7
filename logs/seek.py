"""Finding sections in a file without decoding them, and lines as they are written.

A file of a whole sweep has thousands of sections. Looking it over costs a glance at each line's
beginning; the section that is wanted is then read from its place. A file that still grows is
followed line by line, as `tail -F` does: also when another takes its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from logs.read import HEADER, RawSection, sections_of

FOLLOW_S = 0.2  # how often a file that is followed is looked at: quick for people, cheap for it


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a section stands in its file, and which replication's it is.

    `path` is what the file is called, and `file` where it can be read. `line` counts from 1. Of
    what the header says only this is kept, so that a file of a million sections can be looked over.
    """

    path: str
    file: str
    line: int
    offset_bytes: int
    scenario: str
    cell: str
    replication: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from the others of a folder."""
        return self.scenario, self.cell, self.replication

    @property
    def words(self) -> str:
        """The section in words, as `Section.where` has it."""
        cell = f" [{self.cell}]" if self.cell else ""
        return f"{self.scenario}{cell}, replication {self.replication}"


class _Head(msgspec.Struct):
    scenario: str = ""
    cell: str = ""
    replication: int = 0


_HEAD = msgspec.json.Decoder(_Head)


def entries_of(path: Path, called: str = "") -> list[Entry]:
    """Look a file over: where each of its sections begins. LogError, or OSError with its name.

    An empty file has none. In errors it is `called` so, if it is a copy of another.
    """
    shown = called or str(path)
    found: list[Entry] = []
    offset_bytes = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.startswith(HEADER):
                head = _head(line)
                found.append(
                    Entry(
                        path=shown,
                        file=str(path),
                        line=number,
                        offset_bytes=offset_bytes,
                        scenario=head.scenario,
                        cell=head.cell,
                        replication=head.replication,
                    )
                )
            elif number == 1:
                file.seek(0)
                next(sections_of(file, shown))  # which says why this is no log
            offset_bytes += len(line)
    return found


def _head(line: bytes) -> _Head:
    try:
        return _HEAD.decode(line)
    except msgspec.DecodeError:  # it was cut: whoever reads the section is told
        return _Head()


def raw_section(entry: Entry) -> RawSection:
    """Read the section of an entry, whose file must still be there; nothing is decoded."""
    with Path(entry.file).open("rb") as file:
        file.seek(entry.offset_bytes)
        lines = [file.readline()]
        for line in file:
            if line.startswith(HEADER):
                break
            lines.append(line)
    return RawSection(entry.path, entry.line, lines)


def follow(path: Path, wait: Callable[[float], None]) -> Iterator[bytes]:
    """Yield a file's whole lines, and for ever those that are added; OSError with its name.

    It begins anew where the file was replaced by another, or is shorter than it was. `wait` is
    called with seconds where there is nothing to read.
    """
    while True:
        with path.open("rb") as file:
            number, part = path.stat().st_ino, b""
            while True:
                part += file.readline()
                if part.endswith(b"\n"):
                    yield part
                    part = b""
                    continue
                wait(FOLLOW_S)
                if not path.exists():
                    continue  # between two files of this name
                now = path.stat()
                if now.st_ino != number or now.st_size < file.tell():
                    break
