"""Worlds for the cases: small cells and scripted peers in which one thing goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors.actor import Commit, Place
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.guarded import CommitHook, simulator
from actors.messages import (
    CancelGraphRun,
    Commands,
    Completion,
    GraphRun,
    RunGraphSession,
    Start,
    Sync,
)
from actors.polls import parse_polls
from actors.relay import Relay
from actors.server import Server
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from logs.keep import MemoryRecorder
from scenarios.checks import CHECKS, History, judge
from scenarios.promises.stage import Script
from tests.actors.harness import SESSION, S, make_cell
from transports.envelope import Envelope
from transports.memory import Link

KINDS = {"server": "server", "relay": "relay", "engine": "engine", "owner": "owner"}
POLLS = parse_polls("every 10s")
SERVER = Server.Config(reconcile=True)
RECOMMENDED = Relay.Config(phase_us=Durations.parse("5s"), presence=True, strict_consent=True)
PUBLISHED = Relay.Config(phase_us=Durations.parse("5s"))
ASK = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="key-0001")
Loses = Callable[[int, Envelope[Any]], bool]


class Losing(Link):
    """A way that loses what a rule says, by the time and the message."""

    __slots__ = ("_host", "_loses")

    def __init__(self, host: Simulator, loses: Loses) -> None:
        super().__init__(host, host._outbox)
        self._host, self._loses = host, loses

    def release(self, envelope: Envelope[Any]) -> None:
        if self._loses(self._host.now_us, envelope):
            self._host.lose(envelope, "case")
        else:
            super().release(envelope)


def loses(kind: type[Any], *, until_s: float = float("inf"), nth: int | None = None) -> Loses:
    """Lose the messages of a type, until a time or the nth alone."""
    seen = [0]

    def lost(now_us: int, envelope: Envelope[Any]) -> bool:
        seen[0] += isinstance(envelope.body, kind)
        here = isinstance(envelope.body, kind) and now_us < until_s * S
        return here and nth in (None, seen[0])

    return lost


def fails(actor: str, rule: Callable[[ActorContext], bool], verdict: Commit) -> CommitHook:
    """Let an actor's turns end badly where a rule says so."""

    def hook(context: ActorContext, writes: Sequence[Undo]) -> Commit:
        if verdict is Commit.FAILED and not writes:
            return Commit.DONE  # where nothing is written, no write fails
        return verdict if context.name == actor and rule(context) else Commit.DONE

    return hook


def dies_at(*times_s: float) -> Callable[[ActorContext], bool]:
    """Die in the first turn from each of these times on."""
    left = [int(time_s * S) for time_s in times_s]

    def rule(context: ActorContext) -> bool:
        now_us = context._world.now_us
        if left and now_us >= left[0]:
            left.pop(0)
            return True
        return False

    return rule


def agent(**fields: Any) -> Agent.Config:
    return Agent.Config(**{"poll": POLLS, **fields})


def engine(duration: str = "60s", **fields: Any) -> Engine.Config:
    return Engine.Config(duration_us=Durations.parse(duration), **fields)


def play(sim: Simulator, until_s: float = 400) -> History:
    """Run a world until a time; every check holds in it."""
    sim.on_begin.append(lambda: sim.at(int(until_s * S), sim.finish))
    recorder = MemoryRecorder()
    sim.run(0, recorder)
    history = History(
        recorder.records,
        kinds={name: KINDS.get(name, "agent") for name in sim.contexts},
        stores={name: context.store.snapshot() for name, context in sim.contexts.items()},
        timers={
            name: {timer: due[0] for timer, due in context.timers.items()}
            for name, context in sim.contexts.items()
        },
        ended_us=sim.now_us,
    )
    assert judge(history, CHECKS) == []
    return history


def cell(loss: Loses | None = None, **how: Any) -> Simulator:
    """A server, a relay, an engine and an agent, with a rule for what is lost."""
    how = {"server": SERVER, "relay": RECOMMENDED, "engine": engine(), "agent": agent(), **how}
    if loss is not None:
        how["link"] = lambda sim, _source, _target: Losing(sim, loss)
    return make_cell(**how)


def scripted(server: Server.Config = SERVER, **scripts: Script) -> Simulator:
    """A server among peers that say their lines."""
    sim = simulator(1, "cases")
    sim.add("server", Server(server, Place(name="server", sessions=(SESSION,))))
    for name, script in scripts.items():
        sim.add(name, script)
    sim.connect(lambda _source, _target: None)
    return sim


def answers(sim: Simulator, name: str) -> dict[int, Any]:
    """What each line of a script was answered."""
    actor = sim.contexts[name].actor
    assert isinstance(actor, Script)
    return actor.answers


def sync(boot: str, *, open: tuple[str, ...] = (), capacity: int = 10) -> Sync:  # noqa: A002  the field
    return Sync(boot=boot, sessions=(), open=open, capacity=capacity, poll_us=20 * S)


def start(delivery: int, boot: str) -> Callable[[list[Any]], Start]:
    """Ask leave for the first command that was heard of."""
    return lambda heard: Start(command_id=offered(heard), boot=boot, delivery=delivery)


def offered(heard: list[Any]) -> str:
    commands = next(body for body in heard if isinstance(body, Commands) and body.commands)
    return str(commands.commands[0].command_id)


def ends(history: History) -> list[str]:
    """How the runs ended, in order."""
    return [end.fields["status"] for end in history.events("run.terminal")]


def row(history: History) -> Any:
    """The only run's row."""
    (one,) = history.run_rows.values()
    return one


def cancel(heard: list[Any]) -> CancelGraphRun:
    return CancelGraphRun(command_id=ticket(heard))


def ticket(heard: list[Any]) -> str:
    return next(body.command_id for body in heard if isinstance(body, GraphRun))


class OddEngine(Engine):
    """An engine whose Graphs give what a test says."""

    made: Mapping[str, Any] = {}

    def outcome(self, context: Any, execution_id: str) -> Completion:
        return Completion(execution_id=execution_id, **{"status": "completed", **self.made})


def odd(**made: Any) -> History:
    """Play a world in which a Graph gives this."""
    sim = simulator(1, "cases")
    here = (SESSION,)
    sim.add("server", Server(SERVER, Place(name="server", sessions=here)))
    sim.add("relay", Relay(RECOMMENDED, Place(name="relay", sessions=here)))
    kind = type("Odd", (OddEngine,), {"made": made})
    sim.add("engine", kind(engine("5s"), Place(name="engine")))
    sim.add("agent", Agent(agent(), Place(name="agent", sessions=here)))
    sim.connect(lambda _source, _target: None)
    return play(sim, 100)
