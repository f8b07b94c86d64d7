"""Beats: what a swimlane shows of a replication's records, and which of them it chooses.

A beat is one record in words, or a pattern that repeats itself and is shown once. A swimlane has
room for a few dozen: what a violation stands on comes first, then what led to it, then faults, then
what concerns the same run, and last what happened next to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from actors.messages import TERMINAL
from logs.record import (
    DropRecord,
    Ended,
    EventRecord,
    FaultRecord,
    LateRecord,
    Record,
    StartRecord,
    UnansweredRecord,
    UndoneRecord,
)

ROUTINE: Final = frozenset({"Control", "ControlAnswer", "GetGraphRun", "Sync"})
REPEATS_LEAST: Final = 3  # so often a pattern comes before it is shown once
PERIODS: Final = (2, 1, 4)
WORD: Final = re.compile(r"[\w-]+")  # what a run's id is made of
BEFORE: Final = 15_000  # records before what is in focus that are looked at, and
AFTER: Final = 5_000  # behind it: a hundred agents have a million
NEAR: Final = 8  # what else happened so close by is shown too
WORD_LIMIT_CHARS: Final = 40


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a swimlane: `source` to `target` is an arrow, the same twice a dot on a lane.

    `style` is message, lost, late, event, fault or boot. `runs` are the ids of the runs that its
    text names. A pattern came `times` times, the last one at `until_us`.
    """

    n: int
    cause: int
    t: int
    sent_us: int
    source: str
    target: str
    style: str
    label: str
    told: str
    text: str
    routine: bool = False
    times: int = 1
    until_us: int = 0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What a beat has in common with its repetition."""
        return self.source, self.target, self.style, self.label


def window(records: Sequence[Record], focus: frozenset[int]) -> Sequence[Record]:
    """Return the records around those in focus; the last ones if none is."""
    places = [place for place, record in enumerate(records) if record.n in focus]
    first, last = (places[0], places[-1]) if places else (len(records), len(records))
    return records[max(0, first - BEFORE) : last + AFTER]


def beats_of(records: Sequence[Record], runs: Sequence[str]) -> list[Beat]:
    """Return the records that are shown, in words; runs are called by their number in `runs`."""
    names = {run: f"run {number}" for number, run in enumerate(runs, 1)}
    times = {record.n: record.t for record in records}
    found = []
    for record in records:
        beat = _beat(record, names)
        if beat is not None:
            sent_us = times.get(record.cause, record.t) if beat.source != beat.target else record.t
            found.append(replace(beat, sent_us=min(sent_us, record.t)))
    return found


def runs_of(records: Sequence[Record]) -> list[str]:
    """Return the ids of the runs, in the order in which they were queued."""
    found = [
        str(record.fields["run"])
        for record in records
        if isinstance(record, EventRecord) and record.event == "run.queued"
    ]
    return list(dict.fromkeys(found))


def _beat(record: Record, names: dict[str, str]) -> Beat | None:
    if isinstance(record, Ended):
        return _message(record, names)
    if isinstance(record, EventRecord):
        run = names.get(str(record.fields.get("run", "")), "")
        status = str(record.fields.get("status", ""))
        label = " ".join(filter(None, [record.event, run, status]))
        return _dot(record, "event", label, _json(record.fields))
    if isinstance(record, FaultRecord):
        label = f"{record.act} by {record.fault}"
        return _dot(record, "fault", label, f"the fault {record.fault}: {record.act}")
    if isinstance(record, StartRecord) and record.boot:
        return _dot(record, "boot", f"boot {record.boot}", f"begins boot {record.boot}")
    if isinstance(record, UnansweredRecord):
        return _dot(record, "late", "no answer in time", f"question {record.id} has no answer")
    if isinstance(record, UndoneRecord):
        return _dot(record, "fault", f"undone: {record.why}", f"turn {record.cause} is undone")
    return None


def _dot(record: Record, style: str, label: str, told: str) -> Beat:
    return Beat(
        n=record.n, cause=record.cause, t=record.t, sent_us=record.t, source=record.actor,
        target=record.actor, style=style, label=label, told=told, text=told,
    )  # fmt: skip


def _message(record: Ended, names: dict[str, str]) -> Beat:
    envelope = record.envelope
    body = envelope.body if isinstance(envelope.body, dict) else msgspec.to_builtins(envelope.body)
    kind = str(body.get("type", type(envelope.body).__name__))
    style, after = "message", ""
    if isinstance(record, DropRecord):
        style, after = "lost", f" lost: {record.fault}" if record.fault else " lost"
    elif isinstance(record, LateRecord):
        style, after = "late", " too late"
    text = _json(body)
    words = [kind, *_details(body, text, names)]
    status = body.get("status")
    return Beat(
        n=record.n,
        cause=record.cause,
        t=record.t,
        sent_us=record.t,
        source=envelope.source,
        target=envelope.target,
        style=style,
        label=" ".join(words) + after,
        told=f"{envelope.source} to {envelope.target}: {kind}{after}: {text}",
        text=text,
        routine=style == "message"
        and (kind in ROUTINE or (kind == "GraphRun" and status not in TERMINAL)),
    )


def _details(body: dict[str, Any], text: str, names: dict[str, str]) -> list[str]:
    """Return what tells one message from another of its type: runs, a status, a yes or no."""
    mentioned = list(dict.fromkeys(names[word] for word in WORD.findall(text) if word in names))
    found = [", ".join(mentioned)] if 0 < len(mentioned) <= 3 else []
    for key in ("status", "outcome", "go", "stop", "reason"):
        value = body.get(key)
        if isinstance(value, bool):
            found += [key] if value else [f"no {key}"] if key == "go" else []
        elif isinstance(value, str) and value:
            found.append(value[:WORD_LIMIT_CHARS])
    return found


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


# Choosing


def collapsed(beats: Sequence[Beat], focus: frozenset[int]) -> list[Beat]:
    """Return the beats with every pattern of one, two or four that repeats itself shown once.

    What is in focus is never part of one.
    """
    known: dict[tuple[str, str, str, str], int] = {}
    marks = [
        -place - 1
        if beat.n in focus or beat.style in ("fault", "boot")
        else known.setdefault(beat.key, len(known))
        for place, beat in enumerate(beats)
    ]
    found: list[Beat] = []
    at = 0
    while at < len(beats):
        period, times = _pattern(marks, at)
        if times < REPEATS_LEAST:
            found.append(beats[at])
            at += 1
            continue
        last = at + period * (times - 1)
        for offset in range(period):
            until_us = beats[last + offset].t
            found.append(replace(beats[at + offset], times=times, until_us=until_us))
        at += period * times
    return found


def _pattern(marks: Sequence[int], at: int) -> tuple[int, int]:
    """Return the period that repeats most from here, and how often it comes.

    Equal beats have equal marks, and one that repeats nothing has one below 0 for itself.
    """
    best = (1, 1)
    for period in PERIODS:
        first = marks[at : at + period]
        times = 1
        while first and marks[at + times * period : at + (times + 1) * period] == first:
            times += 1
        if times >= REPEATS_LEAST and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def chosen(
    beats: Sequence[Beat], causes: frozenset[int], focus: frozenset[int], run: str, limit: int
) -> list[Beat]:
    """Return at most `limit` beats in their order: those that tell most of what is in focus.

    `causes` are the records that led to it; `run` is the id of the run that it is about, or "".
    """
    if not beats:
        return []
    places = [place for place, beat in enumerate(beats) if beat.n in focus] or [len(beats) - 1]
    mentions = [place for place, beat in enumerate(beats) if run and run in beat.text]
    first, last = min([*mentions, *places]), max(places)

    def rank(place: int) -> tuple[int, int]:
        beat = beats[place]
        mentioned = bool(run) and run in beat.text
        near = min(abs(place - one) for one in places)
        if beat.n in focus:
            return 0, near
        if beat.n in causes and (near <= NEAR or not beat.routine):
            return 1, near
        if beat.style in ("fault", "boot", "lost") and first <= place <= last:
            return (2 if beat.style != "lost" or mentioned else 4), near
        if mentioned and not beat.routine:
            return 3, near
        return (4 if mentioned else 5), near

    ranks = {place: rank(place) for place in range(len(beats))}
    telling = [place for place, (kind, near) in ranks.items() if kind < 4 or near <= NEAR]
    order = sorted(telling, key=ranks.__getitem__)
    return [beats[place] for place in sorted(order[:limit])]


def causes_of(records: Sequence[Record], focus: frozenset[int]) -> frozenset[int]:
    """Return the numbers of the records that led to those in focus."""
    causes = {record.n: record.cause for record in records}
    found: dict[int, None] = {}
    for one in sorted(focus):
        at = causes.get(one, 0)
        while at in causes and at not in found:
            found[at] = None
            at = causes[at]
    return frozenset(found)
