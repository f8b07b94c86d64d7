"""A desktop whose database was lost, or restored from an older copy: nothing runs twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Place
from actors.agent import Agent
from actors.chance import Durations
from actors.desktop.relay import DesktopRelay
from actors.engine import Engine
from actors.guarded import GuardedSimulator, simulator
from actors.server import Server
from tests.actors.harness import SESSION, S, Trace, rows
from transports.units import Duration


def played(
    *, runs: int, slots: int, seed: int, saved_s: int | None, died_s: int, reconcile: bool
) -> tuple[GuardedSimulator, Trace]:
    """A desktop dies, and begins again with what it had at `saved_s`, or with nothing."""
    sim = simulator(seed, "", guarded=True)
    assert isinstance(sim, GuardedSimulator)
    here = (SESSION,)
    sim.add("server", Server(Server.Config(reconcile=reconcile), Place(name="s", sessions=here)))
    # Nothing is given up: what the engine tells again must be enough.
    config = DesktopRelay.Config(slots=slots, stop_limit_us=Duration(0))
    sim.add("relay", DesktopRelay(config, Place(name="relay", sessions=here)))
    durations = Durations.parse("uniform(5s, 60s)")
    sim.add("engine", Engine(Engine.Config(duration_us=durations), Place(name="engine")))
    every = Durations.parse("uniform(1s, 40s)")
    sim.add("agent", Agent(Agent.Config(runs=runs, every_us=every), Place(name="a", sessions=here)))
    sim.connect(lambda _source, _target: None)
    store = sim.contexts["relay"].store
    kept: dict[str, Any] = {}

    def save() -> None:
        kept.update(store.snapshot())

    def lose() -> None:
        store.restore(kept)
        sim.revive("relay", "test")

    def begin() -> None:
        kept.clear()
        if saved_s is not None:
            sim.at(saved_s * S, save)
        sim.at(died_s * S, lambda: sim.kill("relay", "test"))
        sim.at((died_s + 5) * S, lose)
        sim.at(3 * 3600 * S, sim.finish)

    sim.on_begin.append(begin)
    trace = Trace()
    sim.run(0, trace)
    return sim, trace


@settings(max_examples=40, deadline=None)
@given(
    runs=st.integers(1, 6),
    slots=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    died_s=st.integers(2, 200),
    back_s=st.integers(1, 200) | st.none(),
    reconcile=st.booleans(),
)
def test_nothing_runs_twice_and_the_desktop_goes_on(
    runs: int, slots: int, seed: int, died_s: int, back_s: int | None, reconcile: bool
) -> None:
    saved_s = None if back_s is None else max(0, died_s - back_s)
    sim, trace = played(
        runs=runs, slots=slots, seed=seed, saved_s=saved_s, died_s=died_s, reconcile=reconcile
    )
    begun = [event["run"] for event in trace.events("engine.started")]
    assert len(begun) == len(set(begun)), "no run is started twice"
    ends = {event["run"]: event["status"] for event in trace.events("run.terminal")}
    if reconcile:
        assert len(ends) == runs, "none is stuck"
        assert set(ends.values()) <= {"completed", "interrupted"}
    assert rows(sim, "relay", "outbox") == []
    relay: Any = sim.contexts["relay"].actor
    assert relay.running == {}, "no slot is taken for ever"


@pytest.mark.parametrize("saved_s", [None, 30])
def test_a_result_that_the_new_store_does_not_know_arrives(saved_s: int | None) -> None:
    """The engine tells it again, and the relay posts it: by chance of each run's end."""
    arrived = adopted = 0
    for seed in range(12):
        sim, trace = played(runs=3, slots=1, seed=seed, saved_s=saved_s, died_s=60, reconcile=True)
        statuses = [event["status"] for event in trace.events("run.terminal")]
        arrived += statuses.count("completed")
        adopted += len(trace.events("relay.adopted"))
        assert len(statuses) == 3
        assert len(rows(sim, "relay", "history")) >= 1
    assert arrived > 0
    assert adopted > 0
