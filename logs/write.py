"""Writing logs: records are kept as references to frozen objects and encoded by the thousand."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, BinaryIO

import msgspec

from logs.record import (
    DropRecord,
    EndRecord,
    EventRecord,
    FaultRecord,
    HeaderRecord,
    LateRecord,
    MessageRecord,
    Record,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from transports.envelope import Envelope

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


class SectionWriter:
    """A recorder that writes one section a replication into an open binary file, or only digests.

    `begin`, then the records, then `close`. The digest is of the records' lines, without header and
    closing record, so it does not depend on the environment. A file that can't be written is told
    by `close` and never within a turn, where it would pass for the actor's mistake.
    """

    def __init__(self, out: BinaryIO | None) -> None:
        self._out = out
        self._records: list[Record] = []
        self._count = 0
        self._state = blake2b(digest_size=16)
        self._failure: OSError | None = None

    def begin(self, header: HeaderRecord | None) -> None:
        """Begin a section."""
        self._records.clear()
        self._count = 0
        self._state = blake2b(digest_size=16)
        if header is not None:
            self._write(_line(header) + b"\n")

    def close(self, outcome: str, t: int) -> str:
        """End the section with its closing record; return the digest of its records.

        OSError if the section could not be written: what the file has of it is truncated.
        """
        self._flush()
        digest = self._state.hexdigest()
        end = EndRecord(count=self._count, digest=digest, outcome=outcome, t=t)
        self._write(_line(end) + b"\n")
        if self._failure is not None:
            raise self._failure
        return digest

    def _flush(self) -> None:
        records = self._records
        try:
            data = _lines(records)
        except TypeError:
            self._records = []
            raise _unwritable(records) from None
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

    def _turn(self, record: Record) -> int:
        # A turn begins with its input, and only there is nothing of an earlier turn left to undo.
        if len(self._records) >= BATCH_RECORDS:
            self._flush()
        self._records.append(record)
        return record.n

    def start(self, t: int, actor: str, boot: int) -> int:
        """Record that an actor begins a boot."""
        self._count = n = self._count + 1
        return self._turn(StartRecord(n, t, actor, 0, boot))

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        """Record a delivery."""
        self._count = n = self._count + 1
        records = self._records
        if len(records) >= BATCH_RECORDS:
            self._flush()
        records.append(MessageRecord(n, t, envelope.target, envelope.cause, envelope))
        return n

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        """Record that a timer fires."""
        self._count = n = self._count + 1
        records = self._records
        if len(records) >= BATCH_RECORDS:
            self._flush()
        records.append(TimerRecord(n, t, actor, cause, timer))
        return n

    def unanswered(self, t: int, actor: str, cause: int, number: int) -> int:
        """Record that a question's time is up."""
        self._count = n = self._count + 1
        return self._turn(UnansweredRecord(n, t, actor, cause, number))

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        """Record an answer that nobody waits for."""
        self._count = n = self._count + 1
        self._records.append(LateRecord(n, t, envelope.target, envelope.cause, envelope))

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        """Record a message that is lost on the way."""
        self._count = n = self._count + 1
        self._records.append(DropRecord(n, t, envelope.source, envelope.cause, fault, envelope))

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor."""
        self._count = n = self._count + 1
        self._records.append(FaultRecord(n, t, actor, 0, fault, act))

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        """Record that a turn did not commit, and take its events back."""
        records = self._records
        while records and records[-1].n > turn:
            records.pop()
        self._count = n = turn + 1
        records.append(UndoneRecord(n, t, actor, turn, why))

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        """Record what an actor says; TypeError if a field is nothing that JSON has."""
        for value in fields.values():
            if not isinstance(value, FROZEN):
                fields = msgspec.to_builtins(fields, order="deterministic", enc_hook=_plain)
                break
        self._count = n = self._count + 1
        self._records.append(EventRecord(n, t, actor, cause, event, fields))


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
