"""A trace that https://ui.perfetto.dev opens: a track an actor, a slice a turn, an arrow a message.

Turns take no time in the simulator, and a log doesn't say how long they took elsewhere, so each is
shown one microsecond long. Those of one instant are put one after another, an effect after its
cause, so that what is shown is a staircase of microseconds and every arrow goes forward; the time
of the record itself stands among a slice's arguments. Losses, late answers, faults and undone turns
are instants. What an actor said in a turn is among the turn's arguments.

A run has a track too, where it is queued and then running for as long as it really was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from logs.export.protobuf import double, fixed64, integer, message, text
from logs.read import Section
from logs.record import (
    DropRecord,
    Ended,
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
    type_of,
)
from logs.story import Summary, summaries
from logs.words import kind_of

TURN_US: Final = 1  # how long a turn is shown
TEXT_LIMIT_CHARS: Final = 4_000  # of one argument; a result may have 100,000
DEPTH_LIMIT: Final = 8
# The numbers of fields, as Perfetto's protos have them.
PACKET, TIMESTAMP, SEQUENCE, EVENT, DESCRIPTOR, SEQUENCE_FLAGS = 1, 8, 10, 11, 60, 13
TRACK_UUID, TRACK_NAME, TRACK_PARENT, TRACK_PROCESS = 1, 2, 5, 3
PROCESS_ID, PROCESS_NAME = 1, 6
TYPE, TRACK, NAME, CATEGORY, ARGUMENT, FLOW, FLOW_END = 9, 11, 23, 22, 4, 47, 48
ARG_NAME, ARG_BOOL, ARG_INT, ARG_DOUBLE, ARG_TEXT, ARG_ENTRY, ARG_ITEM = 10, 2, 4, 5, 6, 11, 12
BEGIN, END, INSTANT = 1, 2, 3
SEQUENCE_NUMBER, CLEARED = 1, 1
RUN: Final = "run"  # the category of what a run was, beside those of records
TRACKS_LIMIT: Final = 1 << 20  # a section's tracks are numbered from its own multiple of this

_Turn = StartRecord | MessageRecord | TimerRecord | UnansweredRecord


def trace(section: Section, number: int) -> Iterator[bytes]:
    """Yield the packets of one section; those of several in a row are one trace.

    `number` counts the sections of a trace from 0: each is shown as a process of its own.
    """
    yield from _Tracer(section, number).packets()


class _Tracer:
    """Writes one section's packets."""

    def __init__(self, section: Section, number: int) -> None:
        self._section = section
        self._number = number
        self._base = (number + 1) * TRACKS_LIMIT
        self._tracks: dict[str, int] = {}
        self._free_us: dict[str, int] = {}  # when each actor's last slice ends
        self._begun_us: dict[int, int] = {}  # when each turn's slice begins
        self._flows: dict[int, list[int]] = {}  # the flows that leave each turn
        self._said: dict[int, list[EventRecord]] = {}  # what was said in each turn

    def packets(self) -> Iterator[bytes]:
        """Yield them in the order of the records."""
        for record in self._section.records:
            if isinstance(record, EventRecord) and record.cause:
                self._said.setdefault(record.cause, []).append(record)
            elif isinstance(record, Ended) and record.cause:
                self._flows.setdefault(record.cause, []).append(self._flow(record))
        yield self._process()
        for record in self._section.records:
            if record.actor not in self._tracks:
                yield self._track(record.actor)
            if isinstance(record, _Turn):
                yield from self._slice(record)
            elif not isinstance(record, SendRecord) and not (
                isinstance(record, EventRecord) and record.cause in self._begun_us
            ):
                yield self._instant(record)
        for summary in summaries(self._section.records):
            yield from self._run(summary)

    def _run(self, run: Summary) -> Iterator[bytes]:
        """Yield the track of a run: what it was, from its first event to its last."""
        if run.queued_us is None:
            return
        last_us = self._section.records[-1].t if run.ended_us is None else run.ended_us
        queued_until_us = last_us if run.started_us is None else run.started_us
        phases = [("queued", run.queued_us, queued_until_us)]
        if run.started_us is not None:
            phases.append(("running", run.started_us, last_us))
        actor = f"run {run.run}"  # which no actor is called: a name has no space
        yield self._track(actor)
        told = (("run", run.run), ("agent", run.agent), ("status", run.status))
        parts = [_argument(name, value) for name, value in told]
        free_us = 0
        for name, begin_us, end_us in phases:
            begun_us = max(begin_us, free_us)
            free_us = max(end_us, begun_us + TURN_US)
            yield self._event(BEGIN, begun_us, actor, name, RUN, parts)
            yield self._event(END, free_us, actor, "", "", [])

    def _flow(self, record: Record) -> int:
        return self._number << 40 | record.n

    def _process(self) -> bytes:
        process = integer(PROCESS_ID, self._number + 1) + text(PROCESS_NAME, self._section.where)
        described = integer(TRACK_UUID, self._base) + message(TRACK_PROCESS, process)
        flags = integer(SEQUENCE_FLAGS, CLEARED)
        return _packet(flags + message(DESCRIPTOR, described))

    def _track(self, actor: str) -> bytes:
        self._tracks[actor] = uuid = self._base + len(self._tracks) + 1
        described = (
            integer(TRACK_UUID, uuid) + text(TRACK_NAME, actor) + integer(TRACK_PARENT, self._base)
        )
        return _packet(message(DESCRIPTOR, described))

    def _slice(self, record: _Turn) -> Iterator[bytes]:
        after_cause_us = self._begun_us.get(record.cause, -TURN_US) + TURN_US
        begin_us = max(record.t, self._free_us.get(record.actor, 0), after_cause_us)
        self._begun_us[record.n] = begin_us
        self._free_us[record.actor] = end_us = begin_us + TURN_US
        parts = [_argument("record", record.n), _argument("t_us", record.t), *_input(record)]
        for index, event in enumerate(self._said.get(record.n, ())):
            name = event.event if index == 0 else f"{event.event} ({index + 1})"
            parts.append(_argument(name, event.fields))
        parts += [fixed64(FLOW, flow) for flow in self._flows.get(record.n, ())]
        if isinstance(record, MessageRecord) and record.cause in self._begun_us:
            parts.append(fixed64(FLOW_END, self._flow(record)))
        yield self._event(BEGIN, begin_us, record.actor, _title(record), kind_of(record), parts)
        yield self._event(END, end_us, record.actor, "", "", [])

    def _instant(self, record: Record) -> bytes:
        cause_us = self._begun_us.get(record.cause, record.t - TURN_US)
        time_us = max(record.t, cause_us + TURN_US)
        parts = [_argument("record", record.n), _argument("t_us", record.t), *_input(record)]
        if isinstance(record, DropRecord | LateRecord) and record.cause in self._begun_us:
            parts.append(fixed64(FLOW_END, self._flow(record)))
        title = _title(record)
        return self._event(INSTANT, time_us, record.actor, title, kind_of(record), parts)

    def _event(
        self, kind: int, time_us: int, actor: str, name: str, category: str, parts: list[bytes]
    ) -> bytes:
        content = integer(TYPE, kind) + integer(TRACK, self._tracks[actor])
        if name:
            content += text(NAME, name) + text(CATEGORY, category)
        return _packet(
            integer(TIMESTAMP, time_us * 1000) + message(EVENT, content + b"".join(parts))
        )


def _packet(content: bytes) -> bytes:
    return message(PACKET, content + integer(SEQUENCE, SEQUENCE_NUMBER))


def _title(record: Record) -> str:
    if isinstance(record, MessageRecord):
        return type_of(record.envelope.body)
    if isinstance(record, DropRecord):
        return f"lost: {type_of(record.envelope.body)} to {record.envelope.target}"
    if isinstance(record, LateRecord):
        return f"late: {type_of(record.envelope.body)}"
    if isinstance(record, TimerRecord):
        return f"timer {record.timer.partition(':')[0]}"
    if isinstance(record, FaultRecord):
        return f"{record.act} by {record.fault}"
    if isinstance(record, EventRecord):
        return record.event
    return {"unanswered": "time-out", "start": "start"}.get(kind_of(record), kind_of(record))


def _input(record: Record) -> Iterator[bytes]:
    """Yield the arguments of a record: what it has besides number, time, actor and cause."""
    if isinstance(record, Ended):
        envelope = record.envelope
        yield _argument("from", envelope.source)
        yield _argument("to", envelope.target)
        if envelope.traceparent:
            yield _argument("traceparent", envelope.traceparent)
        if isinstance(record, DropRecord):
            yield _argument("fault", record.fault)
        yield _argument("body", envelope.body)
    elif isinstance(record, EventRecord):
        yield _argument("fields", record.fields)
    elif isinstance(record, StartRecord):
        yield _argument("boot", record.boot)
    elif isinstance(record, TimerRecord):
        yield _argument("timer", record.timer)
    elif isinstance(record, UnansweredRecord):
        yield _argument("id", record.id)
    elif isinstance(record, UndoneRecord):
        yield _argument("turn", record.cause)
        yield _argument("why", record.why)


def _argument(name: str, value: Any) -> bytes:
    return message(ARGUMENT, text(ARG_NAME, name) + _value(value))


def _value(value: Any, depth: int = 0) -> bytes:
    """Return the fields of an annotation that say a value; None and what is too deep have none."""
    if isinstance(value, bool):
        return integer(ARG_BOOL, value)
    if isinstance(value, int):
        return integer(ARG_INT, value)
    if isinstance(value, float):
        return double(ARG_DOUBLE, value)
    if isinstance(value, str):
        return text(ARG_TEXT, value[:TEXT_LIMIT_CHARS])
    if depth == DEPTH_LIMIT or value is None:
        return b""
    if isinstance(value, dict):
        return b"".join(
            message(ARG_ENTRY, text(ARG_NAME, str(key)) + _value(inner, depth + 1))
            for key, inner in value.items()
            if inner is not None
        )
    return b"".join(message(ARG_ITEM, _value(inner, depth + 1)) for inner in value)
