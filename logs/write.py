"""Writing logs: records are kept as references to frozen objects and encoded by the thousand."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, BinaryIO

import msgspec

from logs.keep import MemoryRecorder
from logs.record import EndRecord, HeaderRecord, Record

BATCH_RECORDS = 4096  # encoded at once: some 800 KB, and no call a record
FROZEN = (str, int, float, bool, type(None))  # what an actor can't change once it has said it


class UnwritableError(Exception):
    """A message or an event holds something that JSON has not."""


def _plain(value: Any) -> Any:
    """Return what a number or text with a class of its own (a Duration) is to JSON."""
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_lines, _line = _encoder.encode_lines, _encoder.encode


class SectionWriter(MemoryRecorder):
    """A recorder that writes one section a replication into an open binary file, or only digests.

    `begin`, then the records, then `close`. The digest is of the records' lines, without header and
    closing record, so it does not depend on the environment. A file that can't be written is told
    by `close` and never within a turn, where it would pass for the actor's mistake.
    """

    batch = BATCH_RECORDS

    def __init__(self, out: BinaryIO | None) -> None:
        super().__init__()
        self._out = out
        self._state = blake2b(digest_size=16)
        self._failure: OSError | None = None

    def begin(self, header: HeaderRecord | None) -> None:
        """Begin a section."""
        self.clear()
        self._state = blake2b(digest_size=16)
        if header is not None:
            self._write(line_of(header))

    def close(self, outcome: str, t: int, healed_us: int | None = None) -> str:
        """End the section with its closing record; return the digest of its records.

        `healed_us` is when the last fault had healed.

        OSError if the section could not be written: what the file has of it is truncated.
        """
        self._flush()
        digest = self._state.hexdigest()
        end = EndRecord(count=self._count, digest=digest, outcome=outcome, t=t, healed=healed_us)
        self._write(line_of(end))
        if self._failure is not None:
            raise self._failure
        return digest

    def _flush(self) -> None:
        records = self.records
        try:
            data = lines_of(records)
        except UnwritableError:
            self.records = []
            raise
        records.clear()
        self._state.update(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._out is None or self._failure is not None:
            return
        try:
            self._out.write(data)
        except OSError as error:
            self._failure = error

    def _frozen(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields as nobody can change them; TypeError if one is not JSON's."""
        for value in fields.values():
            if not isinstance(value, FROZEN):
                plain: dict[str, Any] = msgspec.to_builtins(
                    fields, order="deterministic", enc_hook=_plain
                )
                return plain
        return fields


def lines_of(records: list[Record]) -> bytes:
    """Return the records' lines; UnwritableError names the one that has no line."""
    try:
        return _lines(records)
    except TypeError:
        raise _unwritable(records) from None


def line_of(record: HeaderRecord | EndRecord) -> bytes:
    """Return the line of a section's first or last record."""
    return _line(record) + b"\n"


def _unwritable(records: list[Record]) -> UnwritableError:
    """Return the error that names the record which can't be encoded."""
    for record in records:
        try:
            _line(record)
        except TypeError as error:
            envelope = getattr(record, "envelope", None)
            what = f"{record.actor}'s record {record.n}"
            if envelope is not None:
                what = f"the {type(envelope.body).__name__} that {envelope.source} sent"
            return UnwritableError(f"{what} at {record.t / 1e6:g} s can't be logged: {error}")
    return UnwritableError("a record can't be logged")
