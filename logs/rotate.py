"""The log of a process that stays: files in a folder, bounded in size and number.

Each file is a log of its own: a header, records numbered from 1, a closing record. The first record
is the event `log.began`, which says what the wall clock showed when the process began; a cause that
stands in a file before is 0. Where messages are written whole, the files of one process can be read
as one log: numbers go on from file to file, and every cause stays as it is.

Records are in the file when `flush` returns, so a kill loses none
whose effects were seen; a disk that is full loses records, never the process.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from logs.keep import MemoryRecorder
from logs.record import Carried, EndRecord, EventRecord, HeaderRecord, Record
from logs.slim import slim
from logs.write import UnwritableError, line_of, lines_of

RETRY_S = 10.0  # between two tries to write on a disk that was full
NUMBER_DIGITS = 8  # so that names sort as their numbers do

_replace = msgspec.structs.replace


class RotatingRecorder(MemoryRecorder):
    """Writes `folder/NAME-00000001.jsonl` and so on; of all these the newest `files` are kept.

    A file ends once it has `size_bytes`. Without `whole` messages are written without payloads.
    `began` are the fields of `log.began`. `say` is told when records can't be written, and when
    they can again. OSError if the first file can't be made.
    """

    batch = sys.maxsize  # the host flushes

    def __init__(
        self,
        folder: Path,
        header: HeaderRecord,
        began: dict[str, Any],
        say: Callable[[str], None],
        *,
        files: int,
        size_bytes: int,
        whole: bool,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._header = header
        self._began = began
        self._say = say
        self._files = files
        self._size_bytes = size_bytes
        self._whole = whole
        self._base = 0  # what a record's number is less in its file
        self._lost = 0  # records that could not be written
        self._retry_s = 0.0
        self._last_us = 0
        self._out: BinaryIO | None = None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._count = 1
        self._begin(1, 0)

    def flush(self) -> None:
        """Write what was recorded."""
        records = self.records
        if not records:
            return
        self.records = []
        try:
            self._write(records)
        except OSError as error:
            self._give_up(len(records), error)

    def close(self, outcome: str) -> None:
        """End the last file."""
        self.flush()
        try:
            self._end(outcome)
        except OSError as error:
            self._give_up(0, error)

    def _write(self, records: list[Record]) -> None:
        if self._out is None:
            if time.monotonic() < self._retry_s:
                self._lost += len(records)
                return
            self._begin(records[0].n - 1, records[0].t)  # the number of one that is lost
            self._say(f"the log goes on in {self._folder}; {self._lost} records are lost")
            self._lost = 0
        out = self._out
        assert out is not None, "it was begun"
        self._put(out, self._lines([self._local(record) for record in records]), len(records))
        self._last_us = records[-1].t
        if self._written_bytes >= self._size_bytes:
            self._end("rotated")
            self._count += 1
            self._begin(self._count, self._last_us)

    def _lines(self, records: list[Record]) -> bytes:
        """Return the lines of records; one that has a message which JSON has not is left slim."""
        if not self._whole:
            records = [slim(record) for record in records]
        try:
            return lines_of(records)
        except UnwritableError as error:
            self._say(f"{error}: it is logged without its contents")
            return lines_of([slim(record) for record in records])

    def _local(self, record: Record) -> Record:
        """Return a record as its file numbers it."""
        if isinstance(record, Carried):
            envelope = _replace(record.envelope, cause=self._cause(record.envelope.cause))
            record = _replace(record, envelope=envelope)
        return _replace(record, n=record.n - self._base, cause=self._cause(record.cause))

    def _cause(self, number: int) -> int:
        local = number - self._base
        if self._whole:
            return local
        return local if local > 1 else 0  # the first record is the file's own, and brings nothing

    def _put(self, out: BinaryIO, data: bytes, count: int) -> None:
        """Write some records' lines; OSError if not all of it could be."""
        if out.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._state.update(data)
        self._written_bytes += len(data)
        self._written += count

    def _begin(self, first: int, t: int) -> None:
        """Begin the next file, whose first record has this number among all."""
        stem = self._header.scenario
        name = re.compile(rf"{re.escape(stem)}-(\d{{{NUMBER_DIGITS},}})\.jsonl")
        found = sorted(
            (int(match[1]), path)
            for path in self._folder.iterdir()
            if (match := name.fullmatch(path.name))
        )
        for _, path in found[: max(0, len(found) + 1 - self._files)]:
            path.unlink(missing_ok=True)
        number = found[-1][0] + 1 if found else 1
        path = self._folder / f"{stem}-{number:0{NUMBER_DIGITS}}.jsonl"
        # Unbuffered: what was written stays, whatever becomes of this process.
        out = path.open("xb", buffering=0)
        path.chmod(0o600)
        head = line_of(_replace(self._header, replication=number))
        self._state = blake2b(digest_size=16)
        self._written, self._written_bytes = 0, len(head)
        self._out = out
        self._base = 0 if self._whole else first - 1
        out.write(head)
        fields = self._began | ({"lost": self._lost} if self._lost else {})
        began = EventRecord(first - self._base, t, stem, 0, "log.began", fields)
        self._put(out, lines_of([began]), 1)

    def _end(self, outcome: str) -> None:
        out = self._out
        if out is None:
            return
        self._out = None
        digest = self._state.hexdigest()
        end = EndRecord(count=self._written, digest=digest, outcome=outcome, t=self._last_us)
        with out:
            out.write(line_of(end))

    def _give_up(self, lost: int, error: OSError) -> None:
        """Lose records for a while: a torn line ends a file, and the next try begins another."""
        if self._out is not None:
            self._out.close()
        if not self._lost:
            self._say(f"the log can't be written in {self._folder}: {error.strerror}")
        self._out = None
        self._lost += max(lost, 1)
        self._retry_s = time.monotonic() + RETRY_S
