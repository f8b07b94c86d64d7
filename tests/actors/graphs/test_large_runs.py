"""Runs with many agents, many runs at once, and the order in which things are counted."""

from __future__ import annotations

from typing import Any

from tests.actors.graphs.fake_vm import Api, FakeVmPort, Task
from tests.actors.graphs.graph_world import GraphWorld, play
from tests.actors.graphs.models import Backwards
from tests.actors.graphs.test_fleet import hundred, one
from tests.actors.harness import S


def test_ten_thousand_agents_in_one_run() -> None:
    async def main(api: Api, _: Any) -> Any:
        return len(await api.all([api.agent(str(n)) for n in range(10_000)]))

    world = play(main, max_concurrency=200, max_agents=10_000)
    assert world.end.result == 10_000
    assert world.end.total_tokens == 1_000_000
    assert world.ended_s == 50
    assert isinstance(world.port, FakeVmPort)
    assert world.port.settles == 50  # one for each wave: what ends at one instant is told at once


def test_a_thousand_runs_at_once() -> None:
    runs: dict[str, dict[str, Any]] = {f"r{n}": {} for n in range(1_000)}
    world = play(one, runs=runs, max_runs=1_000)
    assert len(world.desk.ends) == 1_000
    assert {end.status for end in world.desk.ends.values()} == {"completed"}
    # The engine gives its model two hundred agents at once, those of the first runs first.
    ends = [world.desk.ended_us[run] // S for run in runs]
    assert ends == [1 + number // 200 for number in range(1_000)]
    assert isinstance(world.port, FakeVmPort)
    assert (len(world.port.vms), world.port.left_open) == (1_000, 0)


def test_runs_wait_for_each_other_by_default() -> None:
    world = play(one, runs={f"r{n}": {} for n in range(5)})
    assert sorted(world.desk.ended_us.values()) == [n * S for n in (1, 2, 3, 4, 5)]


def test_completions_of_one_instant_are_told_in_the_order_of_their_requests() -> None:
    async def main(api: Api, _: Any) -> Any:
        ends: list[str] = []

        async def wait(promise: Any, name: str) -> None:
            await promise
            ends.append(name)

        tasks = [
            Task(wait(api.agent(name) if name != "sleep" else api.sleep(5_000), name))
            for name in ("a", "b", "sleep", "c")
        ]
        for task in tasks:
            await task
        return ends

    world = play(main, model=Backwards(5 * S))
    assert world.end.result == ["a", "b", "sleep", "c"]
    assert [one["agent"] for one in world.events("agent.finished")] == [1, 2, 4]
    assert [one["spent"] for one in world.events("agent.finished")] == [1, 3, 7]


def test_one_seed_has_one_log() -> None:
    async def main(api: Api, _: Any) -> Any:
        found = await api.settled([api.agent(str(n)) for n in range(30)])
        await api.graph("inner")
        return [one if isinstance(one, str) else one.code for one in found]

    def world() -> GraphWorld:
        return GraphWorld(
            mains={"main": main, "inner": hundred},
            latency="lognormal(median=8s, sigma=0.6)",
            tokens="uniform(10, 200)",
            failure=0.2,
            token_ceiling=9_000,
        )

    first = world().run(3)
    assert world().run(3).trace.records == first.trace.records
    assert world().run(4).trace.records != first.trace.records
    used = world()
    used.run(0)
    assert used.run(3).trace.records == first.trace.records


def test_each_script_has_a_seed_of_its_own() -> None:
    async def main(api: Api, _: Any) -> Any:
        await api.all([api.graph("inner"), api.graph("inner")])

    async def nothing(_api: Api, _: Any) -> Any:
        return None

    world = play(main, others={"inner": nothing})
    assert isinstance(world.port, FakeVmPort)
    assert len({*world.port.seeds}) == 3
    assert all(0 <= word < 2**32 for seed in world.port.seeds for word in seed)


def test_a_script_sees_time_and_accounts() -> None:
    seen: list[Any] = []

    async def main(api: Api, _: Any) -> Any:
        seen.append(api.state)
        await api.agent("x")
        seen.append(api.state)
        await api.sleep(500)
        seen.append(api.state)

    play(main, token_ceiling=5_000)
    assert [(one.spent, one.total, one.agents) for one in seen] == [
        (0, 5_000, 0), (100, 5_000, 1), (100, 5_000, 1),
    ]  # fmt: skip
    assert [one.now_ms - seen[0].now_ms for one in seen] == [0, 1_000, 1_500]
