"""Keeping a replication's records: as frozen structs in a list, numbered from 1."""

from __future__ import annotations

import sys
from typing import Any

from logs.record import (
    DropRecord,
    EventRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from transports.envelope import Envelope


class MemoryRecorder:
    """A recorder that keeps a replication's records, numbered as a log's section numbers them.

    One that has no room for all of them sets `batch`, and makes room in `_flush`: that is called
    before a turn's input is kept.
    """

    batch = sys.maxsize

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._count = 0

    def clear(self) -> None:
        """Forget everything, for the next replication."""
        self.records = []  # a new list: a history may still look at the other
        self._count = 0

    def _flush(self) -> None:
        """Make room in the list of records."""

    def _frozen(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return an event's fields as they are to be kept."""
        return fields

    def _turn(self, record: Record) -> int:
        if len(self.records) >= self.batch:
            self._flush()
        self.records.append(record)
        return record.n

    def start(self, t: int, actor: str, boot: int) -> int:
        """Record that an actor begins a boot."""
        self._count = n = self._count + 1
        return self._turn(StartRecord(n, t, actor, 0, boot))

    # Most records are of these two kinds, so they are kept without one more call.

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        """Record a delivery."""
        self._count = n = self._count + 1
        if len(self.records) >= self.batch:
            self._flush()
        self.records.append(MessageRecord(n, t, envelope.target, envelope.cause, envelope))
        return n

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        """Record that a timer fires."""
        self._count = n = self._count + 1
        if len(self.records) >= self.batch:
            self._flush()
        self.records.append(TimerRecord(n, t, actor, cause, timer))
        return n

    def unanswered(self, t: int, actor: str, cause: int, number: int) -> int:
        """Record that a question's time is up."""
        self._count = n = self._count + 1
        return self._turn(UnansweredRecord(n, t, actor, cause, number))

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        """Record an answer that nobody waits for."""
        self._count = n = self._count + 1
        self.records.append(LateRecord(n, t, envelope.target, envelope.cause, envelope))

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        """Record a message that is lost on the way."""
        self._count = n = self._count + 1
        self.records.append(DropRecord(n, t, envelope.source, envelope.cause, fault, envelope))

    def send(self, t: int, envelope: Envelope[Any]) -> None:
        """Record that a turn that has committed sends a message."""
        self._count = n = self._count + 1
        self.records.append(SendRecord(n, t, envelope.source, envelope.cause, envelope))

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor."""
        self._count = n = self._count + 1
        self.records.append(FaultRecord(n, t, actor, 0, fault, act))

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        """Record that a turn did not commit; a host keeps a turn's events until it has."""
        self._count = n = self._count + 1
        self.records.append(UndoneRecord(n, t, actor, turn, why))

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        """Record what an actor says."""
        kept = self._frozen(fields)
        self._count = n = self._count + 1
        self.records.append(EventRecord(n, t, actor, cause, event, kept))
