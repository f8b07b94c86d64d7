"""What a log has much of: counts by kind, actor, message and fault, and how long messages took.

A message's latency is the time from its sending to its delivery: from its `send` record, or else
from the turn that caused it. One without a cause in the log has none. A turn lasts no time in the
simulator; over sockets it does.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

import msgspec

from logs.read import Section
from logs.record import (
    DropRecord,
    Ended,
    EventRecord,
    FaultRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    type_of,
)
from logs.words import kind_of

TURNS = (StartRecord, MessageRecord, TimerRecord, UnansweredRecord)  # each is a turn's input


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long messages of a type took, in microseconds; `count` are those of which it is known."""

    count: int
    median_us: int
    p95_us: int
    max_us: int


class MessageStats(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message type."""

    delivered: int
    late: int
    lost: int
    latency: Latency | None


class RunStats(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs were queued, started and ended, and the most that were so at a time.

    A run waits from its `run.queued` to its start or end, and is open until it has ended.
    """

    queued: int
    started: int
    ended: int
    most_waiting: int
    most_open: int


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What sections have, added up; counts are in the order of their first record.

    `span_us` is scenario time from the first record to the last, of all sections together.
    """

    sections: int
    truncated: int
    records: int
    size_bytes: int
    span_us: int
    turns: int
    turns_per_s: float
    kinds: dict[str, int]
    actors: dict[str, int]
    messages: dict[str, MessageStats]
    events: dict[str, int]
    dropped_by: dict[str, int]
    faults: dict[str, int]
    runs: RunStats


class _Runs:
    """Counts the runs of one section after another."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.most_waiting = self.most_open = 0
        self.begin()

    def begin(self) -> None:
        self._waiting: dict[Any, None] = {}
        self._open: dict[Any, None] = {}

    def event(self, record: EventRecord) -> None:
        run = record.fields.get("run")
        if not isinstance(run, str):
            return
        self.counts[record.event] += 1
        if record.event == "run.queued":
            self._waiting[run] = self._open[run] = None
        elif record.event == "run.started":
            self._waiting.pop(run, None)
        elif record.event == "run.terminal":
            self._waiting.pop(run, None)
            self._open.pop(run, None)
        self.most_waiting = max(self.most_waiting, len(self._waiting))
        self.most_open = max(self.most_open, len(self._open))

    def stats(self) -> RunStats:
        return RunStats(
            queued=self.counts["run.queued"],
            started=self.counts["run.started"],
            ended=self.counts["run.terminal"],
            most_waiting=self.most_waiting,
            most_open=self.most_open,
        )


class Tally:
    """Adds sections up."""

    def __init__(self) -> None:
        self._sections = self._truncated = self._records = self._size_bytes = self._span_us = 0
        self._turns = 0
        self._kinds: Counter[str] = Counter()
        self._actors: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._dropped_by: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._messages: dict[str, Counter[str]] = {}
        self._latencies: dict[str, array[int]] = {}
        self._runs = _Runs()

    def add(self, section: Section, size_bytes: int = 0) -> None:
        """Add a section of so many bytes."""
        records = section.records
        self._sections += 1
        self._truncated += section.end is None
        self._records += len(records)
        self._size_bytes += size_bytes
        times = [record.t for record in records]  # over sockets not quite in their order
        self._span_us += max(times, default=0) - min(times, default=0)
        self._runs.begin()
        begun: dict[int, int] = {}  # when each turn was, by its number
        sent: dict[tuple[str, int], int] = {}  # when each message left, where that was recorded
        for record in records:
            self._kinds[kind_of(record)] += 1
            if isinstance(record, TURNS):
                self._turns += 1
                self._actors[record.actor] += 1
                begun[record.n] = record.t
            if isinstance(record, SendRecord):
                sent[record.envelope.source, record.envelope.id] = record.t
            else:
                self._count(record)
            if isinstance(record, MessageRecord):
                envelope = record.envelope
                since = sent.get((envelope.source, envelope.id), begun.get(record.cause))
                if since is not None:
                    name = type_of(envelope.body)
                    self._latencies.setdefault(name, array("q")).append(record.t - since)

    def _count(self, record: Record) -> None:
        if isinstance(record, Ended):
            fates = self._messages.setdefault(type_of(record.envelope.body), Counter())
            fates[kind_of(record)] += 1
            if isinstance(record, DropRecord):
                self._dropped_by[record.fault] += 1
        elif isinstance(record, EventRecord):
            self._events[record.event] += 1
            self._runs.event(record)
        elif isinstance(record, FaultRecord):
            self._faults[f"{record.fault}: {record.act} {record.actor}"] += 1

    def stats(self) -> Stats:
        """Return what was added up."""
        return Stats(
            sections=self._sections,
            truncated=self._truncated,
            records=self._records,
            size_bytes=self._size_bytes,
            span_us=self._span_us,
            turns=self._turns,
            turns_per_s=self._turns * 1e6 / self._span_us if self._span_us else 0.0,
            kinds=dict(self._kinds),
            actors=dict(self._actors),
            messages={
                name: MessageStats(
                    delivered=fates["message"],
                    late=fates["late"],
                    lost=fates["drop"],
                    latency=_latency(self._latencies.get(name)),
                )
                for name, fates in self._messages.items()
            },
            events=dict(self._events),
            dropped_by=dict(self._dropped_by),
            faults=dict(self._faults),
            runs=self._runs.stats(),
        )


def _latency(values: array[int] | None) -> Latency | None:
    """Return the order statistics of latencies: the smallest that so many don't exceed."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    return Latency(
        count=count,
        median_us=ordered[(count - 1) // 2],
        p95_us=ordered[(count * 95 + 99) // 100 - 1],
        max_us=ordered[-1],
    )
