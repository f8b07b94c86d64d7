"""The stage on which an actor is tried: its peers, built in or scripted, and all that was said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, cast

import msgspec

from actors.actor import Commit, Context, Handler, Place, Session, Step, Unanswered
from actors.chance import Durations
from actors.errors import SimulationError
from actors.guarded import simulator
from actors.messages import TERMINAL, GraphRun, Message
from actors.polls import parse_polls
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from scenarios.cast import BUILT_IN
from scenarios.spec import Kind
from transports.envelope import Envelope
from transports.faults.drop import Drop
from transports.faults.fault import World
from transports.memory import Link

S = 1_000_000  # a second in microseconds
HOUR_US = 3_600 * S  # what an actor has for a story that takes built-in ones three minutes
CALM_US = 120 * S  # how long the stage is watched after everybody has finished
TURNS_TRIED = 60  # turns to die at; a relay has some 40 until its first run has ended
TURNS_LIMIT = 50_000  # in one story; an actor that goes round within one instant has an end here
SESSION = Session(id="gs_" + "0" * 32, name="demo", slug="demo", project="default", relay="relay")

BodyT = TypeVar("BodyT")
_FIVE = Durations.parse("5s")
_PEERS: Mapping[Kind, Mapping[str, Any]] = {
    "server": {"reconcile": True},
    "relay": {"phase_us": _FIVE},
    "engine": {"duration_us": Durations.parse("60s")},
    "agent": {"poll": parse_polls("every 10s")},
    "owner": {},
}


class EndlessError(SimulationError):
    """A story took more turns than any story needs."""


class Finding(msgspec.Struct, frozen=True):
    """A promise that was not kept: its words, and what was seen. A warning may have a reason."""

    promise: str
    seen: str
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.promise}: {self.seen}"


class Subject(NamedTuple):
    """The actor that is tried: its part, its class, and its config."""

    kind: Kind
    actor_class: Callable[[Any, Place], Any]
    config: Any


Trial = Callable[[Subject], Iterator[str]]


class Promise(NamedTuple):
    """A sentence, and the trial that yields what is seen when it is broken."""

    words: str
    trial: Trial
    level: Literal["error", "warning"] = "error"


class Said(NamedTuple):
    """One message that was delivered."""

    at_us: int
    envelope: Envelope[Any]


class Record:
    """A recorder of all that happens, equal for equal stories."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.said: list[Said] = []
        self.lost: list[Envelope[Any]] = []
        self.finished: list[str] = []

    def _turn(self, *line: Any) -> int:
        self.lines.append(line)
        if len(self.lines) > TURNS_LIMIT:
            raise EndlessError(f"there is no end: {TURNS_LIMIT} turns by {line[1] / S:g} s")
        return len(self.lines)

    def start(self, t: int, actor: str, boot: int) -> int:
        """Record that an actor begins a boot."""
        return self._turn("start", t, actor, boot)

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        """Record a delivery."""
        self.said.append(Said(t, envelope))
        return self._turn("message", t, envelope)

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        """Record that a timer fires."""
        return self._turn("timer", t, actor, cause, timer)

    def unanswered(self, t: int, actor: str, cause: int, id: int) -> int:  # noqa: A002 - the field
        """Record that a question's time is up."""
        return self._turn("unanswered", t, actor, cause, id)

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        """Record an answer that nobody waits for."""
        self._turn("late", t, envelope)

    def send(self, t: int, envelope: Envelope[Any]) -> None:
        """Record that a message is sent."""
        self._turn("send", t, envelope)

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        """Record a message that is lost on the way."""
        self.lost.append(envelope)
        self._turn("drop", t, fault, envelope)

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor."""
        self._turn("fault", t, actor, fault, act)

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        """Record that a turn did not commit."""
        self._turn("undone", t, actor, turn, why)

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        """Record what an actor says of itself."""
        self._turn("event", t, actor, cause, event, dict(fields))

    def of(self, kind: type[BodyT]) -> list[BodyT]:
        """Return the delivered messages of a type, in order."""
        return [each.envelope.body for each in self.said if isinstance(each.envelope.body, kind)]

    def when(self, kind: type[Any]) -> list[int]:
        """Return when the messages of a type were delivered."""
        return [each.at_us for each in self.said if isinstance(each.envelope.body, kind)]

    def endings(self) -> dict[str, GraphRun]:
        """Return the terminal answer that an agent had first for each run."""
        found: dict[str, GraphRun] = {}
        for answer in self.of(GraphRun):
            if answer.status in TERMINAL:
                found.setdefault(answer.command_id, answer)
        return found


class Script:
    """A peer that says its lines at their times and keeps what it hears.

    A line is (seconds, target, body); a body that depends on what was heard is a function of the
    list of what was heard. What has a reply in `replies` is answered, by a function of the message.
    """

    def __init__(
        self,
        *lines: tuple[float, str, Any],
        replies: Mapping[type[Any], Callable[[Any], Any]] | None = None,
    ) -> None:
        self.lines = lines
        self.replies = replies or {}
        self.handlers: Mapping[type[Any], Handler] = dict.fromkeys(every_message(), self.on_message)

    def on_start(self, context: Context) -> None:
        """Begin with an empty memory."""
        self.heard: list[Any] = []
        self.answers: dict[int, Any] = {}  # by the number of the line
        self.asked: dict[int, int] = {}
        for number, (at_s, _, _) in enumerate(self.lines):
            context.set_timer(str(number), int(at_s * S))

    def on_timer(self, context: Context, timer: str) -> None:
        """Say a line; every line is a question whose answer is kept, if there is one."""
        _, target, body = self.lines[int(timer)]
        said = body(self.heard) if callable(body) else body
        self.asked[context.request(target, said, 5 * S)] = int(timer)

    def on_message(self, context: Context, envelope: Envelope[Any]) -> None:
        """Keep what is heard, and answer it as the script says."""
        body = envelope.body
        line = self.asked.get(envelope.reply_to)
        if line is not None:
            self.answers[line] = body
        if not isinstance(body, Unanswered):
            self.heard.append(body)
        reply = self.replies.get(type(body))
        if reply is not None:
            context.reply(envelope, reply(body))


def every_message() -> list[type[Any]]:
    """Return every message type that actors understand, and the stand-in for an answer."""
    return [*Message.__subclasses__(), Unanswered]


class Death:
    """A commit hook that kills an actor at one of its turns, counted from 1, or at none."""

    def __init__(self, actor: str, turn: int = 0, verdict: Commit = Commit.CRASHED) -> None:
        self.actor = actor
        self.turn = turn
        self.verdict = verdict
        self.turns = 0

    def __call__(self, context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        """Decide what becomes of a turn."""
        if context.name != self.actor:
            return Commit.DONE
        self.turns += 1
        return self.verdict if self.turns == self.turn else Commit.DONE


class Play(NamedTuple):
    """How a story is played, besides the actor that is tried."""

    agent: Mapping[str, Any] = {}  # the built-in agent's config, where it differs
    engine: Mapping[str, Any] = {}
    steps: tuple[Step, ...] = ()
    late_us: Mapping[tuple[str, str], int] = {}  # the latency of a link, by source and target
    lost: Drop | None = None
    death: Death | None = None
    scripts: Mapping[str, Script] = {}  # in the places of built-in peers

    def stage(self, subject: Subject) -> Simulator:
        """Build the world: the subject in its part, scripts in theirs, built-in peers elsewhere."""
        sim = simulator(1, "promises", self.death)
        config: dict[Kind, Mapping[str, Any]] = {"agent": self.agent, "engine": self.engine}
        for kind, peer in BUILT_IN.items():
            place = Place(name=kind, sessions=(SESSION,), steps=self.steps)
            if kind == subject.kind:
                sim.add(kind, subject.actor_class(subject.config, place))
            elif kind in self.scripts:
                sim.add(kind, self.scripts[kind])
            elif not self.scripts and (kind != "owner" or self.steps):
                fields = {**_PEERS[kind], **config.get(kind, {})}
                sim.add(kind, peer(peer.Config(**fields), place))
        for name, script in self.scripts.items():
            if name not in BUILT_IN:
                sim.add(name, script)
        judges = [] if self.lost is None else [self.lost.at_work()]

        def link(source: str, target: str) -> Link | None:
            here = [judge for judge in judges if subject.kind in {source, target}]
            late_us = self.late_us.get((source, target))
            if not here and late_us is None:
                return None
            latency = None if late_us is None else lambda: late_us
            return sim.new_link(latency_us=latency, judges=here)

        sim.connect(link)
        for judge in judges:
            judge.attach(cast(World, sim), ())  # a drop asks for the time alone
        sim.on_begin.append(lambda: sim.at(HOUR_US, sim.finish))
        return sim

    def run(self, subject: Subject, *replications: int) -> Record:
        """Play the story, and return the record of the last of these replications."""
        sim = self.stage(subject)
        busy = {name for name in ("agent", "owner") if name in sim.contexts} - set(self.scripts)
        record = Record()

        def finished(name: str) -> None:
            record.finished.append(name)
            if busy and busy.issubset(record.finished):
                sim.at(sim.now_us + CALM_US, sim.finish)

        sim.on_done = finished
        for replication in replications or (0,):
            record = Record()
            sim.run(replication, record)
        return record


def step(at_s: float, act: str) -> Step:
    """Return something that the owner does."""
    return Step(at_us=int(at_s * S), act=act, session=SESSION.id)
