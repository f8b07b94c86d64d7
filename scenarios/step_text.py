"""What the stepper shows, as lines of text: the same for a pipe and for a screen.

A line that marks something begins with a sign, so that nothing is said by colour alone: `*` what
changed, `+` what is new, `-` what is gone, `!` what is wrong. Its `mark` is for who has colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from actors.checkpoints import Write
from actors.replayer import Output
from logs.record import (
    DropRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    SendRecord,
    UnansweredRecord,
)
from logs.words import Narrator, id_text, seconds, short, way
from scenarios.render import plural
from scenarios.step_state import Change, changes, text
from scenarios.stepper import Due, DueChange, Mail, Moment, Sent, Stepper, Turn
from transports.clock import RIGHT_PPM
from transports.codec import as_json

Mark = Literal["", "head", "dim", "changed", "new", "gone", "wrong"]
SIGNS: Final[dict[Mark, str]] = {"changed": "*", "new": "+", "gone": "-", "wrong": "!"}
VALUE_LIMIT_CHARS: Final = 400  # of one value; lines are cut to their width where they are shown
ROWS_LIMIT: Final = 100  # of a table; the rest is counted
CAUSES_LIMIT: Final = 100  # of a chain, whose last ones are looked at first
OUTPUTS_LIMIT: Final = 5  # of what a turn that differs let out


class Line(NamedTuple):
    """One line, not cut yet, and how it is meant."""

    text: str
    mark: Mark = ""


def line(words: str, mark: Mark = "") -> Line:
    """Return an indented line with its sign."""
    return Line(f"{SIGNS.get(mark, ' ')} {words}", mark)


class Words:
    """Puts a stepper's records into words, in any order."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._narrator = Narrator()

    def of(self, record: Record) -> str:
        """Return what happened, without number, time and actor."""
        if isinstance(record, UnansweredRecord):
            asked = self._stepper.script.sent.get(record.cause, {}).get(record.id)
            if asked is not None:  # which the narrator must have heard of
                self._narrator.words(SendRecord(0, record.t, record.actor, 0, asked))
        return self._narrator.words(record)

    def line(self, record: Record) -> str:
        """Return a record in one line: number, time, actor, what happened."""
        return f"{record.n}  {seconds(record.t)}  {record.actor}  {self.of(record)}"


# Where


def where(stepper: Stepper, words: Words) -> Iterator[Line]:
    """Say at which record the position is, and what is wrong there."""
    record = stepper.record
    yield Line(words.line(record), "head")
    yield from wrongs(stepper)


def wrongs(stepper: Stepper) -> Iterator[Line]:
    """Say what is wrong with the record at the position."""
    record = stepper.record
    undone = stepper.script.undone.get(record.n)
    if undone is not None:
        yield line(f"undone in {undone.n}: {undone.why}", "wrong")
    if record.actor not in stepper.lanes:
        yield not_re_executed(record.actor)
    for violation in stepper.violations.get(record.n, ()):
        yield line(f"violates {violation.check}: {violation.sentence}", "wrong")
    difference = stepper.difference_at(stepper.at)
    if difference is not None:
        yield line(f"the re-execution differs: {difference.why}", "wrong")
        if difference.index is not None:
            yield from _outputs("log", difference.logged[difference.index :])
            yield from _outputs("re-execution", difference.made[difference.index :])


def not_re_executed(actor: str) -> Line:
    """Say why nothing is known of an actor but its records."""
    return line(f"{actor} is not re-executed: a program, or no actor of this cell", "dim")


def _outputs(whose: str, outputs: Sequence[Output]) -> Iterator[Line]:
    if not outputs:
        yield line(f"  {whose}: nothing more", "wrong")
    for output in outputs[:OUTPUTS_LIMIT]:
        yield line(f"  {whose}: {output} {text(output.fields, VALUE_LIMIT_CHARS)}", "wrong")
    if len(outputs) > OUTPUTS_LIMIT:
        yield line(f"  {whose}: and {len(outputs) - OUTPUTS_LIMIT:,} more", "wrong")


# An actor


def state(stepper: Stepper, moment: Moment, turn: Turn | None) -> Iterator[Line]:
    """Show an actor's attributes; `turn` is the one at the position, whose changes are marked."""
    record = stepper.record
    yield Line(
        f"{moment.actor} is {moment.status}, boot {moment.boot}, after {record.n} "
        f"at {seconds(record.t)}",
        "head",
    )
    if moment.status == "down":
        yield line("what it knew when it was killed; only its store stays", "dim")
    yield from _clock_notes(moment)
    yield from _lane_notes(stepper, moment.actor)
    if not moment.state:
        words = (
            "it has no attributes"
            if moment.boot or moment.status != "not started"
            else ("its attributes begin with its start")
        )
        yield line(words, "dim")
        return
    mine = turn is not None and turn.record.actor == moment.actor
    old = turn.before.state if turn is not None and mine else moment.state
    width = max(map(len, moment.state))
    for name, value in moment.state.items():
        shown = f"{name:<{width}}  {text(value, VALUE_LIMIT_CHARS)}"
        if name not in old:
            yield line(shown, "new")
        elif changes({name: old[name]}, {name: value}):
            yield line(f"{shown}  (was {text(old[name], VALUE_LIMIT_CHARS)})", "changed")
        else:
            yield line(shown)
    for name in old:
        if name not in moment.state:
            yield line(f"{name:<{width}}  is gone", "gone")


def _clock_notes(moment: Moment) -> Iterator[Line]:
    if moment.ahead_us:
        side = "ahead" if moment.ahead_us > 0 else "behind"
        yield line(f"its wall clock is {seconds(abs(moment.ahead_us))} {side}", "dim")
    if moment.rate_ppm != RIGHT_PPM:
        yield line(f"its clocks go at {moment.rate_ppm / RIGHT_PPM:.10g} of the right rate", "dim")


def _clock_changes(before: Moment, after: Moment) -> Iterator[Line]:
    known = list(_clock_notes(before))
    yield from (one for one in _clock_notes(after) if one not in known)
    if before.ahead_us and not after.ahead_us:
        yield line("its wall clock is right again")
    if before.rate_ppm != RIGHT_PPM == after.rate_ppm:
        yield line("its clocks go at the right rate again")


def _lane_notes(stepper: Stepper, actor: str) -> Iterator[Line]:
    lane = stepper.lanes[actor]
    if lane.uncopyable:
        yield line(f"it can't be copied, so going back takes longer: {lane.uncopyable}", "dim")
    if lane.differences:
        first = min(lane.differences)
        if first < stepper.record.n:
            yield line(f"its re-execution differs from the log since {first}", "wrong")


def changed(turn: Turn | None, stepper: Stepper, words: Words) -> Iterator[Line]:
    """Show what the record at the position changed."""
    record = stepper.record
    yield from where(stepper, words)
    if turn is None:
        cause = stepper.causes.record(record.cause)
        if isinstance(record, LateRecord):
            yield line("nobody is told: its question was over", "dim")
        elif isinstance(record, MessageRecord | FaultRecord) or cause is None:
            yield line("nothing is known of what it did", "dim")
        else:
            yield line(f"part of turn {cause.n}: {words.of(cause)}", "dim")
        return
    found = [
        *map(_change, turn.attributes),
        *(each for write in turn.writes for each in _write(write)),
        *map(_due_change, turn.timers),
        *map(_due_change, turn.questions),
        *map(_sent, turn.sent),
        *(line(f"says {words.of(event)}") for event in turn.said),
    ]
    if turn.before.status != turn.after.status:
        was = f"{record.actor} is {turn.after.status}  (was {turn.before.status})"
        found.insert(0, line(was, "changed"))
    found += _clock_changes(turn.before, turn.after)
    yield from found or [line("nothing changed", "dim")]


def _change(change: Change) -> Line:
    if change.is_new:
        return line(f"{change.path} = {text(change.new, VALUE_LIMIT_CHARS)}", "new")
    if change.is_gone:
        return line(f"{change.path}, which was {text(change.old, VALUE_LIMIT_CHARS)}", "gone")
    old, new = text(change.old, VALUE_LIMIT_CHARS), text(change.new, VALUE_LIMIT_CHARS)
    return line(f"{change.path} = {new}  (was {old})", "changed")


def _write(write: Write) -> Iterator[Line]:
    place = f"store {write.table}/{_key(write.key)}"
    if write.old is None:
        yield line(f"{place} = {text(write.new, VALUE_LIMIT_CHARS)}", "new")
    elif write.new is None:
        yield line(f"{place}, which was {text(write.old, VALUE_LIMIT_CHARS)}", "gone")
    else:
        for change in changes({place: write.old}, {place: write.new}):
            yield _change(change)


def _key(key: Any) -> str:
    return "/".join(map(short, (key,) if isinstance(key, str) else key))


def _due_change(change: DueChange) -> Line:
    due = change.due
    question = " to " in due.name or due.name[:1].isupper()
    what = f"question {due.name}" if question else f"timer {short(due.name)}"
    if change.act == "fired":
        return line(f"{what} fires")
    if change.act == "gone":
        return line(f"{what} is over" if question else f"{what} is taken back", "gone")
    verb = "is open" if question else "is set"
    return line(f"{what} {verb}, {_when(due)}", "new" if change.act == "set" else "changed")


def _sent(sent: Sent) -> Line:
    words = f"sends {way(_as_logged(sent.envelope))}"
    return line(words if sent.in_log else f"{words}  (nothing of it is in the log)")


def _as_logged(envelope: Any) -> Any:
    """Return an envelope whose body is as a log has it, which is how messages are told."""
    if isinstance(envelope.body, dict):
        return envelope
    return msgspec.structs.replace(envelope, body=as_json(envelope.body))


# Under way


def mailbox(stepper: Stepper, actor: str) -> Iterator[Line]:
    """Show what has been sent to an actor and has not come yet."""
    found = list(stepper.mailbox(actor))
    yield Line(f"{len(found)} under way to {actor}", "head")
    for mail in found:
        yield line(f"from {way(mail.envelope)}  sent in {mail.envelope.cause}, {_end(mail)}")


def _end(mail: Mail) -> str:
    end = mail.end
    if end is None:
        return "still under way when the log ends"
    when = f"{end.n} at {seconds(end.t)}"
    if isinstance(end, DropRecord):
        return f"lost in {when} by {end.fault}"
    return f"too late in {when}" if isinstance(end, LateRecord) else f"delivered in {when}"


def timers(moment: Moment) -> Iterator[Line]:
    """Show an actor's timers and open questions, the next one first."""
    yield Line(
        f"{plural(len(moment.timers), 'timer')}, {plural(len(moment.questions), 'open question')}",
        "head",
    )
    if moment.status == "suspended":
        yield line("its clock stands still", "dim")
    named = [(f"timer {short(due.name)}", due) for due in moment.timers.values()]
    named += [
        (f"question {id_text(number) if number < 1 << 60 else '?'} {due.name}", due)
        for number, due in moment.questions.items()
    ]
    for name, due in sorted(named, key=lambda one: one[1].left_us):
        yield line(f"{name}, {_when(due)}")


def _when(due: Due) -> str:
    every = f", then every {seconds(due.every_us)}" if due.every_us else ""
    left = seconds(max(due.left_us, 0))
    if due.due_us is None:
        return f"due {left} after it goes on{every}"
    return f"due at {seconds(due.due_us)}, in {left}{every}"


def store(moment: Moment) -> Iterator[Line]:
    """Show how many rows each of an actor's tables has."""
    yield Line(f"the store of {moment.actor} has {plural(len(moment.rows), 'table')}", "head")
    for name, rows in moment.rows.items():
        yield line(f"{name}: {plural(rows, 'row')}")


def table(stepper: Stepper, moment: Moment, name: str, turn: Turn | None) -> Iterator[Line]:
    """Show the rows of a table; those that the turn at the position wrote are marked."""
    rows = stepper.rows(moment.actor, name) or {}
    yield Line(f"{name} of {moment.actor}: {plural(len(rows), 'row')}", "head")
    writes: dict[Any, Write] = {}
    if turn is not None and turn.record.actor == moment.actor:
        writes = {write.key: write for write in turn.writes if write.table == name}
    for number, (key, row) in enumerate(rows.items()):
        if number == ROWS_LIMIT:
            yield line(f"and {len(rows) - ROWS_LIMIT:,} more", "dim")
            break
        write = writes.get(key)
        mark: Mark = "" if write is None else "new" if write.old is None else "changed"
        yield line(f"{_key(key)}  {text(row, VALUE_LIMIT_CHARS)}", mark)
    for key, write in writes.items():
        if write.new is None:
            yield line(f"{_key(key)}  {text(write.old, VALUE_LIMIT_CHARS)}", "gone")


def causes(stepper: Stepper, words: Words) -> Iterator[Line]:
    """Show the chain of records that led to the position, the first cause first.

    A relay that polls for days has a long one: its end is shown.
    """
    chain = stepper.causes.chain(stepper.record.n)
    more = f", the last {CAUSES_LIMIT} are" if len(chain) > CAUSES_LIMIT else ""
    yield Line(f"{plural(len(chain), 'record')} led here{more}", "head")
    for record in chain[-CAUSES_LIMIT:]:
        yield line(words.line(record))


def cause_in_short(stepper: Stepper, words: Words) -> str:
    """Return the position's cause in one line, "" for none."""
    cause = stepper.causes.record(stepper.record.cause)
    if cause is None:
        return ""
    return f"because of {cause.n} {cause.actor}: {words.of(cause)}"
