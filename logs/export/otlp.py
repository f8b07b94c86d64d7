"""A log as OTLP/JSON, for any collector of OpenTelemetry: a trace a run, a span a turn of it.

A run that carries a traceparent belongs to that trace, below the span that asked for it; where an
agent of ours made the traceparent, nobody else exports that span, and the run's own takes its id.
Any other run's trace has its id's 32 hex digits as its own id, or a hash of an id that has other
ones. Its root is the run itself, from the first record that concerns it to the last. Below it
stands a span for each turn that concerns it, under the turn that caused it; what actors said is an
event of the turn's span, what was lost one of the span that sent it. Time begins at 2026-01-01, as
it does in the virtual world. Each actor is a resource, with its name as `service.name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, Final

from logs.read import Section
from logs.record import (
    DropRecord,
    EventRecord,
    HeaderRecord,
    LateRecord,
    MessageRecord,
    Record,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
    type_of,
)
from logs.runs import Runs
from logs.story import summaries
from logs.words import kind_of, value_text
from transports.clock import EPOCH_US
from transports.traceparent import parent_of, trace_of

TURN_US: Final = 1  # how long a turn is shown; a log doesn't say how long it took
INTERNAL, SERVER, CONSUMER = 1, 2, 5  # kinds of spans, by OTLP's numbers
OK, ERROR = 1, 2  # codes of a status
_HEX = re.compile(r"[0-9a-f]{32}")

Json = dict[str, Any]


def request(section: Section) -> Json:
    """Return a section as an ExportTraceServiceRequest."""
    spans: dict[str, list[Json]] = {}
    for actor, span in _Spans(section).spans():
        spans.setdefault(actor, []).append(span)
    header = section.header
    common = [
        _attribute("pullcord.scenario", header.scenario),
        _attribute("pullcord.cell", header.cell),
        _attribute("pullcord.replication", header.replication),
        _attribute("pullcord.seed", header.seed),
    ]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", actor), *common]},
                "scopeSpans": [
                    {"scope": {"name": "pullcord", "version": header.pullcord}, "spans": found}
                ],
            }
            for actor, found in spans.items()
        ]
    }


def trace_id(run: str) -> str:
    """Return the id of a run's trace: 32 hex digits, not all of them 0."""
    plain = run.replace("-", "").lower()
    if _HEX.fullmatch(plain) and plain.strip("0"):
        return plain
    return blake2b(run.encode("utf-8", "replace"), digest_size=16).hexdigest()


class _Spans:
    """Makes the spans of one section."""

    def __init__(self, section: Section) -> None:
        self._section = section
        self._runs = Runs(section.records)
        self._roots: dict[str, str] = {}  # the id of each run's own span
        self._begun: set[str] = set()  # spans that traceparents name and that are exported here
        self._concern: dict[str, list[Record]] = {run: [] for run in self._runs}
        self._turns: dict[str, set[int]] = {run: set() for run in self._runs}
        self._more: dict[tuple[str, int], list[Json]] = {}  # the events of a run's span of a turn
        for record in section.records:
            for run in self._runs.of(record):
                self._concern[run].append(record)
                if isinstance(record, MessageRecord | TimerRecord | UnansweredRecord):
                    self._turns[run].add(record.n)
        for run, records in self._concern.items():
            for record in records:
                event = _event(record)
                if event is not None:
                    at = record.cause if record.cause in self._turns[run] else 0
                    self._more.setdefault((run, at), []).append(event)

    def spans(self) -> Iterator[tuple[str, Json]]:
        """Yield each span with the actor whose it is."""
        for summary in summaries(self._section.records):
            run, records = summary.run, self._concern[summary.run]
            if not records:
                continue
            above_run = self._root(run, summary.agent)
            root = self._roots[run]
            times = [record.t for record in records]  # over sockets not quite in their order
            yield (
                records[0].actor,
                self._span(run, 0, "run", SERVER, min(times), max(times))
                | ({"parentSpanId": above_run} if above_run else {})
                | {
                    "attributes": [
                        _attribute("pullcord.run", run),
                        _attribute("pullcord.agent", summary.agent),
                        _attribute("pullcord.status", summary.status),
                    ],
                    "status": _status(summary.status),
                },
            )
            for record in records:
                if record.n not in self._turns[run] or isinstance(record, StartRecord):
                    continue
                above = record.cause if record.cause in self._turns[run] else 0
                kind = CONSUMER if isinstance(record, MessageRecord) else INTERNAL
                span = self._span(run, record.n, _name(record), kind, record.t, record.t)
                span["parentSpanId"] = self._id(run, above) if above else root
                span["attributes"] = [*_attributes(record), _attribute("pullcord.run", run)]
                yield record.actor, span

    def _root(self, run: str, agent: str) -> str:
        """Settle the id of a run's own span; return that of the span above it, "" for none."""
        parent = parent_of(self._runs.traceparent(run))
        if parent and parent not in self._begun and _makes_traces(self._section.header, agent):
            self._begun.add(parent)
            self._roots[run] = parent
            return ""
        self._roots[run] = self._id(run, 0)
        return parent

    def _span(self, run: str, n: int, name: str, kind: int, begin_us: int, end_us: int) -> Json:
        events = self._more.get((run, n))
        return {
            "traceId": trace_of(self._runs.traceparent(run)) or trace_id(run),
            "spanId": self._id(run, n) if n else self._roots[run],
            "name": name,
            "kind": kind,
            "startTimeUnixNano": _nanoseconds(begin_us),
            "endTimeUnixNano": _nanoseconds(max(end_us, begin_us + TURN_US)),
        } | ({"events": events} if events else {})

    def _id(self, run: str, n: int) -> str:
        """Return the id of a turn's span, of the run itself for turn 0: 16 hex digits."""
        header = self._section.header
        text = f"{header.scenario}/{header.cell}/{header.replication}/{run}/{n}"
        return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _makes_traces(header: HeaderRecord, agent: str) -> bool:
    """Whether a scenario's agent makes the traceparents of its runs itself."""
    tables = header.resolved.get("agent")
    for table in tables if isinstance(tables, list) else [tables]:
        if isinstance(table, dict) and table.get("name", agent) == agent and table.get("trace"):
            return True
    return False


def _nanoseconds(t_us: int) -> str:
    return str((EPOCH_US + t_us) * 1000)


def _name(record: Record) -> str:
    if isinstance(record, MessageRecord):
        return type_of(record.envelope.body)
    if isinstance(record, TimerRecord):
        return f"timer {record.timer.partition(':')[0]}"
    return "time-out"


def _event(record: Record) -> Json | None:
    """Return a record that is no turn as a span's event, None if it tells nothing."""
    if isinstance(record, EventRecord):
        name, told = record.event, [_attribute(key, v) for key, v in record.fields.items()]
    elif isinstance(record, DropRecord | LateRecord):
        what = "lost" if isinstance(record, DropRecord) else "late"
        name = f"{what}: {type_of(record.envelope.body)}"
        told = [_attribute("target", record.envelope.target)]
        if isinstance(record, DropRecord):
            told.append(_attribute("fault", record.fault))
    elif isinstance(record, UndoneRecord):
        name, told = "undone", [_attribute("why", record.why)]
    else:
        return None
    told.append(_attribute("pullcord.record", record.n))
    return {"timeUnixNano": _nanoseconds(record.t), "name": name, "attributes": told}


def _attributes(record: Record) -> list[Json]:
    found = [_attribute("pullcord.record", record.n), _attribute("pullcord.kind", kind_of(record))]
    if isinstance(record, MessageRecord):
        envelope = record.envelope
        found += [
            _attribute("pullcord.source", envelope.source),
            _attribute("pullcord.target", envelope.target),
        ]
    return found


def _status(status: str) -> Json:
    if status == "completed":
        return {"code": OK}
    return {"code": ERROR, "message": status} if status in ("failed", "interrupted") else {}


def _attribute(key: str, value: Any) -> Json:
    """Return an attribute; whole numbers are text in OTLP/JSON, since 64 bits don't fit."""
    if isinstance(value, bool):
        told: Json = {"boolValue": value}
    elif isinstance(value, int):
        told = {"intValue": str(value)}
    elif isinstance(value, float):
        told = {"doubleValue": value}
    else:
        told = {"stringValue": value if isinstance(value, str) else value_text(value)}
    return {"key": key, "value": told}
