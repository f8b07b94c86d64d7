"""A fleet engine and its model between a desk that wants runs: the world of the engine's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.actor import Actor, Context, Handler, Place, Unanswered
from actors.graph_engine import GraphEngine
from actors.graphs.seam import VmPort
from actors.graphs.synthetic import SyntheticModel
from actors.graphs.tools import Approver, SyntheticTools
from actors.guarded import GuardedSimulator, simulator
from actors.messages import (
    CHANNEL,
    Completion,
    FleetAcknowledged,
    FleetCancel,
    FleetDrop,
    FleetFinished,
    FleetRun,
    FleetStarted,
)
from actors.simulator import Simulator
from tests.actors.graphs.fake_vm import FakeVmPort, Main
from tests.actors.harness import S, Trace
from transports.envelope import Envelope

FAST = {"latency": "1s", "tokens": 100, "cost": 0.5, "tool_latency": "1s"}


class Desk:
    """In a relay's place: wants runs at the start, cancels and drops them when it is told to."""

    def __init__(
        self,
        runs: Mapping[str, dict[str, Any]],
        cancels: Mapping[str, int],
        drops: Mapping[str, int],
    ) -> None:
        self.runs = runs
        self.acts = {f"cancel:{run}": at_us for run, at_us in cancels.items()}
        self.acts |= {f"drop:{run}": at_us for run, at_us in drops.items()}
        self.handlers: Mapping[type[Any], Handler] = {
            FleetStarted: self.on_started,
            FleetFinished: self.on_finished,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        self.ids: dict[str, str] = {}
        self.ends: dict[str, Completion] = {}
        self.ended_us: dict[str, int] = {}
        for run, arguments in self.runs.items():
            body = FleetRun(channel=CHANNEL + run, session="s", slug="demo", arguments=arguments)
            context.request("engine", body, 3600 * S)
        for act, at_us in self.acts.items():
            context.set_timer(act, at_us)

    def on_started(self, context: Context, envelope: Envelope[FleetStarted]) -> None:
        self.ids[envelope.body.channel.removeprefix(CHANNEL)] = envelope.body.execution_id

    def on_timer(self, context: Context, timer: str) -> None:
        act, _, run = timer.partition(":")
        kind = FleetCancel if act == "cancel" else FleetDrop
        context.send("engine", kind(execution_id=self.ids[run]))

    def on_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> FleetAcknowledged:
        run = envelope.body.channel.removeprefix(CHANNEL)
        self.ends.setdefault(run, envelope.body.completion)
        self.ended_us.setdefault(run, context.now_us)
        if len(self.ends) == len(self.runs):
            context.done()
        return FleetAcknowledged(channel=envelope.body.channel)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """A channel is asked for once."""


class GraphWorld:
    """Runs Graphs and knows what came of them. `main` is what runs; its names are file names."""

    def __init__(
        self,
        port: VmPort | None = None,
        *,
        files: Mapping[str, str] | None = None,
        runs: Mapping[str, dict[str, Any]] | None = None,
        cancels: Mapping[str, int] | None = None,
        drops: Mapping[str, int] | None = None,
        model: Actor | None = None,
        tools: Actor | None = None,
        owner: Actor | None = None,
        guarded: bool = False,
        seed: int = 1,
        mains: Mapping[str, Main] | None = None,
        **config: Any,
    ) -> None:
        self.port = port or FakeVmPort(**(mains or {}))
        if files is None:
            assert isinstance(self.port, FakeVmPort), "real scripts come with their files"
            files = self.port.files
        self.keys = config
        self.config = config_of(**config)
        approver = "approver" if owner or self.config.approval_delay_us is not None else ""
        place = Place(name="engine", relay="desk", files=files, approver=approver)
        self.desk = Desk({"r1": {}} if runs is None else runs, cancels or {}, drops or {})
        self.engine = GraphEngine(self.config, place)
        self.sim: Simulator = simulator(seed, "", guarded=guarded)
        self.sim.vm = self.port
        self.sim.add("desk", self.desk)
        self.sim.add("engine", self.engine)
        self.sim.add("model", model or SyntheticModel(self.config, Place(name="model")))
        if tools or self.config.permissions:
            self.sim.add("tools", tools or SyntheticTools(self.config, Place(name="tools")))
        if approver:
            self.sim.add(approver, owner or Approver(self.config, Place(name=approver)))
        self.sim.connect(lambda _source, _target: None)
        self.sim.on_done = lambda _name: self.sim.finish()
        self.trace = Trace()

    def config_with(self, **keys: Any) -> GraphEngine.Config:
        """Its engine's config with some other keys."""
        return config_of(**(self.keys | keys))

    def at(self, due_us: int, act: Callable[[], Any]) -> GraphWorld:
        """Do something in each replication so long after its beginning."""
        self.sim.on_begin.append(lambda: self.sim.at(due_us, act))
        return self

    def run(self, replication: int = 0) -> GraphWorld:
        self.trace = Trace()
        self.sim.run(replication, self.trace)
        return self

    @property
    def guarded(self) -> GuardedSimulator:
        assert isinstance(self.sim, GuardedSimulator)
        return self.sim

    @property
    def end(self) -> Completion:
        """The end of the only run."""
        (end,) = self.desk.ends.values()
        return end

    @property
    def ended_s(self) -> float:
        (ended_us,) = self.desk.ended_us.values()
        return ended_us / S

    def events(self, event: str) -> list[dict[str, Any]]:
        return self.trace.events(event)

    def statuses(self) -> list[str]:
        """How the agents ended, in the order of their numbers."""
        ends = sorted(self.events("agent.finished"), key=lambda one: one["agent"])
        return [one["status"] for one in ends]


def config_of(**keys: Any) -> GraphEngine.Config:
    """A config as a scenario file would have it; agents take a second and 100 tokens."""
    import msgspec

    from actors.config import decode_hook

    return msgspec.convert(
        {"graph": "main.js", **FAST, **keys}, GraphEngine.Config, dec_hook=decode_hook
    )


def play(main: Main, *, others: Mapping[str, Main] | None = None, **how: Any) -> GraphWorld:
    """Run a Graph that is a Python coroutine to its end."""
    return GraphWorld(mains={"main": main, **(others or {})}, **how).run()
