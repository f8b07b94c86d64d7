"""Whole runs of Graphs, for the benchmark of scripts: a great many, very large ones, and cancels.

What is simulated has the fleet engine, its model and a caller, on the simulation host; scripts are
real and run in children. A cancel is a Ctrl-C of `pullcord graph run`, on a real clock: what is
measured is the time until the run has ended and its agents are stopped.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from actors.actor import Context, Handler, Place, Unanswered
from actors.config import decode_hook
from actors.edges.vm_process import ProcessVmPort
from actors.graph_engine import GraphEngine
from actors.graphs.synthetic import SyntheticModel
from actors.guarded import simulator
from actors.messages import CHANNEL, FleetAcknowledged, FleetFinished, FleetRun, FleetStarted
from scenarios.graph_run import Plan, run_graph
from transports.envelope import Envelope

MANY = "return (await Promise.all(Array.from({length: args.of}, (_, i) => agent(`${i}`)))).length"
WAIT = "await Promise.all(Array.from({length: args.of}, (_, i) => agent(`${i}`)))"
LOOP = "phase('loop'); await sleep(1); for (;;);"
HOUR_US = 3_600_000_000
IN_THE_LOOP_S = 0.05  # after its phase: the loop has begun by then, and no limit has ended it


class Caller:
    """Has the engine run a Graph so many times at once, and counts the ends."""

    def __init__(self, runs: int, of: int) -> None:
        self.runs = runs
        self.arguments = {"of": of}
        self.results: list[Any] = []
        self.handlers: Mapping[type[Any], Handler] = {
            FleetStarted: self.on_started,
            FleetFinished: self.on_finished,
            Unanswered: self.on_unanswered,
        }

    def on_start(self, context: Context) -> None:
        """Ask for all of them."""
        for number in range(self.runs):
            body = FleetRun(
                channel=f"{CHANNEL}r{number}", session="s", slug="main", arguments=self.arguments
            )
            context.request("engine", body, HOUR_US)

    def on_started(self, context: Context, envelope: Envelope[FleetStarted]) -> None:
        """Nothing: it waits for the ends."""

    def on_finished(self, context: Context, envelope: Envelope[FleetFinished]) -> FleetAcknowledged:
        """Keep a run's result."""
        self.results.append(envelope.body.completion.result)
        if len(self.results) == self.runs:
            context.done()
        return FleetAcknowledged(channel=envelope.body.channel)

    def on_timer(self, context: Context, timer: str) -> None:
        """Nothing: it sets none."""

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        """Nothing: the engine answers within the hour."""


def config_of(**keys: Any) -> GraphEngine.Config:
    """An engine's config, as a scenario has it."""
    return msgspec.convert({"graph": "main.js", **keys}, GraphEngine.Config, dec_hook=decode_hook)


def simulated_s(runs: int, agents: int) -> float:
    """What so many runs at once, each of so many agents, take on the simulation host, in seconds.

    Their scripts' processes are started within that time, and ended after it.
    """
    config = config_of(latency="1s", max_runs=min(runs, 10_000), max_agents=agents,
                       max_concurrency=min(agents, 200))  # fmt: skip
    caller = Caller(runs, agents)
    world = simulator(1, "", guarded=False)
    with ProcessVmPort() as port:
        world.vm = port
        world.add("caller", caller)
        world.add("engine", GraphEngine(config, Place(name="engine", relay="caller", files=FILES)))
        world.add("model", SyntheticModel(config, Place(name="model")))
        world.connect(lambda _source, _target: None)
        world.on_done = lambda _name: world.finish()
        begin = time.perf_counter()
        world.run(0)
        took_s = time.perf_counter() - begin
    if caller.results != [agents] * runs:
        raise SystemExit(f"the runs answered {caller.results[:3]} ...")
    return took_s


FILES = {"main.js": MANY}


def cancel_ms(agents: int) -> float:
    """From a Ctrl-C to the end of a run with so many agents at work, in milliseconds.

    With no agents its script is in an endless loop.
    """
    config = config_of(latency="1h", max_concurrency=max(1, agents))
    source = WAIT if agents else LOOP
    plan = Plan(config=config, files={"main.js": source}, arguments={"of": agents}, speed=1.0)
    began: list[float] = []
    started = 0

    def interrupt() -> None:
        began.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    def told(_now_us: int, event: str, _fields: dict[str, Any]) -> None:
        nonlocal started
        started += event == "agent.started"
        if event == "agent.started" and started == agents:
            interrupt()
        elif event == "fleet.phase":
            threading.Timer(IN_THE_LOOP_S, interrupt).start()
        elif event == "fleet.finished":
            began.append(time.perf_counter())

    run_graph(plan, SyntheticModel(config, Place(name="model")), told)
    first, last = began
    return (last - first) * 1e3
