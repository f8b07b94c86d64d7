"""A log as CSV: a row a record, with the same columns for every kind."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, Any, Final

import msgspec

from logs.read import Section
from logs.record import Carried, EventRecord, Record, type_of
from logs.runs import Runs
from logs.words import kind_of

COLUMNS: Final = (
    "scenario", "cell", "replication", "n", "t_us", "kind", "actor", "cause", "boot", "source",
    "target", "id", "reply_to", "message", "runs", "timer", "fault", "act", "event", "why", "data",
)  # fmt: skip
_OWN = ("boot", "timer", "fault", "act", "event", "why", "id")


def write_head(out: IO[str]) -> None:
    """Write the names of the columns."""
    _writer(out).writerow(COLUMNS)


def write_rows(section: Section, out: IO[str]) -> None:
    """Write a section's rows; `data` is a message's body or an event's fields, as JSON."""
    runs = Runs(section.records)
    header = section.header
    first = {
        "scenario": header.scenario,
        "cell": header.cell,
        "replication": header.replication,
    }
    writer = _writer(out)
    for record in section.records:
        row = first | dict(_cells(record)) | {"runs": " ".join(runs.of(record))}
        writer.writerow(row.get(column, "") for column in COLUMNS)


def _writer(out: IO[str]) -> Any:
    return csv.writer(out, lineterminator="\n")


def _cells(record: Record) -> Iterator[tuple[str, object]]:
    yield "n", record.n
    yield "t_us", record.t
    yield "kind", kind_of(record)
    yield "actor", record.actor
    yield "cause", record.cause
    for name in _OWN:
        if name in record.__struct_fields__:
            yield name, getattr(record, name)
    if isinstance(record, Carried):
        envelope = record.envelope
        yield "source", envelope.source
        yield "target", envelope.target
        yield "id", envelope.id
        yield "reply_to", envelope.reply_to
        yield "message", type_of(envelope.body)
        yield "data", _json(envelope.body)
    elif isinstance(record, EventRecord):
        yield "data", _json(record.fields)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
