"""What the tests of actors stand on: a context that records, and a cell of real actors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from actors.actor import Actor, Place, Session, Step, Unanswered
from actors.agent import Agent
from actors.engine import Engine
from actors.graphs.seam import VmPort
from actors.guarded import CommitHook, simulator
from actors.owner import Owner
from actors.relay import Relay
from actors.server import Server
from actors.simulator import Simulator
from actors.stores.memory import MemoryStore, Undo
from actors.streams import HashedStream
from transports.clock import EPOCH_US
from transports.envelope import Envelope
from transports.faults.fault import Working, World
from transports.memory import Link
from transports.traceparent import accepted

S = 1_000_000  # a second in microseconds
SESSION = Session(id="gs_" + "0" * 32, name="demo", slug="demo", project="default", relay="relay")
BodyT = TypeVar("BodyT")


class Sent(NamedTuple):
    """One message that an actor gave to its context; `timeout_us` is that of a question."""

    target: str
    body: Any
    id: int = 0
    reply_to: int = 0
    timeout_us: int | None = None
    traceparent: str = ""


class FakeContext:
    """A context that delivers nothing: it records what a turn did, over a real store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.journal: list[Undo] = []
        self.store = MemoryStore(self.journal)
        self.vm: VmPort | None = None
        self.now_us = 0
        self.wall_us = EPOCH_US
        self.ids = 0
        self.last_id = 0
        self.dones = 0
        self.traceparent = ""
        self.sent: list[Sent] = []
        self.timers: dict[str, int] = {}  # when each is due, in now_us
        self.repeated: dict[str, tuple[int, Sent]] = {}  # of those that repeat
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.streams: dict[str, HashedStream] = {}

    @property
    def stamp_us(self) -> int:
        return self.wall_us + self.now_us

    def random(self, purpose: str) -> HashedStream:
        return self.streams.setdefault(purpose, HashedStream(b"test", f"{self.name}/{purpose}"))

    def give(self, sent: Sent) -> int:
        self.last_id += 1
        if not sent.reply_to and not sent.traceparent:
            sent = sent._replace(traceparent=self.traceparent)
        self.sent.append(sent._replace(id=self.last_id))
        return self.last_id

    def send(self, target: str, body: Any) -> None:
        self.give(Sent(target, body))

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        return self.give(Sent(target, body, timeout_us=timeout_us))

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        traceparent = envelope.traceparent
        self.give(Sent(envelope.source, body, reply_to=envelope.id, traceparent=traceparent))

    def request_every(
        self, timer: str, period_us: int, target: str, body: Any, timeout_us: int
    ) -> None:
        self.set_timer(timer, period_us)
        sent = Sent(target, body, timeout_us=timeout_us, traceparent=self.traceparent)
        self.repeated[timer] = (period_us, sent)

    def set_timer(self, timer: str, delay_us: int) -> None:
        assert delay_us >= 0, f"timer {timer} is set {delay_us} us ahead"
        self.cancel_timer(timer)
        self.timers[timer] = self.now_us + delay_us

    def cancel_timer(self, timer: str) -> None:
        self.timers.pop(timer, None)
        self.repeated.pop(timer, None)

    def new_id(self, prefix: str = "") -> str:
        self.ids += 1
        return f"{prefix}_{self.ids:032x}" if prefix else f"{self.ids:032x}"

    def log(self, event: str, **fields: Any) -> None:
        self.events.append((event, fields))

    def done(self) -> None:
        self.dones += 1

    def trace(self, traceparent: str) -> None:
        self.traceparent = accepted(traceparent)


class Bench:
    """One actor on a fake context. Each method is a turn and returns what it sent."""

    def __init__(self, actor: Actor, name: str) -> None:
        self.actor = actor
        self.context = FakeContext(name)
        self.asked = 1 << 40  # ids of what others send, far from the actor's own
        self.start()

    def take(self) -> list[Sent]:
        """What was sent since the last call; the turn has committed."""
        sent, self.context.sent = self.context.sent, []
        self.context.journal.clear()
        return sent

    def start(self) -> list[Sent]:
        """Begin a boot: timers and questions of the last one are gone, the clock starts anew."""
        self.context.timers.clear()
        self.context.repeated.clear()
        self.context.wall_us += self.context.now_us
        self.context.now_us = 0
        self.context.traceparent = ""
        self.actor.on_start(self.context)
        self.started = self.take()
        return self.started

    def deliver(
        self, source: str, body: Any, *, reply_to: int = 0, traceparent: str = ""
    ) -> list[Sent]:
        self.asked += 1
        name = self.context.name
        envelope = Envelope(self.asked, source, name, reply_to, 0, body, traceparent)
        self.context.traceparent = traceparent
        answer = self.actor.handlers[type(body)](self.context, envelope)
        if answer is not None:
            self.context.reply(envelope, answer)
        return self.take()

    def answer(self, question: Sent, body: Any) -> list[Sent]:
        """Answer one of the actor's questions."""
        assert question.timeout_us is not None, "only a question is answered"
        return self.deliver(
            question.target, body, reply_to=question.id, traceparent=question.traceparent
        )

    def unanswered(self, question: Sent) -> list[Sent]:
        """Let the time of one of the actor's questions be up."""
        assert question.timeout_us is not None, "only a question can stay unanswered"
        name = self.context.name
        envelope: Envelope[Unanswered] = Envelope(
            0, name, name, question.id, 0, Unanswered(question.body), question.traceparent
        )
        self.context.traceparent = question.traceparent
        self.actor.handlers[Unanswered](self.context, envelope)
        return self.take()

    def fire(self, timer: str) -> list[Sent]:
        """Move time to when a timer is due, and wake the actor."""
        due_us = self.context.timers.pop(timer)
        self.context.now_us = max(self.context.now_us, due_us)
        self.context.traceparent = ""
        if timer in self.context.repeated:
            period_us, sent = self.context.repeated[timer]
            self.context.timers[timer] = due_us + period_us
            self.context.give(sent)
        else:
            self.actor.on_timer(self.context, timer)
        return self.take()

    def events(self, event: str) -> list[dict[str, Any]]:
        """The fields of each such event that the actor logged, in all boots."""
        return [fields for name, fields in self.context.events if name == event]


def only(sent: Sequence[Sent], kind: type[BodyT], target: str | None = None) -> Sent:
    """The one message of a type among those sent, with nothing else beside it."""
    assert [type(each.body) for each in sent] == [kind], sent
    assert target is None or sent[0].target == target, sent
    return sent[0]


def body_of(sent: Sequence[Sent], kind: type[BodyT]) -> BodyT:
    """The body of the one message that was sent, of this type."""
    body = only(sent, kind).body
    assert isinstance(body, kind)
    return body


class Trace:
    """A recorder that keeps a replication as plain tuples, equal for equal replications."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []
        self.turns = 0

    def _turn(self, *record: Any) -> int:
        self.turns += 1
        self.records.append((self.turns, *record))
        return self.turns

    def start(self, t: int, actor: str, boot: int) -> int:
        return self._turn("start", t, actor, boot)

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        return self._turn("message", t, envelope.target, envelope)

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        return self._turn("timer", t, actor, cause, timer)

    def unanswered(self, t: int, actor: str, cause: int, id: int) -> int:  # noqa: A002 - the field
        return self._turn("unanswered", t, actor, cause, id)

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        self._turn("late", t, envelope.target, envelope)

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        self._turn("drop", t, envelope.target, fault, envelope)

    def send(self, t: int, envelope: Envelope[Any]) -> None:
        self._turn("send", t, envelope.source, envelope)

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        self._turn("fault", t, actor, fault, act)

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        self._turn("undone", t, actor, turn, why)

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        self._turn("event", t, actor, cause, event, fields)

    def kinds(self, kind: str) -> list[tuple[Any, ...]]:
        """The records of one kind."""
        return [record for record in self.records if record[1] == kind]

    def events(self, event: str) -> list[dict[str, Any]]:
        """The fields of each such event whose turn was committed."""
        return [record[6] for record in self.kinds("event") if record[5] == event]

    def bodies(self, kind: type[BodyT]) -> list[BodyT]:
        """The bodies of the delivered messages of one type."""
        envelopes = [record[4] for record in self.kinds("message")]
        return [each.body for each in envelopes if isinstance(each.body, kind)]


def make_cell(
    *,
    seed: int = 1,
    cell: str = "",
    server: Server.Config | None = None,
    serve: Callable[[Place], Server] | None = None,
    relay: Relay.Config | None = None,
    engine: Engine.Config | None = None,
    agent: Agent.Config | None = None,
    steps: tuple[Step, ...] = (),
    commit_hook: CommitHook | None = None,
    link: Callable[[Simulator, str, str], Link | None] | None = None,
    host: Callable[[int, str], Any] | None = None,
) -> Simulator:
    """A server, a relay, an engine, an agent, and an owner if there are steps for one.

    `serve` makes a server of another kind.
    """
    sim: Simulator = simulator(seed, cell, commit_hook) if host is None else host(seed, cell)
    here = (SESSION,)
    place = Place(name="server", sessions=here)
    sim.add("server", serve(place) if serve else Server(server or Server.Config(), place))
    sim.add("relay", Relay(relay or Relay.Config(), Place(name="relay", sessions=here)))
    sim.add("engine", Engine(engine or Engine.Config(), Place(name="engine")))
    sim.add("agent", Agent(agent or Agent.Config(), Place(name="agent", sessions=here)))
    if steps:
        place = Place(name="owner", sessions=here, steps=steps)
        sim.add("owner", Owner(Owner.Config(), place))
    sim.connect(lambda source, target: None if link is None else link(sim, source, target))
    return sim


def rows(sim: Simulator, actor: str, table: str) -> list[Any]:
    """The rows of an actor's table as they stand."""
    return list(sim.contexts[actor].store.snapshot().get(table, {}).values())


def put_to_work(working: Working, sim: Simulator) -> None:
    """Attach a fault to a simulator that may have been built without one."""
    working.attach(cast(World, sim), tuple(sim.contexts))
    sim.on_begin.append(lambda: working.start(sim.stream(f"fault/{working.name}")))
