"""The replay host: each actor gets its recorded inputs in recorded order.

It is built as any other host is, and driven by a log's records in the place of time: a turn's
input is taken from its record, and what the turn sends and says is compared with what the log has
of it. Everything else that a turn depends on is made again: chance and ids from their names, the
store by the turns before, the clocks from the records' times. So what differs is a change in the
actor, or something that it reads outside its context.

A log of the trio host has every message that a turn sent. One of the simulator lacks those that
were still under way when it ended, so there what a turn sends besides is no difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from actors.actor import Commit, Unanswered
from actors.host import AGAIN, TURN_FAILED, HostContext, HostedWorld
from actors.mailbox import MAILBOX_LIMIT
from actors.simulator import Due
from logs.record import (
    Carried,
    EventRecord,
    FaultRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
    type_of,
)
from transports.clock import EPOCH_US, RIGHT_PPM
from transports.codec import as_json, one_of
from transports.envelope import Envelope
from transports.memory import Link
from transports.units import parse_offset
from transports.wiring import Wiring

UNKNOWN = 1 << 60  # ids from here on are those of messages that a log does not have

TURNS = (StartRecord, MessageRecord, TimerRecord, UnansweredRecord)


class Output(msgspec.Struct, frozen=True):
    """One thing that a turn let out: a message or an event, as JSON has it.

    `name` is the message's type or the event's name; `target` is empty for an event.
    """

    name: str
    target: str
    fields: Any
    reply_to: int = 0
    traceparent: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        return f"sends {self.name} to {self.target}" if self.target else f"says {self.name}"


class Difference(msgspec.Struct, frozen=True):
    """A turn that did not do what the log says: which record, and both versions.

    `index` is that of the first output in which they differ, None if they differ in `why` alone.
    """

    record: Record
    why: str
    logged: tuple[Output, ...] = ()
    made: tuple[Output, ...] = ()
    index: int | None = None


class Script:
    """What a section's records say of each turn: what it let out, and whether it ever was."""

    def __init__(self, records: Sequence[Record], *, truncated: bool = False) -> None:
        self.records = records
        self.whole = False  # whether every message that was sent has a record of its own
        self.said: dict[int, list[EventRecord]] = {}
        self.sent: dict[int, dict[int, Envelope[Any]]] = {}
        self.undone: dict[int, UndoneRecord] = {}
        self.silenced: set[int] = set()  # turns that were kept, and nothing of them left
        self.last: dict[str, int] = {}  # the last turn of each actor
        self.torn: set[int] = set()  # turns of which a truncated log may lack something
        for record in records:
            self._read(record)
        if truncated:
            self.torn.update(self.last.values())

    def _read(self, record: Record) -> None:
        if isinstance(record, TURNS):
            self.last[record.actor] = record.n
        if isinstance(record, EventRecord):
            self.said.setdefault(record.cause, []).append(record)
        elif isinstance(record, UndoneRecord):
            self.undone[record.cause] = record
        elif isinstance(record, Carried):
            self.whole = self.whole or isinstance(record, SendRecord)
            envelope = record.envelope
            if envelope.cause:
                self.sent.setdefault(envelope.cause, {}).setdefault(envelope.id, envelope)
        elif isinstance(record, FaultRecord):
            turn = self.last.get(record.actor)
            if turn is not None and record.fault == Commit.SILENCED.value:
                self.silenced.add(turn)

    def messages(self, turn: int) -> list[Envelope[Any]]:
        """Return the messages that a turn sent, as far as they are known, in order."""
        sent = self.sent.get(turn, {})
        return [sent[number] for number in sorted(sent)]


class ReplayContext(HostContext):
    """One actor that is replayed: what it sends takes the ids that the log has for it."""

    __slots__ = ("expected", "made", "said")

    _world: Replayer

    def reset(self) -> None:
        """Be as new, for the next replication."""
        super().reset()
        self.expected: deque[Envelope[Any]] = deque()
        self.made: list[Envelope[Any]] = []
        self.said: list[tuple[str, dict[str, Any]]] = []

    def keep(self, envelope: Envelope[Any]) -> None:
        """Keep what the turn sent, to be compared."""
        self.made.append(envelope)

    def _send(self, target: str, reply_to: int, body: Any, traceparent: str) -> Envelope[Any]:
        self.numbers = iter((self._number(target, reply_to, body),))
        return super()._send(target, reply_to, body, traceparent)

    def _number(self, target: str, reply_to: int, body: Any) -> int:
        """Return the message's id in the log, one that no log has if it isn't there."""
        if self.expected:
            next_one = self.expected[0]
            if (
                next_one.target == target
                and next_one.reply_to == reply_to
                and (self._world.whole or as_json(next_one.body) == as_json(body))
            ):
                return self.expected.popleft().id
        return next(self._world.unknown)

    def _say(self, record: int, event: str, fields: dict[str, Any]) -> None:
        self.said.append((event, fields))
        super()._say(record, event, fields)


class Replayer(HostedWorld):
    """Built as any host of a cell; `begin`, then `take` each record of a section in order."""

    context_type = ReplayContext
    contexts: dict[str, ReplayContext]  # type: ignore[assignment]  # this world makes no others

    def __init__(self, seed: int, cell: str) -> None:
        self.mailbox_limit = MAILBOX_LIMIT
        self.epoch_us = EPOCH_US
        self.script = Script(())
        self.edges: frozenset[str] = frozenset()  # programs: what they do is no turn of ours
        self.unknown: Iterator[int] = count(UNKNOWN)
        self._bodies: Any = None
        super().__init__(seed, cell)

    @property
    def whole(self) -> bool:
        """Whether the log has every message that was sent."""
        return self.script.whole

    # What contexts ask of their host: nothing happens by itself here

    def schedule(self, due: Due) -> None:
        """Do nothing: a record says when it fired."""

    def take_dues(self, context: HostContext) -> list[Due]:
        """Return what waits for an actor, which moves if its clock stands still."""
        return [*context.timers.values(), *context.open_questions.values()]

    def dues_of(self, name: str) -> Iterator[Due]:
        """Yield what waits for an actor, which comes at another time if its clock changes."""
        yield from self.take_dues(self.contexts[name])

    def at(self, due_us: int, action: Callable[[], Any]) -> None:
        """Do nothing: what faults did is in the records."""

    def finish(self) -> None:
        """Do nothing: the records end it."""

    def connect(self, link: Callable[[str, str], Link | None]) -> None:
        """Join nobody: what is sent is kept, to be compared."""
        for context in self.contexts.values():
            context.links = dict.fromkeys(self.contexts, context.keep)

    def interpose(self, wiring: Wiring) -> bool:
        """Do nothing: what connections lost is in the records."""
        return True

    def add_commit_hook(self, hook: Callable[[str, bool], Commit | None]) -> None:
        """Do nothing: which turns did not commit is in the records."""

    # Replaying

    def begin(self, replication: int, script: Script) -> None:
        """Be as before the first record of a section."""
        self.script = script
        self.unknown = count(UNKNOWN)
        self.replication = replication
        if self._bodies is None:
            kinds = {kind for one in self.contexts.values() for kind in one.handlers}
            self._bodies = one_of(kinds - {Unanswered})
        self._reset(replication, None)

    def take(self, record: Record) -> Difference | None:
        """Re-execute what a record stands for; return how its turn differs, None if it doesn't.

        A record of an actor that this cell does not have, or of an edge, counts as nothing.
        """
        context = self.contexts.get(record.actor)
        if context is None or record.actor in self.edges:
            return None
        self.now_us = record.t
        if isinstance(record, FaultRecord):
            self._strike(context, record)
            return None
        if not isinstance(record, TURNS):
            return None
        turn = self._turn(context, record)
        return turn if isinstance(turn, Difference) else self._run(context, record, turn)

    def _turn(self, context: ReplayContext, record: Record) -> Callable[[], Any] | Difference:
        """Return the call that takes a turn, or why the actor could not have had it."""
        actor = context.actor
        if isinstance(record, StartRecord):
            context.down = False
            if record.boot == context.boot:
                context.forget()  # after a commit that failed the same boot goes on
            else:
                context.boot = record.boot - 1
                context.begin_boot()
            context.traceparent = ""
            return lambda: actor.on_start(context)
        if isinstance(record, MessageRecord):
            return self._message(context, record)
        if isinstance(record, UnansweredRecord):
            due = context.open_questions.get(record.id)
            if due is None:
                return Difference(record, "no question of this id was open")
            asked = due[AGAIN]
            context.traceparent = asked.traceparent
            context.answered(record.id)
            name, body = record.actor, Unanswered(asked.body)
            told = Envelope(0, name, name, record.id, record.n, body, asked.traceparent)
            return lambda: context.handlers[Unanswered](context, told)
        assert isinstance(record, TimerRecord), "there are four kinds of turns"
        timer = context.timers.get(record.timer)
        if timer is None:
            return Difference(record, f"the timer {record.timer!r} was not set")
        again = timer[AGAIN]
        if again is not None:
            timer[0] = record.t + again[0]
            return lambda: context.ask_again(again)
        del context.timers[record.timer]
        context.traceparent = ""
        return lambda: actor.on_timer(context, record.timer)

    def _message(
        self, context: ReplayContext, record: MessageRecord
    ) -> Callable[[], Any] | Difference:
        envelope = self.typed(record.envelope)
        if envelope is None:
            kind = type_of(record.envelope.body)
            return Difference(record, f"its {kind} is no message of this version")
        if envelope.reply_to and not context.answered(envelope.reply_to):
            return Difference(record, "it answers a question that was not open")
        handler = context.handlers.get(type(envelope.body))
        if handler is None:
            return Difference(record, f"it has no handler for {type(envelope.body).__name__}")

        def take() -> None:
            context.traceparent = envelope.traceparent
            answer = handler(context, envelope)
            if answer is not None:
                context.reply(envelope, answer)

        return take

    def typed(self, envelope: Envelope[Any]) -> Envelope[Any] | None:
        """Return an envelope as it was sent, its body a message; None if there is none such."""
        if not isinstance(envelope.body, dict):
            return envelope
        try:
            body = msgspec.convert(envelope.body, self._bodies)
        except msgspec.ValidationError:
            return None
        return msgspec.structs.replace(envelope, body=body)

    def _run(
        self, context: ReplayContext, record: Record, take: Callable[[], Any]
    ) -> Difference | None:
        """Take a turn, and compare what it let out with what the log has of it."""
        script, number = self.script, record.n
        context.turn_us, context.record = record.t, number
        messages = script.messages(number)
        context.expected = deque(messages)
        context.made.clear()
        context.said.clear()
        undone = script.undone.get(number)
        try:
            take()
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told beside the log
            context.undo()
            if undone is not None or number in script.torn:
                return None
            return Difference(record, f"the turn raised {type(error).__name__}: {error}")
        if undone is not None:
            context.undo()
            failed = undone.why.startswith(TURN_FAILED)
            return Difference(record, "the turn failed, and no longer does") if failed else None
        context.release()
        if number in script.silenced:
            return None
        return self._compare(record, context, messages)

    def _compare(
        self, record: Record, context: ReplayContext, messages: list[Envelope[Any]]
    ) -> Difference | None:
        said = self.script.said.get(record.n, [])
        logged = [Output(one.event, "", one.fields) for one in said]
        made = [Output(event, "", as_json(fields)) for event, fields in context.said]
        logged += [_output(envelope) for envelope in messages]
        # Of a log that lacks messages, those that it has must be among them.
        every = self.whole or bool(context.expected)
        made += [_output(one) for one in context.made if every or one.id < UNKNOWN]
        if record.n in self.script.torn:
            made = made[: len(logged)]
        if logged == made:
            return None
        pairs = zip(logged, made, strict=False)
        index = next(
            (at for at, (one, other) in enumerate(pairs) if one != other),
            min(len(logged), len(made)),
        )
        return Difference(record, "the turn did something else", tuple(logged), tuple(made), index)

    def _strike(self, context: ReplayContext, record: FaultRecord) -> None:
        """Do to an actor what a fault did."""
        act = record.act
        if act == "kill":
            context.down, context.suspended_us = True, -1
            context.forget()
        elif act in ("suspend", "pause"):
            context.suspend(record.t, act == "suspend")
        elif act == "resume" and context.suspended_us >= 0:
            context.resume(record.t)
        elif act in ("unwritable", "writable"):
            context.store.writable = act == "writable"
        elif act.startswith("clock "):
            self.shift_clock(record.actor, record.fault, parse_offset(act[len("clock ") :]))
        elif act.startswith("rate "):
            rate_ppm = round(float(act[len("rate ") :]) * RIGHT_PPM)
            self.set_clock_rate(record.actor, record.fault, rate_ppm)


def _output(envelope: Envelope[Any]) -> Output:
    body = as_json(envelope.body)
    return Output(type_of(body), envelope.target, body, envelope.reply_to, envelope.traceparent)
