"""Which runs a record concerns: by the ids in it, and by what it answers.

Runs are known from the events and messages that name them (`run`, `command_id`, a channel's end).
Any other text that is such an id names the run too, so messages and events of a user's own actors
count as well; what users send as arguments and results does not. An answer without an id belongs
to its question's run, a call for a run to the run that it got. A run's trace is that of the
first message which names the run and has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from logs.record import (
    Carried,
    EventRecord,
    MessageRecord,
    Record,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from transports.envelope import Envelope
from transports.traceparent import accepted

DEPTH_LIMIT = 8  # how deep ids are looked for; ours lie at most three tables deep
ID_LIMIT_CHARS = 200  # a longer text is no id
CONTENT = frozenset({"arguments", "result", "error"})  # what users send, which may say anything

_KEY = "idempotency_key"


class Runs:
    """One section's runs. Learn its records, then ask; what was learned later counts from then."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._runs: dict[str, None] = {}  # in the order in which they were first named
        self._executions: dict[str, str] = {}  # the run of each
        self._asked: dict[tuple[str, int], Envelope[Any]] = {}  # by who asked, and the id
        self._keys: dict[tuple[str, str], str] = {}  # the run that an agent's key stands for
        self._turns: dict[int, Record] = {}
        self._traceparents: dict[str, str] = {}  # of runs that are traced
        for record in records:
            self.learn(record)

    def __iter__(self) -> Iterator[str]:
        """The runs, in the order in which they were first named."""
        return iter(self._runs)

    def learn(self, record: Record) -> None:
        """Take what a record tells of runs."""
        if isinstance(record, EventRecord):
            self._learn_event(record)
        elif isinstance(record, Carried):
            if isinstance(record, MessageRecord):
                self._turns[record.n] = record
            self._learn_message(record.envelope)
        elif isinstance(record, TimerRecord):
            self._turns[record.n] = record

    def of(self, record: Record) -> tuple[str, ...]:
        """Return the runs that a record concerns, each once."""
        found: dict[str, None] = {}
        if isinstance(record, EventRecord):
            self._look(record.fields, found)
        elif isinstance(record, Carried):
            self._look_at(record.envelope, found)
        elif isinstance(record, UnansweredRecord):
            asked = self._asked.get((record.actor, record.id))
            if asked is not None:
                self._look_at(asked, found)
        elif isinstance(record, TimerRecord):
            self._look(record.timer, found)
        elif isinstance(record, UndoneRecord):
            turn = self._turns.get(record.cause)
            return () if turn is None else self.of(turn)
        return tuple(found)

    def traceparent(self, run: str) -> str:
        """Return the trace that a run belongs to, "" for none."""
        return self._traceparents.get(run, "")

    def _learn_event(self, record: EventRecord) -> None:
        run, execution = record.fields.get("run"), record.fields.get("execution")
        if not isinstance(run, str):
            return
        self._runs.setdefault(run)
        if isinstance(execution, str):
            self._executions[execution] = run
        turn = self._turns.get(record.cause)
        if isinstance(turn, MessageRecord):
            self._learn_key(turn.envelope, run)

    def _learn_message(self, envelope: Envelope[Any]) -> None:
        self._asked.setdefault((envelope.source, envelope.id), envelope)
        body = envelope.body
        if not isinstance(body, dict):
            return
        run, channel, execution = map(body.get, ("command_id", "channel", "execution_id"))
        if not isinstance(run, str) and isinstance(channel, str):
            run = channel.rpartition(":")[2]
        if not isinstance(run, str) or not run:
            return
        self._runs.setdefault(run)
        if accepted(envelope.traceparent):  # a log may have been edited
            self._traceparents.setdefault(run, envelope.traceparent)
        if isinstance(execution, str):
            self._executions[execution] = run
        asked = self._asked.get((envelope.target, envelope.reply_to))
        if asked is not None and envelope.reply_to:
            self._learn_key(asked, run)

    def _learn_key(self, asked: Envelope[Any], run: str) -> None:
        if isinstance(asked.body, dict) and isinstance(asked.body.get(_KEY), str):
            self._keys.setdefault((asked.source, asked.body[_KEY]), run)

    def _look_at(self, envelope: Envelope[Any], found: dict[str, None]) -> None:
        self._look(envelope.body, found)
        if found:
            return
        if isinstance(envelope.body, dict) and isinstance(envelope.body.get(_KEY), str):
            run = self._keys.get((envelope.source, envelope.body[_KEY]))
            if run is not None:
                found.setdefault(run)
        asked = self._asked.get((envelope.target, envelope.reply_to))
        if asked is not None and envelope.reply_to and not asked.reply_to:
            self._look_at(asked, found)

    def _look(self, value: Any, found: dict[str, None], depth: int = 0) -> None:
        if isinstance(value, str):
            if len(value) <= ID_LIMIT_CHARS:
                run = self._run_of(value)
                if run is not None:
                    found.setdefault(run)
        elif depth == DEPTH_LIMIT:
            return
        elif isinstance(value, dict):
            for key, inner in value.items():
                if key not in CONTENT:
                    self._look(inner, found, depth + 1)
        elif isinstance(value, list):
            for inner in value:
                self._look(inner, found, depth + 1)

    def _run_of(self, text: str) -> str | None:
        for word in (text, text.rpartition(":")[2]):
            if word in self._runs:
                return word
            if word in self._executions:
                return self._executions[word]
        return None
