"""One run of a Graph: admission, ceiling, retries, sub-graphs, time-outs, cancel, accounts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.engine import DROPPED_TEXT
from actors.graphs.admission import FLYING_LIMIT
from actors.graphs.fleet import DEPTH_LIMIT, OPEN_GRAPHS_LIMIT
from actors.graphs.seam import VmLimitError, VmLimits, VmMissingError
from tests.actors.graphs.fake_vm import Api, FakeVm, FakeVmPort, RejectedError
from tests.actors.graphs.graph_world import GraphWorld, play
from tests.actors.graphs.models import Deaf, Fixed
from tests.actors.harness import S


async def hundred(api: Api, _: Any) -> Any:
    found = await api.settled([api.agent(f"number {n}") for n in range(100)])
    return [one if isinstance(one, str) else one.code for one in found]


async def one(api: Api, _: Any) -> Any:
    return await api.agent("do it")


def test_a_graph_returns_what_its_agents_gave() -> None:
    world = play(one)
    assert world.end.status == "completed"
    assert world.end.result == "answer to: do it"
    assert (world.end.total_tokens, world.end.reported_cost) == (100, 0.5)
    assert world.ended_s == 1
    assert isinstance(world.port, FakeVmPort)
    assert world.port.left_open == 0


def test_events_tell_of_the_run_and_of_each_agent() -> None:
    async def main(api: Api, _: Any) -> Any:
        api.say("phase", "look")
        api.say("log", "hello")
        found = await api.agent("a", label="first", phase="look")
        api.say("retry", "again", attempt=1)
        return found

    world = play(main)
    run = {"run": "r1"}
    assert world.events("fleet.started") == [
        run | {"execution": world.desk.ids["r1"], "graph": "main"}
    ]
    assert world.events("fleet.phase") == [run | {"graph": "main", "text": "look"}]
    assert world.events("fleet.log") == [run | {"graph": "main", "text": "hello", "level": "info"}]
    assert world.events("fleet.retry") == [
        run | {"graph": "main", "text": "again", "attempt": 1, "delay_ms": 0}
    ]
    agent = run | {"graph": "main", "agent": 1}
    assert world.events("agent.started") == [agent | {"label": "first", "phase": "look"}]
    assert world.events("agent.finished") == [
        agent | {"status": "completed", "code": None, "tokens": 100, "cost": 0.5, "spent": 100}
    ]
    assert world.events("fleet.finished") == [
        run | {"status": "completed", "tokens": 100, "cost": 0.5, "agents": 1, "refused": 0}
    ]


@pytest.mark.parametrize(("slots", "seconds"), [(1, 100), (7, 15), (50, 2), (200, 1)])
def test_no_more_agents_work_at_once_than_there_are_slots(slots: int, seconds: int) -> None:
    world = play(hundred, max_concurrency=slots)
    assert world.ended_s == seconds
    assert world.end.total_tokens == 10_000


# Reports 1 and 2: N times the ceiling under parallel, queued thunks pass the gate


@pytest.mark.parametrize(("slots", "spent"), [(1, 1_000), (4, 1_200), (16, 1_600)])
def test_report_1_the_overshoot_stays_under_one_wave(slots: int, spent: int) -> None:
    world = play(hundred, max_concurrency=slots, token_ceiling=1_000)
    assert world.end.total_tokens == spent
    assert world.end.result == ["answer to: number " + str(n) for n in range(spent // 100)] + [
        "token_ceiling"
    ] * (100 - spent // 100)
    assert len(world.events("agent.refused")) == 100 - spent // 100


def test_report_2_what_was_queued_before_the_ceiling_does_not_pass_it() -> None:
    world = play(hundred, max_concurrency=2, token_ceiling=1)
    assert len(world.events("agent.started")) == 2
    assert {one["code"] for one in world.events("agent.refused")} == {"token_ceiling"}


@settings(max_examples=60, deadline=None)
@given(
    slots=st.integers(1, 12),
    ceiling=st.integers(1, 1_500),
    caps=st.lists(st.one_of(st.none(), st.integers(1, 300)), max_size=30),
    usage=st.integers(0, 400),
)
def test_the_ceiling_holds(slots: int, ceiling: int, caps: list[int | None], usage: int) -> None:
    """At most one wave over it; never over it where every agent has its tokens reserved."""

    async def main(api: Api, _: Any) -> Any:
        await api.settled([api.agent("x", max_tokens=cap) for cap in caps])

    world = play(main, max_concurrency=slots, token_ceiling=ceiling, tokens=usage)
    spent = world.end.total_tokens
    assert spent <= max(0, ceiling - 1) + slots * usage
    if None not in caps:
        assert spent <= ceiling
    started, refused = len(world.events("agent.started")), len(world.events("agent.refused"))
    assert started + refused == len(caps)
    spendings = [one["spent"] for one in world.events("agent.finished")]
    assert spendings == sorted(spendings)


def test_reserved_tokens_make_others_wait_and_are_given_back() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.settled([api.agent(str(n), max_tokens=400) for n in range(4)])

    world = play(main, token_ceiling=1_000, tokens=100)
    starts = [one["agent"] for one in world.events("agent.started")]
    assert starts == [1, 2, 3, 4]  # two at once, then with 200 used two more
    assert world.ended_s == 2
    assert world.end.total_tokens == 400


def test_an_agent_that_may_use_more_than_is_left_is_refused() -> None:
    async def main(api: Api, _: Any) -> Any:
        try:
            await api.agent("x", max_tokens=1_001)
        except RejectedError as error:
            return [error.code, error.failure.info]

    world = play(main, token_ceiling=1_000)
    assert world.end.result == [
        "token_ceiling",
        {"retryable": False, "spent": 0, "ceiling": 1_000},
    ]


# Report 4: results lost at the ceiling


def test_report_4_a_failed_run_keeps_what_its_script_had() -> None:
    class CeilingError(Exception):
        partial = ("one", None)

    async def main(api: Api, _: Any) -> Any:
        await api.agent("x")
        raise CeilingError("reached")

    end = play(main).end
    assert (end.status, end.result) == ("failed", ["one", None])
    assert end.error == "CeilingError: reached (line 3, column 7)"
    assert end.total_tokens == 100


# Report 5: a retry storm


def test_report_5_a_run_starts_no_more_agents_than_it_may() -> None:
    async def stubborn(api: Api, _: Any) -> Any:
        while True:
            try:
                await api.agent("again")
            except RejectedError:
                continue

    world = play(stubborn, max_agents=20, failure=1)
    assert len(world.events("agent.started")) == 20
    assert world.end.status == "failed"
    assert world.end.error == "more than 10,000 agents of the run were refused"


def test_a_script_that_asks_without_end_is_ended() -> None:
    async def main(api: Api, _: Any) -> Any:
        while True:
            await api.settled([api.graph("nothing") for _ in range(1_000)])

    world = play(main)
    assert world.end.error == "the run asked for more than 100,000 things"


# Reports 6 and 7: an agent that never ends


def test_report_6_an_agent_that_works_for_ever_ends_with_its_time() -> None:
    world = play(one, latency="30d", agent_timeout="90s")
    assert world.statuses() == ["expired"]
    assert world.end.status == "failed"
    assert world.ended_s == 90


def test_report_7_one_stuck_agent_does_not_lose_the_others() -> None:
    async def main(api: Api, _: Any) -> Any:
        found = await api.settled([api.agent(word) for word in ("good", "stuck", "fine")])
        return [one if isinstance(one, str) else one.code for one in found]

    stuck = Fixed(lambda ask: (1e6 if ask.prompt == "stuck" else 1, {"value": ask.prompt}))
    world = play(main, model=stuck, agent_timeout="1m")
    assert world.end.result == ["good", "agent_timeout", "fine"]
    assert world.statuses() == ["completed", "expired", "completed"]


def test_a_script_may_ask_for_a_shorter_time_and_for_no_longer_one() -> None:
    async def main(api: Api, _: Any) -> Any:
        await api.settled([api.agent("x", timeout_ms=ms) for ms in (5, 1e12)])

    world = play(main, latency="1h", agent_timeout="10s", max_concurrency=1)
    assert world.ended_s == 10.005


def test_a_model_that_says_nothing_holds_a_slot_no_longer_than_it_may() -> None:
    world = play(one, model=Deaf(), agent_timeout="60s", stop="7s")
    assert world.ended_s == 67
    assert world.statuses() == ["expired"]
    assert world.end.total_tokens == 0


def test_a_run_ends_at_its_deadline() -> None:
    async def main(api: Api, _: Any) -> Any:
        while True:
            await api.sleep(1_000)

    world = play(main, deadline="1h")
    assert world.ended_s == 3600
    assert world.end.status == "failed"
    assert world.end.error == "the run took longer than its deadline of 3600 s"


# Report 8: cancel


async def nested(api: Api, _: Any) -> Any:
    inner = api.graph("inner")
    await api.settled([inner, api.agent("mine"), api.sleep(1e9)])


async def inner(api: Api, _: Any) -> Any:
    await api.settled([api.agent("theirs"), api.agent("queued"), api.sleep(1e9)])


def test_report_8_a_cancel_reaches_sub_graphs_queued_agents_and_sleeps() -> None:
    world = play(
        nested,
        others={"inner": inner},
        latency="100s",
        max_concurrency=2,
        cancels={"r1": 25 * S},
    )
    assert world.end.status == "cancelled"
    assert world.ended_s == 25
    assert world.statuses() == ["cancelled", "cancelled"]
    assert isinstance(world.port, FakeVmPort)
    assert len(world.port.vms) == 2
    assert world.port.left_open == 0
    assert world.sim.contexts["engine"].timers == {}
    assert world.events("graph.finished") == [
        {"run": "r1", "graph": "main/inner", "status": "cancelled"}
    ]
    # Report 16: what they used until then is counted.
    assert world.end.total_tokens == 50
    assert world.end.reported_cost == 0.25


def test_a_cancelled_script_sees_nothing() -> None:
    seen: list[str] = []

    async def main(api: Api, _: Any) -> Any:
        try:
            await api.agent("x")
        except Exception as error:  # noqa: BLE001  whatever it might see
            seen.append(str(error))

    world = play(main, latency="100s", cancels={"r1": S})
    assert world.end.status == "cancelled"
    assert seen == []


def test_a_waiting_run_is_cancelled_at_once() -> None:
    world = play(one, runs={"r1": {}, "r2": {}, "r3": {}}, latency="60s", cancels={"r2": 10 * S})
    ends = world.desk.ends
    assert [ends[run].status for run in ("r1", "r2", "r3")] == [
        "completed", "cancelled", "completed",
    ]  # fmt: skip
    assert [world.desk.ended_us[run] // S for run in ("r1", "r2", "r3")] == [60, 10, 120]
    assert ends["r2"].total_tokens == 0


def test_a_drop_waits_for_no_model_and_gives_its_slots_back() -> None:
    how: Any = {"runs": {"r1": {}, "r2": {}}, "max_runs": 1, "max_concurrency": 2, "stop": "60s"}
    world = GraphWorld(
        mains={"main": nested, "inner": inner}, model=Deaf(), **how,
        cancels={"r1": 10 * S, "r2": 40 * S}, drops={"r1": 20 * S, "r2": 50 * S},
    )  # fmt: skip
    world.run()
    assert world.desk.ended_us == {"r1": 20 * S, "r2": 50 * S}, "the second ran after the first"
    for done in world.desk.ends.values():
        assert (done.status, done.error) == ("cancelled", DROPPED_TEXT)
    assert world.engine.slots.free == FLYING_LIMIT
    assert isinstance(world.port, FakeVmPort)
    assert world.port.left_open == 0


def test_what_ends_at_the_instant_of_a_cancel_still_counts() -> None:
    world = play(one, latency="10s", cancels={"r1": 10 * S})
    assert world.end.total_tokens == 100
    assert world.statuses() == ["completed"]


# Report 9: agents that nobody waits for


def test_report_9_what_nobody_waits_for_is_stopped_and_counted() -> None:
    async def main(api: Api, _: Any) -> Any:
        api.agent("forgotten")
        api.agent("also forgotten")
        return await api.agent("wanted")

    latencies = {"forgotten": 10, "also forgotten": 10, "wanted": 4}
    world = play(main, model=Fixed(lambda ask: (latencies[ask.prompt], {"value": 1})))
    assert world.end.status == "completed"
    assert world.statuses() == ["cancelled", "cancelled", "completed"]
    assert world.end.total_tokens == 40 + 40 + 100
    assert world.ended_s == 4


# Report 15: indirect recursion


def test_report_15_graphs_that_call_each_other_end_at_a_depth() -> None:
    async def main(api: Api, args: Any) -> Any:
        try:
            return await api.graph("other", args)
        except RejectedError as error:
            return error.code if error.code == "graph_depth" else [str(error)]

    async def other(api: Api, args: Any) -> Any:
        return await api.graph("main", args)

    world = play(main, others={"other": other})
    assert world.end.result == "graph_depth"
    depths = [one["depth"] for one in world.events("graph.started")]
    assert depths == list(range(1, DEPTH_LIMIT + 1))


def test_sub_graphs_share_the_ceiling_the_slots_and_the_number_of_agents() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.all([api.graph("part", n) for n in range(4)])

    async def part(api: Api, args: Any) -> Any:
        found = await api.settled([api.agent(f"{args}/{n}") for n in range(25)])
        return sum(1 for one in found if isinstance(one, str))

    world = play(main, others={"part": part}, max_concurrency=4, token_ceiling=1_000)
    assert world.end.total_tokens == 1_200
    assert world.end.result == [12, 0, 0, 0]
    world = play(main, others={"part": part}, max_agents=30)
    assert world.end.result == [25, 5, 0, 0]


def test_sub_graphs_hold_no_slot() -> None:
    async def main(api: Api, args: Any) -> Any:
        depth = args.get("depth", 0)
        if depth == DEPTH_LIMIT:
            return await api.agent("at the bottom")
        found = await api.all([api.graph("main", {"depth": depth + 1}) for _ in range(3)])
        return found[0]

    world = play(main, max_concurrency=1)
    assert world.end.result == "answer to: at the bottom"
    assert len(world.events("agent.started")) == 3**DEPTH_LIMIT


def test_what_becomes_of_a_sub_graph_is_told_with_its_code() -> None:
    async def main(api: Api, _: Any) -> Any:
        names = ("fails", "spends", "hangs", "nowhere")
        found = await api.settled([api.graph(name) for name in names])
        return [[one.failure.kind, one.code, one.failure.info] for one in found]

    async def fails(_api: Api, _: Any) -> Any:
        raise ValueError("no")

    async def spends(api: Api, _: Any) -> Any:
        await api.agent("x", max_tokens=10**9)

    async def hangs(_api: Api, _: Any) -> Any:
        raise VmLimitError("cpu", "it computed for more than 2 s")

    others = {"fails": fails, "spends": spends, "hangs": hangs}
    world = play(main, others=others, token_ceiling=1_000)
    assert world.end.result == [
        ["graph", "graph_failed", {}],
        ["budget", "token_ceiling", {"spent": 0, "ceiling": 1_000}],
        ["graph", "graph_limit", {}],
        ["graph", "graph_not_found", {"retryable": False}],
    ]


def test_what_a_sub_graph_left_in_the_queue_is_never_started() -> None:
    async def main(api: Api, _: Any) -> Any:
        mine = api.agent("mine")
        await api.graph("hasty")
        await mine
        return await api.agent("mine again")

    async def hasty(api: Api, _: Any) -> None:
        api.agent("never")

    world = play(main, others={"hasty": hasty}, max_concurrency=1)
    assert world.end.status == "completed"
    assert [one["graph"] for one in world.events("agent.started")] == ["main", "main"]
    assert world.ended_s == 2


def test_too_many_sub_graphs_at_once_are_refused() -> None:
    async def main(api: Api, _: Any) -> Any:
        found = await api.settled([api.graph("one") for _ in range(300)])
        return sum(1 for one in found if isinstance(one, RejectedError))

    world = play(main, others={"one": one})
    assert world.end.result == 300 - OPEN_GRAPHS_LIMIT


class Missing(FakeVmPort):
    """Where no script can run."""

    def open(self, limits: VmLimits) -> FakeVm:
        raise VmMissingError("Graphs need the JavaScript engine")


def test_a_run_without_a_vm_fails_and_says_why() -> None:
    world = GraphWorld(Missing(main=one), runs={"r1": {}, "r2": {}}).run()
    assert {(end.status, end.error) for end in world.desk.ends.values()} == {
        ("failed", "GraphError: Graphs need the JavaScript engine")
    }


def test_a_script_over_its_limits_ends_its_run() -> None:
    async def main(api: Api, _: Any) -> Any:
        await api.agent("x")
        raise VmLimitError("cpu", "the script computed for more than 2 s")

    end = play(main).end
    assert end.status == "failed"
    assert end.error == "GraphError: the script computed for more than 2 s"
    assert end.total_tokens == 100
