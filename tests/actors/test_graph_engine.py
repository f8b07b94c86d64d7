"""The engine of real Graphs towards its relay: channels, reports, death, bounds of a result."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Commit, Place
from actors.graph_engine import SPENDINGS, GraphEngine, graph_name
from actors.messages import CHANNEL, Completion, FleetRun, FleetStarted
from tests.actors.graphs.fake_vm import Api, FakeVmPort
from tests.actors.graphs.graph_world import GraphWorld, config_of, play
from tests.actors.harness import Bench, S, body_of, rows


async def four(api: Api, _: Any) -> Any:
    """Four agents one after another, a second and a hundred tokens each."""
    return [await api.agent(str(number)) for number in range(4)]


def interrupted(world: GraphWorld) -> Completion:
    assert world.end.status == "interrupted"
    assert world.end.error == "the engine stopped while the Graph ran"
    return world.end


def test_what_the_synthetic_engine_says_is_said_too() -> None:
    world = play(four)
    execution = world.desk.ids["r1"]
    assert world.events("engine.started") == [{"run": "r1", "execution": execution}]
    assert world.events("engine.finished") == [
        {"run": "r1", "status": "completed", "tokens": 400, "cost": 2.0}
    ]
    assert world.end.execution_id == execution


def test_a_channel_starts_once_for_ever() -> None:
    port = FakeVmPort(main=four)
    machine = Bench(GraphEngine(config_of(), Place(name="engine", files=port.files)), "engine")
    machine.context.vm = port
    run = FleetRun(channel=CHANNEL + "r1", session="s", slug="demo", arguments={})
    started = body_of(machine.deliver("relay", run), FleetStarted)
    assert body_of(machine.deliver("relay", run), FleetStarted) == started
    machine.fire("turn:" + started.execution_id)
    assert body_of(machine.deliver("relay", run), FleetStarted) == started
    assert len(port.vms) == 1
    assert len(machine.events("engine.started")) == 1


def test_the_runs_arguments_come_over_the_engines_own() -> None:
    async def main(_api: Api, args: Any) -> Any:
        return args

    runs = {"r1": {"b": 3, "c": 4}}
    assert play(main, runs=runs, args={"a": 1, "b": 2}).end.result == {"a": 1, "b": 3, "c": 4}


# Death


def dies(at_us: int, **how: Any) -> GraphWorld:
    """The engine is killed, and starts again a minute later."""
    world = GraphWorld(mains={"main": four}, guarded=True, **how)
    sim = world.guarded
    world.at(at_us, lambda: sim.kill("engine", "test"))
    return world.at(at_us + 60 * S, lambda: sim.revive("engine", "test")).run()


def test_a_dead_engine_reports_its_run_as_interrupted_with_what_it_used() -> None:
    world = dies(5 * S // 2)
    done = interrupted(world)
    assert (done.total_tokens, done.reported_cost) == (200, 1.0)
    assert isinstance(world.port, FakeVmPort)
    assert world.port.left_open == 0
    assert len(world.port.vms) == 1, "it is not started again"


def test_nothing_was_used_before_the_first_agent_ended() -> None:
    assert interrupted(dies(S // 2)).total_tokens == 0


def test_runs_that_waited_are_interrupted_too() -> None:
    world = dies(5 * S, runs={"r1": {}, "r2": {}, "r3": {}})
    ends = world.desk.ends
    assert [ends[run].status for run in ("r1", "r2", "r3")] == [
        "completed", "interrupted", "interrupted",
    ]  # fmt: skip


def test_what_a_run_used_is_forgotten_with_its_end() -> None:
    world = play(four)
    assert rows(world.sim, "engine", SPENDINGS.name) == []


@pytest.mark.parametrize("verdict", [Commit.FAILED, Commit.CRASHED])
def test_a_turn_that_fails_to_commit_leaves_no_script_behind(verdict: Commit) -> None:
    """Whichever turn of the engine fails, its run ends once, and no VM stays open."""
    for failing in range(12):
        world = GraphWorld(mains={"main": four}, guarded=True)
        turns = iter(range(1_000))

        def hook(actor: str, _wrote: bool, turns: Any = turns, failing: int = failing) -> Any:
            return verdict if actor == "engine" and next(turns) == failing else None

        world.guarded.add_commit_hook(hook)
        world.at(100 * S, world.sim.finish).run()
        ends = list(world.desk.ends.values())
        assert len(ends) == len(world.events("engine.started")), failing
        assert {end.status for end in ends} <= {"completed", "interrupted"}
        assert isinstance(world.port, FakeVmPort)
        assert world.port.left_open == 0, failing


def test_a_replication_that_ends_early_leaves_nothing_to_the_next() -> None:
    world = GraphWorld(mains={"main": four})
    first = world.at(S, world.sim.finish).run().trace.records
    assert world.run().trace.records == first


# Bounds


def test_a_result_goes_through_the_bound_on_texts() -> None:
    async def main(api: Api, _: Any) -> Any:
        await api.agent("x")
        return "y" * 100_000

    end = play(main).end
    assert (end.status, end.result, end.result_truncated) == ("completed", None, True)
    assert (end.total_tokens, end.reported_cost) == (100, 0.5), "what it used is told all the same"


def test_a_result_that_is_too_deep_fails_the_run() -> None:
    async def main(_api: Api, _: Any) -> Any:
        deep: Any = None
        for _level in range(70):
            deep = [deep]
        return deep

    end = play(main).end
    assert (end.status, end.error) == (
        "failed",
        "result rejected: a result may be nested 64 levels deep",
    )


def test_many_runs_go_at_once_if_they_may() -> None:
    runs: dict[str, dict[str, Any]] = {f"r{number}": {} for number in range(10)}
    world = play(four, runs=runs, max_runs=4)
    assert sorted(at // S for at in world.desk.ended_us.values()) == [4] * 4 + [8] * 4 + [12] * 2


def test_a_run_that_is_cancelled_while_it_waits_for_the_model_waits_no_more() -> None:
    async def many(api: Api, _: Any) -> Any:
        return len(await api.all([api.agent(str(number)) for number in range(150)]))

    runs: dict[str, dict[str, Any]] = {"r1": {}, "r2": {}}
    world = play(many, runs=runs, cancels={"r2": S // 2}, max_runs=2, max_concurrency=150)
    assert world.desk.ends["r1"].status == "completed"
    assert world.desk.ends["r2"].status == "cancelled"
    assert world.engine.starved == {}


def test_a_graph_is_called_as_its_file_is() -> None:
    assert graph_name("graphs/deep/triage.js") == graph_name("triage.js") == "triage"


@pytest.mark.parametrize("key", ["agent_timeout", "stop", "report"])
def test_times_of_nothing_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} must be longer than 0s"):
        config_of(**{key: "0s"})


@pytest.mark.parametrize("key", ["max_concurrency", "token_ceiling", "max_agents", "max_runs"])
def test_bounds_of_nothing_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        config_of(**{key: 0})
