"""Stepping through a log: a position in it, and what every actor is there.

The position is a record that has just happened. From there one goes forwards, backwards, to a
number or a time, or to the next of a kind. What is shown of an actor comes of re-execution, one
actor at a time and only as far as it is looked at; what is under way comes from the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

import msgspec

from actors.checkpoints import Lane, SteppedReplayer, Write, lanes_of
from actors.host import AGAIN, WHAT
from actors.replayer import TURNS, UNKNOWN, Difference, Script
from logs.causes import Causes
from logs.read import Section
from logs.record import (
    DropRecord,
    Ended,
    EventRecord,
    FaultRecord,
    Record,
    SendRecord,
    UndoneRecord,
)
from scenarios.checks.history import Violation
from scenarios.replay import script_of
from scenarios.step_state import Change, changes, state_of
from transports.clock import RIGHT_PPM
from transports.envelope import Envelope

CAUSE: Final = WHAT + 1  # of what is due
STATES_LIMIT: Final = 2  # of a lane that are kept: before a turn and after it
KINDS: Final = ("fault", "violation", "change", "divergence", "event")


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A timer or an open question: when its time is up, None while its actor's clock stands still.

    `left_us` is how long that is from the position; `every_us` is a repeated question's period.
    """

    name: str
    due_us: int | None
    left_us: int
    every_us: int = 0


class DueChange(msgspec.Struct, frozen=True):
    """What a turn did to a timer or a question: `act` is set, reset, gone or fired."""

    act: str
    due: Due


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """A message under way to an actor; `end` is its delivery or loss, None if the log has none."""

    envelope: Envelope[Any]
    end: Record | None


class Sent(msgspec.Struct, frozen=True):
    """A message that a turn let out; whether the log has it."""

    envelope: Envelope[Any]
    in_log: bool


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor is at a position. `status` is up, down, suspended, paused or not started.

    `ahead_us` is by how much its wall clock goes wrong, `rate_ppm` how fast in millionths.
    """

    actor: str
    status: str
    boot: int
    state: dict[str, Any]  # its attributes as trees
    timers: dict[str, Due]
    questions: dict[int, Due]
    rows: dict[str, int]  # of each table
    ahead_us: int = 0
    rate_ppm: int = RIGHT_PPM


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What the record at a position did to its actor; `undone` says why it never was."""

    record: Record
    before: Moment
    after: Moment
    attributes: list[Change]
    writes: list[Write]
    timers: list[DueChange]
    questions: list[DueChange]
    sent: list[Sent]
    said: list[EventRecord]
    undone: str = ""
    difference: Difference | None = None

    @property
    def is_change(self) -> bool:
        """Whether it changed the actor's attributes or its store."""
        return bool(self.attributes or self.writes)


class Stepper:
    """A section's records, and a position among them.

    `make` builds the cell's replay host; `judge` returns the violations that it finds and is asked
    once, when they are first looked for. `left_out` are actors that can't be re-executed.
    """

    def __init__(
        self,
        section: Section,
        make: Callable[[], SteppedReplayer],
        judge: Callable[[Stepper], Sequence[Violation]] = lambda _stepper: (),
        left_out: Collection[str] = (),
    ) -> None:
        self.section = section
        self.records: Sequence[Record] = section.records
        self.causes = Causes(section.records)
        self.script: Script = script_of(section)
        self.lanes: Mapping[str, Lane] = lanes_of(
            section.records, self.script, make, section.header.replication, left_out
        )
        self.at = 0
        self._numbers = [record.n for record in section.records]
        self._times = [record.t for record in section.records]
        self._judge = judge
        self._states: dict[str, dict[int, dict[str, Any]]] = {}

    # Where

    @property
    def record(self) -> Record:
        """The record that has just happened."""
        return self.records[self.at]

    def forward(self) -> bool:
        """Go to the next record; False at the last."""
        return self._go(self.at + 1)

    def back(self) -> bool:
        """Go to the record before; False at the first."""
        return self._go(self.at - 1)

    def _go(self, at: int) -> bool:
        if not 0 <= at < len(self.records):
            return False
        self.at = at
        return True

    def to(self, number: int) -> bool:
        """Go to the record of this number; False if there is none, and nothing is changed."""
        at = bisect_left(self._numbers, number)
        return at < len(self._numbers) and self._numbers[at] == number and self._go(at)

    def to_time(self, t_us: int) -> bool:
        """Go to the last record up to a time; False if none is as early."""
        return self._go(bisect_right(self._times, t_us) - 1)

    def search(self, wanted: Callable[[int], bool], *, back: bool = False) -> bool:
        """Go to the next record, or the one before, whose index is wanted; False if there is none.

        The position stays where it is then.
        """
        return any(wanted(at) and self._go(at) for at in self.ahead(back=back))

    def ahead(self, *, back: bool) -> range:
        """Return the indexes after the position, or those before, the nearest first."""
        return range(self.at - 1, -1, -1) if back else range(self.at + 1, len(self.records))

    def wanted(self, kind: str, name: str = "") -> Callable[[int], bool]:
        """Return what tells whether a record is of a kind, or an actor's; ValueError for neither.

        `name` is that of an event, or whose changes are meant; it may be a pattern.
        """
        records = self.records
        if kind == "fault":
            return lambda at: isinstance(records[at], FaultRecord | DropRecord | UndoneRecord)
        if kind == "violation":
            return lambda at: records[at].n in self.violations
        if kind == "change":
            return self._changes(name)
        if kind == "divergence":
            return lambda at: self.difference_at(at) is not None
        if kind == "event":
            return lambda at: _says(records[at], name or "*")
        if kind in self.lanes or self.is_known(kind):
            return lambda at: records[at].actor == kind or _source(records[at]) == kind
        raise ValueError(kind)

    def is_known(self, actor: str) -> bool:
        """Whether the log has records of an actor, re-executed or not."""
        return any(record.actor == actor for record in self.records)

    def _changes(self, name: str) -> Callable[[int], bool]:
        def changed(at: int) -> bool:
            record = self.records[at]
            if name and not fnmatchcase(record.actor, name):
                return False
            turn = self.turn(at)
            return turn is not None and turn.is_change

        return changed

    # What

    @cached_property
    def violations(self) -> Mapping[int, list[Violation]]:
        """The violations, by the numbers of the records that prove them.

        One without any shows at the end, where what should have happened has not.
        """
        found: dict[int, list[Violation]] = {}
        for violation in self._judge(self):
            for number in violation.records or self._numbers[-1:]:
                found.setdefault(number, []).append(violation)
        return found

    def moment(self, actor: str, at: int | None = None) -> Moment | None:
        """Return what an actor is at a position, None if this cell has no such actor."""
        lane = self.lanes.get(actor)
        if lane is None:
            return None
        record = self.records[self.at if at is None else at]
        lane.go_to(record.n)
        return self._look(lane, record.t)

    def _look(self, lane: Lane, t_us: int) -> Moment:
        context = lane.context
        still = context.suspended_us >= 0 and context.clock_stops
        since_us = context.suspended_us if still else t_us
        questions = {
            number: _due(self._asked(number, due), due, since_us, still)
            for number, due in context.open_questions.items()
        }
        return Moment(
            actor=lane.name,
            status=_status(lane),
            boot=context.boot,
            state=self._state(lane),
            timers={name: _due(name, due, since_us, still) for name, due in context.timers.items()},
            questions=questions,
            rows={name: len(table) for name, table in lane.tables.items()},
            ahead_us=context.wall_error_us(t_us),
            rate_ppm=RIGHT_PPM if context.clock is None else context.clock.rate_ppm,
        )

    def _state(self, lane: Lane) -> dict[str, Any]:
        """Return the trees of a lane's attributes; the last two of each lane are kept.

        What was after a turn is before the next, and one position is looked at several times.
        """
        kept = self._states.setdefault(lane.name, {})
        found = kept.get(lane.at)
        if found is None:
            found = kept[lane.at] = state_of(lane.context.attributes()) if lane.started else {}
            if len(kept) > STATES_LIMIT:
                del kept[next(iter(kept))]
        return found

    def _asked(self, number: int, due: list[Any]) -> str:
        kind = type(due[AGAIN].body).__name__
        sent = self.script.sent.get(due[CAUSE], {}).get(number)
        return kind if sent is None else f"{kind} to {sent.target}"

    def turn(self, at: int | None = None) -> Turn | None:
        """Return what a record did; None if it is no turn, or of an actor that this cell has not.

        What faults do to an actor counts as a turn.
        """
        record = self.records[self.at if at is None else at]
        lane = self.lanes.get(record.actor)
        if lane is None or not isinstance(record, (*TURNS, FaultRecord)):
            return None
        lane.go_to(record.n - 1)
        before = self._look(lane, record.t)
        lane.take()
        after = self._look(lane, record.t)
        undone = self.script.undone.get(record.n)
        return Turn(
            record=record,
            before=before,
            after=after,
            attributes=changes(before.state, after.state),
            writes=list(lane.context.writes),
            timers=_dues_changed(before.timers, after.timers, _fired(record)),
            questions=_dues_changed(before.questions, after.questions, ""),
            sent=[Sent(one, one.id < UNKNOWN) for one in lane.context.made],
            said=self.script.said.get(record.n, []),
            undone="" if undone is None else undone.why,
            difference=lane.differences.get(record.n),
        )

    def difference_at(self, at: int) -> Difference | None:
        """Return how the turn of a record differs from the log, None if it doesn't or is none."""
        record = self.records[at]
        lane = self.lanes.get(record.actor)
        if lane is None or not isinstance(record, TURNS):
            return None
        if lane.missing(record.n):
            lane.go_to(record.n)
        return lane.differences.get(record.n)

    def rows(self, actor: str, table: str) -> Mapping[Any, Any] | None:
        """Return the rows of an actor's table at the position, None if there is no such table."""
        lane = self.lanes[actor]
        lane.go_to(self.record.n)
        return lane.tables.get(table)

    # Under way

    @cached_property
    def _ends(self) -> Mapping[str, _Ends]:
        """What became of the messages to each actor."""
        found: dict[str, list[Ended]] = {}
        for record in self.records:
            if isinstance(record, Ended):
                found.setdefault(record.envelope.target, []).append(record)
        return {name: _Ends(ends) for name, ends in found.items()}

    @cached_property
    def _lasting(self) -> Sequence[Envelope[Any]]:
        """The messages that are still under way at the end, as far as the log has them."""
        if not self.script.whole:
            return ()
        sent = {
            (record.envelope.source, record.envelope.id): record.envelope
            for record in self.records
            if isinstance(record, SendRecord)
        }
        for record in self.records:
            if isinstance(record, Ended):
                sent.pop((record.envelope.source, record.envelope.id), None)
        return list(sent.values())

    def mailbox(self, actor: str) -> Iterator[Mail]:
        """Yield what has been sent to an actor and has not come yet, in the order of its coming."""
        number = self.record.n
        if actor in self._ends:
            yield from self._ends[actor].after(number)
        for envelope in self._lasting:
            if envelope.target == actor and envelope.cause <= number:
                yield Mail(envelope=envelope, end=None)

    def missing(self, actor: str) -> int:
        """How many records of an actor are to be re-executed for the first time to be here."""
        lane = self.lanes.get(actor)
        return 0 if lane is None else lane.missing(self.record.n)

    def explore(self, until: int) -> None:
        """Re-execute everybody up to a record's number, so that going there is quick."""
        for lane in self.lanes.values():
            if lane.missing(until):
                lane.go_to(until)


class _Ends:
    """What became of one actor's messages, in the order of the log."""

    def __init__(self, records: Sequence[Ended]) -> None:
        self._records = records
        self._numbers = [record.n for record in records]
        # The first cause of all from here on: behind it nothing was sent yet, however long the log.
        causes = accumulate((record.envelope.cause for record in reversed(records)), min)
        self._first_causes = list(causes)[::-1]

    def after(self, number: int) -> Iterator[Mail]:
        """Yield what was sent up to a record and ends behind it."""
        for at in range(bisect_right(self._numbers, number), len(self._records)):
            if self._first_causes[at] > number:
                return
            end = self._records[at]
            if end.envelope.cause <= number:
                yield Mail(envelope=end.envelope, end=end)


def _says(record: Record, pattern: str) -> bool:
    return isinstance(record, EventRecord) and fnmatchcase(record.event, pattern)


def _source(record: Record) -> str:
    envelope = getattr(record, "envelope", None)
    return "" if envelope is None else str(envelope.source)


def _fired(record: Record) -> str:
    return str(getattr(record, "timer", ""))


def _status(lane: Lane) -> str:
    context = lane.context
    if not lane.started:
        return "not started"
    if context.down:
        return "down"
    if context.suspended_us >= 0:
        return "suspended" if context.clock_stops else "paused"
    return "up"


def _due(name: str, due: list[Any], now_us: int, still: bool) -> Due:
    again = due[AGAIN]
    every_us = again[0] if isinstance(again, tuple) else 0
    return Due(
        name=name,
        due_us=None if still else due[0],
        left_us=due[0] - now_us,
        every_us=every_us,
    )


def _dues_changed(
    before: Mapping[Any, Due], after: Mapping[Any, Due], fired: str
) -> list[DueChange]:
    """Return what was set, set anew, fired or taken back; `fired` is the timer of the turn."""
    found: list[DueChange] = []
    for key, old in before.items():
        if key == fired:
            found.append(DueChange("fired", old))
        elif key not in after:
            found.append(DueChange("gone", old))
    for key, due in after.items():
        known = before.get(key)
        if known is None or key == fired:
            found.append(DueChange("set", due))
        elif known.due_us != due.due_us:
            found.append(DueChange("reset", due))
    return found
