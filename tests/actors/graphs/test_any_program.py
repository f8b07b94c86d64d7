"""What holds of every run, whatever its script does: tried on random programs.

A program is data: steps one after another or at once, agents with and without reservations and
time-outs, sleeps, sub-graphs, work that nobody waits for, failures; with models that fail, answer
late or not at all, cancels and deadlines in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.graphs.admission import FLYING_LIMIT
from actors.graphs.messages import AgentAnswer, AgentAsk
from tests.actors.graphs.fake_vm import Api, FakeVmPort, RejectedError, Task
from tests.actors.graphs.graph_world import GraphWorld
from tests.actors.graphs.models import Fixed
from tests.actors.harness import S

Program = Any

AGENT = st.tuples(
    st.just("agent"), st.none() | st.integers(1, 300), st.none() | st.integers(1, 9_000)
)
LEAF = st.one_of(
    AGENT,
    AGENT,
    st.tuples(st.just("sleep"), st.integers(0, 9_000)),
    st.tuples(st.just("fail")),
    st.tuples(st.just("leave")),
)
PROGRAMS = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.tuples(st.just("seq"), st.lists(inner, max_size=4)),
        st.tuples(st.just("all"), st.lists(inner, max_size=6)),
        st.tuples(st.just("graph"), inner),
        st.tuples(st.just("try"), inner),
    ),
    max_leaves=20,
)


async def perform(api: Api, program: Program) -> Any:
    """Do what a program says."""
    what, *rest = program
    if what in {"agent", "sleep", "fail", "leave", "graph"}:
        return await perform_step(api, what, rest)
    if what == "try":
        try:
            return await perform(api, rest[0])
        except (RejectedError, ValueError):
            return None
    if what == "seq":
        for one in rest[0]:
            await perform(api, one)
        return None
    tasks = [Task(perform(api, one)) for one in rest[0]]
    for task in tasks:
        await task
    return None


async def perform_step(api: Api, what: str, rest: list[Any]) -> Any:
    """Do one step that has no parts."""
    if what == "agent":
        return await api.agent("x", max_tokens=rest[0], timeout_ms=rest[1])
    if what == "sleep":
        return await api.sleep(rest[0])
    if what == "fail":
        raise ValueError("as the program says")
    if what == "leave":
        api.agent("nobody waits for this")
        api.sleep(50_000)
        return None
    return await api.graph("main", {"program": rest[0]})


async def main(api: Api, args: Any) -> Any:
    return await perform(api, args["program"])


def answers(numbers: Iterator[int]) -> Any:
    """A model that fails, is late or deaf now and then."""

    def plan(_ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        number = next(numbers)
        latency_s = 1e9 if number % 13 == 0 else number % 7
        outcome = "failed" if number % 5 == 0 else "ok"
        return latency_s, {"outcome": outcome, "tokens": number % 200}

    return plan


@settings(max_examples=150, deadline=None)
@given(
    programs=st.lists(PROGRAMS, min_size=1, max_size=3),
    numbers=st.lists(st.integers(1, 1_000), min_size=1, max_size=20),
    slots=st.integers(1, 4),
    ceiling=st.none() | st.integers(1, 2_000),
    max_agents=st.integers(1, 12),
    max_runs=st.integers(1, 3),
    deadline_s=st.integers(5, 100),
    cancel_s=st.none() | st.integers(1, 40),
)
def test_every_run_ends_and_leaves_nothing(
    programs: list[Program],
    numbers: list[int],
    slots: int,
    ceiling: int | None,
    max_agents: int,
    max_runs: int,
    deadline_s: int,
    cancel_s: int | None,
) -> None:
    endless = (numbers[index % len(numbers)] for index in range(10**9))
    world = GraphWorld(
        mains={"main": main},
        model=Fixed(answers(endless)),
        runs={f"r{number}": {"program": one} for number, one in enumerate(programs)},
        cancels={} if cancel_s is None else {"r0": cancel_s * S},
        max_concurrency=slots,
        max_agents=max_agents,
        max_runs=max_runs,
        deadline=f"{deadline_s}s",
        agent_timeout="20s",
        token_ceiling=ceiling,
    ).run()
    assert len(world.desk.ends) == len(programs)
    assert isinstance(world.port, FakeVmPort)
    assert world.port.left_open == 0
    assert world.sim.contexts["engine"].timers == {}
    assert world.engine.slots.free == FLYING_LIMIT
    assert not world.engine.fleets
    assert not world.engine.by_run
    assert not world.engine.running
    for run, end in world.desk.ends.items():
        check_accounts(world, run, end.total_tokens)
        started = [one for one in world.events("agent.started") if one["run"] == run]
        assert len(started) <= max_agents
        if ceiling is not None:
            assert end.total_tokens < ceiling + slots * 200
        assert most_at_once(world, run) <= slots


def check_accounts(world: GraphWorld, run: str, total_tokens: int) -> None:
    """What agents used is what the model said, and what the run reports."""
    finished = [one for one in world.events("agent.finished") if one["run"] == run]
    started = [one["agent"] for one in world.events("agent.started") if one["run"] == run]
    assert sorted(one["agent"] for one in finished) == sorted(started)
    assert sum(one["tokens"] for one in finished) == total_tokens
    told: dict[int, int] = {}
    for body in world.trace.bodies(AgentAnswer):
        if body.run == run:
            told[body.agent] = body.tokens
    assert sum(told.values()) == total_tokens


def most_at_once(world: GraphWorld, run: str) -> int:
    """The largest number of a run's agents that flew at one time."""
    flying = most = 0
    for record in world.trace.kinds("event"):
        if record[6].get("run") == run:
            flying += (record[5] == "agent.started") - (record[5] == "agent.finished")
            most = max(most, flying)
    return most
