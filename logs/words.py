"""A record in words: what a person reads of it in one line.

Ids are shortened in the middle, since those of one replication share their beginning; whatever is
empty, false or zero is left out. What was written by later versions or by a user's own actors is
told as it is, without a sentence of its own.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from logs.record import (
    Carried,
    DropRecord,
    EventRecord,
    FaultRecord,
    LateRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
    type_of,
)
from transports.envelope import Envelope

VALUE_LIMIT_CHARS = 60  # of one value in a line; the whole stands in the log
# A seeded id tells the replication first and the actor and serial last: both ends are kept.
_ID = re.compile(r"\b([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-([0-9a-f]{12})\b")
_TAGGED_ID = re.compile(r"\b([a-z]+_[0-9a-f]{4})[0-9a-f]{24}([0-9a-f]{4})\b")


def seconds(t_us: int) -> str:
    """Return a record's time: seconds to the millisecond, what is shorter in microseconds."""
    if 0 < t_us < 1000:
        return f"{t_us}us"
    text = f"{t_us / 1e6:.3f}".rstrip("0").rstrip(".")
    return f"{text}s"


def short(text: str) -> str:
    """Return a text with its ids shortened: `3212…000000000001`."""
    return _TAGGED_ID.sub(r"\1…\2", _ID.sub(r"\1…\2", text))


def brief(body: Any) -> str:
    """Return a message's body in short: `GraphRun(command_id=3212…000000000001, status=queued)`.

    What is empty or false is left out unless everything is. A single field needs no name.
    """
    if not isinstance(body, dict):
        return value_text(body)
    fields = {key: value for key, value in body.items() if key != "type"}
    if len(fields) == 1:
        [value] = fields.values()
        return f"{type_of(body)}({len(value) if isinstance(value, list) else value_text(value)})"
    told = {key: value for key, value in fields.items() if value}
    told = told or {key: value for key, value in fields.items() if value is not None}
    pairs = (f"{key}={value_text(value)}" for key, value in told.items())
    return f"{type_of(body)}({', '.join(pairs)})"


def value_text(value: Any) -> str:
    """Return a value in a line: a list by its length, a table by its keys' number, text short."""
    if isinstance(value, str):
        text = short(value)
    elif isinstance(value, list):
        text = f"[{len(value)}]"
    elif isinstance(value, dict):
        text = f"{{{len(value)}}}"
    elif isinstance(value, bool) or value is None:
        text = msgspec.json.encode(value).decode()
    else:
        text = f"{value}"
    return text if len(text) <= VALUE_LIMIT_CHARS else text[: VALUE_LIMIT_CHARS - 1] + "…"


def way(envelope: Envelope[Any]) -> str:
    """Return a message with its way: `server → relay  Commands(1)`."""
    return f"{envelope.source} → {envelope.target}  {brief(envelope.body)}"


def id_text(number: int) -> str:
    """Return a message's id: its serial, after the first boot with the boot before it, `1:7`."""
    boot, serial = number >> 32, number & 0xFFFFFFFF
    return f"{boot}:{serial}" if boot else f"{serial}"


class Narrator:
    """Puts records into words, one section's in their order, and remembers who asked what."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], str] = {}

    def words(self, record: Record) -> str:
        """Return what happened, without number, time and actor."""
        if isinstance(record, Carried):
            envelope = record.envelope
            if not envelope.reply_to:
                what = f"{type_of(envelope.body)} to {envelope.target}"
                self._asked[envelope.source, envelope.id] = what
            return _carried(record)
        if isinstance(record, UnansweredRecord):
            asked = self._asked.get((record.actor, record.id), f"message {id_text(record.id)}")
            return f"time-out: no answer to {asked}"
        return _plain(record)


def _carried(record: Carried) -> str:
    text = way(record.envelope)
    if isinstance(record, DropRecord):
        return f"dropped by {record.fault}: {text}"
    if isinstance(record, LateRecord):
        return f"late: {text}"
    return f"sends {text}" if isinstance(record, SendRecord) else text


def _plain(record: Record) -> str:
    if isinstance(record, EventRecord):
        pairs = "".join(f"  {key}={value_text(value)}" for key, value in record.fields.items())
        return f"{record.event}{pairs}"
    if isinstance(record, TimerRecord):
        return f"timer {short(record.timer)}"
    if isinstance(record, StartRecord):
        return f"starts, boot {record.boot}"
    if isinstance(record, FaultRecord):
        return f"fault {record.fault}: {record.act}"
    if isinstance(record, UndoneRecord):
        return f"undone, turn {record.cause}: {record.why}"
    return kind_of(record)


def kind_of(record: msgspec.Struct) -> str:
    """Return a record's kind, as its line has it."""
    return str(record.__struct_config__.tag)
