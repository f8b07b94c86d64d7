"""One run's story across the actors: what happened to it, as sentences in the order of time.

The sentences follow the protocol's messages and the events of servers and engines. What says
nothing new is left out: a poll that reads what the one before read, a control poll that goes on, a
sync that only repeats that the run is open. Messages and events that are not ours are told as they
are. A message that was sent and has neither arrived nor been lost is still under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from logs.record import (
    Carried,
    DropRecord,
    Ended,
    EventRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    UnansweredRecord,
    UndoneRecord,
    type_of,
)
from logs.runs import Runs
from logs.words import brief, value_text

Fields = dict[str, Any]
_LOSSES = (DropRecord, LateRecord, UnansweredRecord)  # where a fault lasts they come in dozens


class Line(msgspec.Struct):
    """A sentence, with the number and the time of the record that it tells of.

    One that was true `times` times, with nothing but other losses between, was so until `until_us`.
    """

    n: int
    t: int
    text: str
    times: int = 1
    until_us: int = 0


class Summary(msgspec.Struct, kw_only=True):
    """A run in one line: whose it is, how it stands, and when it was queued, started and ended."""

    run: str
    agent: str = ""
    status: str = "unknown"
    queued_us: int | None = None
    started_us: int | None = None
    ended_us: int | None = None
    records: int = 0


def summaries(records: Sequence[Record]) -> list[Summary]:
    """Return every run of a section, in the order in which they were first named."""
    runs = Runs(records)
    found = {run: Summary(run=run) for run in runs}
    for record in records:
        for run in runs.of(record):
            found[run].records += 1
            if isinstance(record, MessageRecord):
                _read(found[run], record)
        if isinstance(record, EventRecord):
            named = record.fields.get("run")
            if isinstance(named, str) and named in found:
                _summarise(found[named], record)
    return list(found.values())


def _summarise(summary: Summary, record: EventRecord) -> None:
    if record.event == "run.queued":
        summary.agent = str(record.fields.get("agent", ""))
        summary.status, summary.queued_us = "queued", record.t
    elif record.event == "run.started":
        summary.status, summary.started_us = "running", record.t
    elif record.event == "run.terminal":
        summary.status, summary.ended_us = str(record.fields.get("status", "ended")), record.t


def _read(summary: Summary, record: MessageRecord) -> None:
    """Take what an agent read of a run whose server says nothing in the log."""
    body = record.envelope.body
    if summary.queued_us is None and summary.ended_us is None and type_of(body) == "GraphRun":
        summary.agent = record.envelope.target
        summary.status = str(body.get("status"))


def story(records: Sequence[Record], run: str) -> list[Line]:
    """Tell a run's story; nothing for a run that no record names."""
    runs = Runs(records)
    told: list[Line] = []
    repeated: dict[str, Line] = {}  # losses since anything else happened
    for record, text in _Teller(run).tell(records, runs):
        before = repeated.get(text)
        if before is not None:
            before.times += 1
            before.until_us = record.t
            continue
        told.append(line := Line(record.n, record.t, text))
        if isinstance(record, _LOSSES):
            repeated[text] = line
        else:
            repeated.clear()
    return told


class _Teller:
    """Tells one run's story, record by record."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._attempts: dict[tuple[str, str], int] = {}
        self._posts: dict[str, int] = {}
        self._read: dict[str, str] = {}  # what each agent read last
        self._polls: dict[str, int] = {}  # how often it has read that again
        self._sent: dict[tuple[str, int], SendRecord] = {}
        self._asked: dict[tuple[str, int], Any] = {}
        self._turns: dict[int, MessageRecord] = {}
        self._actors: dict[str, None] = {}
        self._over = False

    def tell(self, records: Sequence[Record], runs: Runs) -> Iterator[tuple[Record, str]]:
        """Yield what is to be told, each with the record that tells it."""
        for record in records:
            if isinstance(record, Carried):
                envelope = record.envelope
                self._asked.setdefault((envelope.source, envelope.id), envelope.body)
            if isinstance(record, MessageRecord):
                self._turns[record.n] = record
        for record in records:
            text = ""
            if self._run in runs.of(record):
                text = self._sentence(record)
                self._actors.setdefault(record.actor)
            elif self._actors and not self._over and record.actor in self._actors:
                text = _of_actor(record)
            if text:
                yield record, text
        for sent in self._sent.values():
            what = _what(sent.envelope.body)
            yield sent, f"{what} from {_way(sent)} was still under way at the end"

    def _sentence(self, record: Record) -> str:
        if isinstance(record, EventRecord):
            return self._event(record)
        if isinstance(record, SendRecord):
            self._sent[record.envelope.source, record.envelope.id] = record
            return ""
        if isinstance(record, Ended):
            envelope = record.envelope
            self._sent.pop((envelope.source, envelope.id), None)
        if isinstance(record, MessageRecord):
            return self._message(record)
        if isinstance(record, DropRecord):
            what = _what(record.envelope.body)
            return f"lost on the way: {what} from {_way(record)} (by {record.fault})"
        if isinstance(record, LateRecord):
            return f"{_what(record.envelope.body)} from {_way(record)} came too late"
        if isinstance(record, UnansweredRecord):
            asked = self._asked.get((record.actor, record.id))
            what = "its question" if asked is None else _what(asked)
            return f"{record.actor} gave up waiting for an answer to {what}"
        if isinstance(record, UndoneRecord):
            return f"{record.actor}'s turn {record.cause} was undone: {record.why}"
        return ""  # a timer says nothing that what follows it does not

    def _event(self, record: EventRecord) -> str:
        fields = record.fields
        if record.event == "run.terminal":
            self._over = True
            return _terminal(record.actor, fields)
        if record.event == "run.offered":
            turn = self._turns.get(record.cause)
            who = "a relay" if turn is None else turn.envelope.source
            return f"{who} synced and was offered it (delivery {_of(fields, 'delivery')})"
        template = _EVENTS.get(record.event)
        if template is not None:
            return template.format_map(_Told(fields, _actor=record.actor))
        pairs = ", ".join(f"{k}={value_text(v)}" for k, v in fields.items() if k != "run")
        return f"{record.actor} says {record.event}" + (f": {pairs}" if pairs else "")

    def _message(self, record: MessageRecord) -> str:
        envelope = record.envelope
        source, target, body = envelope.source, envelope.target, envelope.body
        name = type_of(body)
        if name in _SILENT or not isinstance(body, dict):
            return ""
        if name == "RunGraphSession":
            key = source, str(body.get("idempotency_key"))
            attempt = self._attempts[key] = self._attempts.get(key, 0) + 1
            return f"{source} asked for it (attempt {attempt})"
        if name == "Complete":
            post = self._posts[source] = self._posts.get(source, 0) + 1
            status = _status(body.get("completion"))
            again = f" (again: time {post})" if post > 1 else ""
            return f"{target} got its result from {source}: {status}{again}"
        if name == "GraphRun":
            return self._poll(source, target, body)
        if name == "StartAnswer" and not body.get("go"):
            return f"{source} did not let {target} start it: {_of(body, 'reason')}"
        if name == "ControlAnswer":
            why = _of(body, "reason")
            return f"{source} told {target} to stop it: {why}" if body.get("stop") else ""
        template = _MESSAGES.get(name)
        if template is None:
            return f"{source} → {target}: {brief(body)}"
        status = _status(body.get("completion"))
        return template.format_map(_Told(body, _source=source, _target=target, _status=status))

    def _poll(self, source: str, target: str, body: Fields) -> str:
        status = str(body.get("status"))
        if body.get("cancel_requested") and status in ("queued", "running"):
            status += ", with its cancellation asked for"
        if waiting := body.get("awaiting_approval"):
            status += f", and waits for its owner ({value_text(waiting)})"
        if self._read.get(target) == status:
            self._polls[target] = self._polls.get(target, 0) + 1
            return ""
        times = self._polls.pop(target, 0)
        polls = "a poll" if times == 1 else f"{times} polls"
        before = f", after {polls} that read the same" if times else ""
        first = target not in self._read
        self._read[target] = status
        if first and status == "queued":
            return f"{target} got its ticket"
        return f"{target} read from {source} that it is {status}{before}"


class _Told(dict[str, Any]):
    """The fields of an event or a message, as sentences have them, and who said it."""

    def __init__(self, fields: Fields, **who: str) -> None:
        super().__init__({key: value_text(value) for key, value in fields.items()} | who)

    def __missing__(self, key: str) -> str:
        return "?"


def _of_actor(record: Record) -> str:
    """Tell what happens to an actor that has to do with the run."""
    if isinstance(record, FaultRecord):
        return f"{record.actor}: {record.act} (by {record.fault})"
    if isinstance(record, StartRecord) and record.boot:
        return f"{record.actor} started again, in boot {record.boot}"
    return ""


def _way(record: Carried) -> str:
    return f"{record.envelope.source} to {record.envelope.target}"


def _what(body: Any) -> str:
    return _NOUNS.get(type_of(body), type_of(body))


def _status(completion: Any) -> str:
    return str(completion.get("status", "?")) if isinstance(completion, dict) else "?"


def _of(fields: Fields, name: str) -> str:
    return value_text(fields.get(name, "?"))


def _terminal(actor: str, fields: Fields) -> str:
    status, cause, was = (_of(fields, name) for name in ("status", "cause", "was"))
    why = f", by {cause}" if cause not in (status, "?") else ""
    cut = ", its result cut" if fields.get("truncated") else ""
    return f"{actor} closed it as {status}; it was {was}{why}{cut}"


# What concerns a run at all times, or is told by an event.
_SILENT = frozenset({"Sync", "Commands", "Control", "GetGraphRun", "CancelGraphRun"})
_SILENT |= {"FleetQuery", "FleetStarted"}

_NOUNS = {
    "RunGraphSession": "the call for it",
    "GetGraphRun": "a poll",
    "GraphRun": "the answer to a poll",
    "CancelGraphRun": "the call to cancel it",
    "Sync": "a sync",
    "Commands": "a sync's answer",
    "Start": "the question whether it may start",
    "StartAnswer": "the leave to start it",
    "Control": "a control poll",
    "ControlAnswer": "a control poll's answer",
    "Complete": "its result",
    "Accepted": "the notice that its result was accepted",
    "FleetRun": "the order to run it",
    "FleetStarted": "the notice that it runs",
    "FleetFinished": "the notice that it has ended",
    "FleetAcknowledged": "the receipt for its end",
    "FleetCancel": "the order to stop it",
    "FleetQuery": "the question whether it runs",
    "FleetUnknown": "the notice that it never ran",
}

# `_actor` says it; a field that is missing is a question mark.
_EVENTS = {
    "run.queued": "{_actor} queued it for {agent}",
    "run.replayed": "{_actor} gave the same key its ticket again",
    "run.started": "{_actor} let it start on {device}",
    "run.cancel_asked": "{_actor} took the call to cancel it, while it was {status}",
    "run.late": "{_actor} got a result, {status}, after it had closed it",
    "run.completion_unknown": "{_actor} got a result and does not know the run",
    "engine.started": "{_actor} began to execute it",
    "engine.stopping": "{_actor} was told to stop it",
    "engine.finished": "{_actor} ended its execution: {status}",
    "relay.refused": "{_actor} refused it: {reason}",
    "approval.waiting": "{_actor} lets call {call}, of {tool}, wait for its owner",
    "approval.decided": "{_actor} lets call {call}, of {tool}, wait no more; {by}: allow={allow}",
    "fleet.resumed": "{_actor} goes on with it where it stood; calls that wait: {waiting}",
}

# `_source` sent it to `_target`; `_status` is that of the completion in it.
_MESSAGES = {
    "Start": "{_source} asked {_target} whether it may start (delivery {delivery})",
    "StartAnswer": "{_source} let {_target} go",
    "Accepted": "{_target} knows that {_source} has its result",
    "FleetRun": "{_source} handed it to {_target}",
    "FleetUnknown": "{_source} told {_target} that it never ran",
    "FleetCancel": "{_source} told {_target} to stop it",
    "FleetFinished": "{_source} told {_target} how it ended: {_status}",
    "FleetAcknowledged": "{_source} has its end on disk, {_target} knows",
    "Failure": "{_source} refused {_target}: {error}",
    "Leak": "{_source} gave its ticket away to {_target}",
}
