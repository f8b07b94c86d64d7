"""A replication as its host observed it: what every check reads.

The records of the log, the stores and timers at the end, and who plays which part. Of what actors
say of themselves only the events of servers and engines count: relays and agents are replaceable,
and a check must not depend on the honesty of what it judges.

Two readings of a message. What was *delivered* reached an actor whose turn committed. What was
*sent* left a turn that committed, whether it arrived, came late or was lost: it proves what its
sender had decided by then. A turn that was undone never was, so it sent nothing and said nothing.

An answer that did not come (`Unanswered`) is no evidence, neither of success nor of failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from actors.actor import Commit, Key
from actors.ledger import RUNS, TICKETS, Run, Ticket
from actors.messages import TERMINAL, GraphRun, RunGraphSession
from logs.keep import MemoryRecorder
from logs.record import (
    DropRecord,
    Ended,
    EventRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)

if TYPE_CHECKING:
    from scenarios.build import CellRun

Tables = Mapping[str, Mapping[Key, msgspec.Struct]]
Said = Ended

# Outcomes of a world that stopped between two turns: only there is its state at the end a state.
TURNS = (MessageRecord, StartRecord, TimerRecord, UnansweredRecord)
SETTLED = frozenset({"ended", "limit reached", "would sleep for ever"})


class Violation(msgspec.Struct, frozen=True):
    """A check that does not hold: its name, what was seen, the numbers of the proving records."""

    check: str
    sentence: str
    records: tuple[int, ...] = ()


class Story:
    """What is known of one run, each list in the order in which its actor said it.

    `agent` is whose run it is, None if neither an event nor a ticket tells.
    """

    __slots__ = ("agent", "answers", "ends", "executions", "queued", "run", "starts", "ticket")

    def __init__(self, run: str) -> None:
        self.run = run
        self.agent: str | None = None
        self.queued: EventRecord | None = None  # run.queued
        self.ticket: Said | None = None  # the first answer to the call that asked for the run
        self.starts: list[EventRecord] = []  # run.started
        self.ends: list[EventRecord] = []  # run.terminal
        self.executions: list[EventRecord] = []  # engine.started
        self.answers: list[Said] = []  # every GraphRun that a server sent

    @property
    def begun(self) -> Said | EventRecord | None:
        """The first evidence that the server has the run, None if it is only spoken of."""
        return self.queued or self.ticket

    def first(self, status: str | None = None) -> Said | EventRecord | None:
        """The first evidence that the run has ended, with this status if one is given."""
        found: list[Said | EventRecord] = []
        found += [end for end in self.ends if status in (None, end.fields.get("status"))][:1]
        for answer in self.answers:
            said = answer.envelope.body.status
            if said in TERMINAL and status in (None, said):
                found.append(answer)
                break
        return min(found, key=said_in, default=None)


class History:
    """One replication as the host observed it.

    `records` are a log's, in order; kinds that are not known count as nothing. `kinds` says which
    part each actor plays. `stores` has each actor's tables at the end (tables without rows may be
    left out), `timers` when each of its timers is due, in the microseconds of the records.
    `healed_us` is when the last fault was lifted, None if that never was; `converge_us` is how
    long the system then may take. Indexes are built when they are first asked for.
    """

    def __init__(  # noqa: PLR0913  one world has so many sides, and nearly each may be left out
        self,
        records: Sequence[Record],
        *,
        kinds: Mapping[str, str],
        configs: Mapping[str, Any] = {},
        stores: Mapping[str, Tables] = {},
        timers: Mapping[str, Mapping[str, int]] = {},
        ended_us: int = 0,
        healed_us: int | None = None,
        converge_us: int | None = None,
        outcome: str = "ended",
    ) -> None:
        self.records = records
        self.kinds = kinds
        self.configs = configs
        self.stores = stores
        self.timers = timers
        self.ended_us = ended_us
        self.healed_us = healed_us
        self.converge_us = converge_us
        self.outcome = outcome

    # Who

    def actors(self, kind: str) -> list[str]:
        """The names of those who play a part: server, relay, engine, agent or owner."""
        return [name for name, played in self.kinds.items() if played == kind]

    @cached_property
    def down(self) -> frozenset[str]:
        """The actors that were killed and have not started again by the end."""
        down: set[str] = set()
        for record in self.records:
            if getattr(record, "act", None) == "kill":
                down.add(record.actor)
            elif type(record) is StartRecord:
                down.discard(record.actor)
        return frozenset(down)

    @cached_property
    def silenced(self) -> frozenset[int]:
        """The turns that committed, and whose actor was killed before it could say anything."""
        found: set[int] = set()
        last: dict[str, int] = {}
        for record in self.records:
            if isinstance(record, FaultRecord) and record.fault == Commit.SILENCED.value:
                found.add(last[record.actor])
            elif isinstance(record, TURNS):
                last[record.actor] = record.n
        return frozenset(found)

    # What

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.records, self.kinds)

    @property
    def undone(self) -> frozenset[int]:
        """The turns that did not commit."""
        return self._index.undone

    def delivered(self, kind: type[Any]) -> Sequence[MessageRecord]:
        """The messages of a type that reached an actor whose turn committed."""
        found = self._index.messages.get(kind, ())
        undone = self._index.undone
        if undone:
            return [record for record in found if record.n not in undone]
        return found

    def sent(self, kind: type[Any]) -> Sequence[Said]:
        """The messages of a type that were sent, once each, in the order of their records."""
        return self._index.sent(kind)

    def said_by(self, part: str, kind: type[Any]) -> list[Said]:
        """The messages of a type that actors of a part sent."""
        kinds = self.kinds
        return [each for each in self.sent(kind) if kinds.get(each.envelope.source) == part]

    def events(self, name: str) -> Sequence[EventRecord]:
        """The events of a name that a server or an engine logged in a turn that committed.

        Those of a run (`run.`, `engine.`) have the field `run`; a user's own without it is none.
        """
        return self._index.events.get(name, ())

    def turn(self, number: int) -> Record | None:
        """The record of this number, None if there is none."""
        if 0 < number <= len(self.records):
            record = self.records[number - 1]
            if record.n == number:
                return record
        return self._by_number.get(number)

    @cached_property
    def _by_number(self) -> dict[int, Record]:
        return {record.n: record for record in self.records}

    def question(self, answer: Said) -> Said | None:
        """The question that a message answers, None for no question or one that is not on record.

        Most are answered in the turn that they cause, so that is looked at first.
        """
        envelope = answer.envelope
        if not envelope.reply_to:
            return None
        turn = self.turn(envelope.cause)
        if type(turn) is MessageRecord:
            asked = turn.envelope
            if asked.id == envelope.reply_to and asked.source == envelope.target:
                return turn
        return self._by_id.get((envelope.target, envelope.reply_to))

    @cached_property
    def _by_id(self) -> dict[tuple[str, int], Said]:
        found: dict[tuple[str, int], Said] = {}
        for kind in self._index.kinds():
            for each in self.sent(kind):
                found.setdefault((each.envelope.source, each.envelope.id), each)
        return found

    @cached_property
    def stories(self) -> dict[str, Story]:
        """What is known of each run that a server or an engine spoke of."""
        stories: dict[str, Story] = _Stories()
        for record in self.events("run.queued"):
            story = stories[record.fields["run"]]
            if story.queued is None:
                story.queued, story.agent = record, record.fields.get("agent")
        for record in self.events("run.started"):
            stories[record.fields["run"]].starts.append(record)
        for record in self.events("run.terminal"):
            stories[record.fields["run"]].ends.append(record)
        for record in self.events("engine.started"):
            stories[record.fields["run"]].executions.append(record)
        for answer in sorted(self.said_by("server", GraphRun), key=said_in):
            story = stories[answer.envelope.body.command_id]
            story.answers.append(answer)
            question = None if story.ticket else self.question(answer)
            if question is not None and type(question.envelope.body) is RunGraphSession:
                story.ticket = answer
                story.agent = story.agent or question.envelope.source
        return dict(stories)  # one that grows no more

    # The end

    @property
    def settled(self) -> bool:
        """Whether the world stopped between two turns, so that what stands at its end counts."""
        return self.outcome in SETTLED

    def rows(self, part: str, table: str) -> Iterator[tuple[str, Any]]:
        """Each actor of a part with each row of this table of its store; none if not settled."""
        if self.settled:
            for name in self.actors(part):
                for row in self.stores.get(name, {}).get(table, {}).values():
                    yield name, row

    @cached_property
    def runs_at_end(self) -> list[tuple[str, Any]]:
        """Each server with each of its rows of runs at the end.

        A user's own kind of row, one that is none of ours, is left out. Of type Any, since a row
        that breaks its own types is what a check looks for.
        """
        return [(name, row) for name, row in self.rows("server", RUNS.name) if isinstance(row, Run)]

    @cached_property
    def run_rows(self) -> dict[str, Any]:
        """The servers' rows of runs at the end, by run."""
        return {row.command_id: row for _, row in self.runs_at_end}

    @property
    def keeps_runs(self) -> bool:
        """Whether the servers' stores at the end are known, and keep runs as ours do.

        A key outlives its run, so where there ever was one there is a row of one or the other.
        """
        tickets = (row for _, row in self.rows("server", TICKETS.name))
        return bool(self.run_rows) or any(isinstance(row, Ticket) for row in tickets)

    def due_us(self, since_us: int) -> int | None:
        """When what began at a time must be over, None if no such bound was set or can be judged.

        The bound is counted from the last fault's end, for what began later from its beginning.
        """
        if self.healed_us is None or self.converge_us is None or not self.settled:
            return None
        due_us = max(self.healed_us, since_us) + self.converge_us
        return due_us if due_us <= self.ended_us else None


Check = Callable[[History], Iterator[Violation]]


def said_in(record: Said | EventRecord) -> int:
    """The number of the turn in which something was said; of a record without a cause its own."""
    return record.cause or record.n


class _Stories(dict[str, Story]):
    """The stories by run; one that is asked for begins."""

    def __missing__(self, run: str) -> Story:
        story = self[run] = Story(run)
        return story


class _Index:
    """The records by what they are: one pass over all of them."""

    def __init__(self, records: Sequence[Record], kinds: Mapping[str, str]) -> None:
        self.messages: dict[type[Any], list[MessageRecord]] = {}
        self.events: dict[str, list[EventRecord]] = {}
        self._strays: dict[type[Any], list[Said]] = {}  # what came late or not at all
        self._sent: dict[type[Any], list[Said]] = {}
        undone: set[int] = set()
        trusted = {name for name, part in kinds.items() if part in ("server", "engine")}
        for record in records:
            if isinstance(record, MessageRecord):
                self.messages.setdefault(type(record.envelope.body), []).append(record)
            elif isinstance(record, EventRecord):
                if record.actor in trusted and (
                    "run" in record.fields or not record.event.startswith(("run.", "engine."))
                ):
                    self.events.setdefault(record.event, []).append(record)
            elif isinstance(record, LateRecord | DropRecord):
                self._strays.setdefault(type(record.envelope.body), []).append(record)
            elif isinstance(record, UndoneRecord):
                undone.add(record.cause)
        self.undone = frozenset(undone)
        if undone:
            for name, events in self.events.items():
                self.events[name] = [event for event in events if event.cause not in undone]

    def kinds(self) -> list[type[Any]]:
        """The types of message that are on record."""
        return list(dict.fromkeys([*self.messages, *self._strays]))

    def sent(self, kind: type[Any]) -> list[Said]:
        """The messages of a type, once each however often they came."""
        found = self._sent.get(kind)
        if found is None:
            every = [*self.messages.get(kind, ()), *self._strays.get(kind, ())]
            every.sort(key=lambda record: record.n)
            once: dict[tuple[str, int], Said] = {}
            for record in every:
                once.setdefault((record.envelope.source, record.envelope.id), record)
            found = self._sent[kind] = list(once.values())
        return found


def history_of(
    cell: CellRun,
    recorder: MemoryRecorder,
    *,
    healed_us: int | None = None,
    converge_us: int | None = None,
    outcome: str = "ended",
) -> History:
    """Return the history of the replication that a cell has just run."""
    contexts = cell.simulator.contexts
    cast = [one for one in cell.scenario.cast if one.name in contexts]
    return History(
        recorder.records,
        kinds={one.name: one.kind for one in cast},
        configs={one.name: one.config for one in cast},
        stores={name: context.store.snapshot() for name, context in contexts.items()},
        timers={
            name: {timer: due[0] for timer, due in context.timers.items()}
            for name, context in contexts.items()
        },
        ended_us=cell.simulator.now_us,
        healed_us=healed_us,
        converge_us=converge_us,
        outcome=outcome,
    )
