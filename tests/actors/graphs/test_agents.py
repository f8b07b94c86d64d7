"""Agents with tools: rounds, who is asked, what they are told, slots, time and tokens meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from actors.graphs.agents import ROUNDS_LIMIT
from actors.graphs.calls import UNKNOWN
from actors.graphs.messages import AgentAsk
from tests.actors.graphs.fake_vm import Api, RejectedError
from tests.actors.graphs.graph_world import GraphWorld, play
from tests.actors.graphs.models import Fixed
from tests.actors.graphs.tool_world import ASK, Calling, Counting, Owner, wants
from tests.actors.harness import S

BOTH = ("shell", "read_file")


async def one(api: Api, _: Any) -> Any:
    return await api.agent("do it", tools=BOTH)


async def told(api: Api, _: Any) -> Any:
    try:
        return await api.agent("do it", tools=BOTH)
    except RejectedError as error:
        return [error.code, str(error), error.failure.info.get("retryable")]


def test_an_agent_is_asked_again_with_what_came_of_its_calls() -> None:
    model, tools = Calling(("read_file", "read_file"), ("read_file",)), Counting()
    world = play(one, model=model, tools=tools, permissions=ASK)
    assert world.end.result == ["read_file was called"] * 3
    assert [len(ask.rounds) for ask in model.asks] == [0, 1, 2]
    (first, second) = model.asks[-1].rounds
    assert (first.text, [call.id for call in first.calls]) == ("let me see", ["c0", "c1"])
    assert [result.id for result in first.results] == ["c0", "c1"]
    assert len(second.results) == 1
    assert [ask.call for ask in tools.made] == [1, 2, 3]
    assert world.ended_s == 3 * 1 + 2 * 1
    assert (world.end.total_tokens, world.end.reported_cost) == (300, 0.0)
    assert world.events("agent.finished")[0]["tokens"] == 300
    assert len(world.events("agent.started")) == 1


def test_a_model_is_offered_what_its_script_asks_for_and_may_have() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.agent("x", tools=("shell", "http_get", "shell", "read_file"))

    model = Calling()
    world = play(main, model=model, permissions={"*": {"shell": "ask", "read_file": "allow"}})
    assert model.asks[0].tools == ("shell", "read_file")
    assert world.events("tool.withheld") == [
        {"run": "r1", "graph": "main", "agent": 1, "tool": "http_get"}
    ]


@pytest.mark.parametrize(
    "permissions", [{}, {"*": {"shell": "deny"}}, {"other": {"shell": "allow"}}]
)
def test_what_is_denied_is_told_to_the_agent_and_never_made(permissions: Any) -> None:
    tools = Counting()
    world = play(one, model=Calling(("shell",)), tools=tools, permissions=permissions)
    assert world.end.result == [
        "denied: this is none of the tools that this agent may use: it has none"
    ]
    assert tools.made == []
    assert world.ended_s == 2


def test_what_a_script_did_not_ask_for_is_denied_whatever_its_graph_may() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.agent("x", tools=("read_file",))

    tools = Counting()
    world = play(main, model=Calling(("shell",)), tools=tools, permissions={"*": {"*": "allow"}})
    assert world.end.result == [
        "denied: this is none of the tools that this agent may use: those are read_file"
    ]
    assert tools.made == []


def test_a_sub_graph_has_no_more_rights_than_its_caller() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.graph("part")

    tools = Counting()
    rights = {"main": {"shell": "deny", "read_file": "allow"}, "part": {"*": "allow"}}
    world = play(main, others={"part": one}, model=Calling(BOTH), tools=tools, permissions=rights)
    assert [ask.tool for ask in tools.made] == ["read_file"]
    assert world.end.result[0].startswith("denied: ")


# The owner


def test_what_must_be_asked_waits_for_the_owner() -> None:
    model, tools, owner = Calling(("shell",)), Counting(), Owner({1: (30, True)})
    world = play(one, model=model, tools=tools, owner=owner, permissions=ASK)
    assert world.end.result == ["shell was called"]
    assert world.ended_s == 1 + 30 + 1 + 1
    (waiting,) = owner.seen[-1].waiting
    assert (waiting.run, waiting.graph, waiting.agent, waiting.call) == ("r1", "main", 1, 1)
    assert (waiting.tool, waiting.left_us) == ("shell", 900 * S)
    assert [one.known for one in owner.heard] == [True]
    assert world.events("fleet.finished")[0]["agents"] == 1
    (decided,) = world.events("approval.decided")
    assert (decided["allow"], decided["by"], decided["waited_us"]) == (True, "owner", 30 * S)


def test_a_call_that_the_owner_denies_is_not_made() -> None:
    tools = Counting()
    owner = Owner({1: (5, False)})
    world = play(one, model=Calling(("shell",)), tools=tools, owner=owner, permissions=ASK)
    assert world.end.result == ["denied: the owner did not allow this call"]
    assert tools.made == []
    assert world.ended_s == 7


def test_nobody_decides_and_the_call_is_denied() -> None:
    tools = Counting()
    world = play(
        one, model=Calling(("shell",)), tools=tools, permissions=ASK, approval_timeout="2m"
    )
    assert world.end.result == ["denied: nobody allowed this call within 120 s"]
    assert tools.made == []
    assert world.ended_s == 122
    assert world.events("approval.decided")[0]["by"] == "timeout"


def test_a_decision_that_comes_too_late_changes_nothing() -> None:
    owner = Owner({1: (120, True)})
    how: dict[str, Any] = {
        "model": Calling(("shell",)),
        "permissions": ASK,
        "approval_timeout": "2m",
    }
    world = play(one, owner=owner, tools=Counting(), **how)
    assert world.end.result[0].startswith("denied: nobody")
    assert [one.known for one in owner.heard] == [False]


def test_other_calls_of_a_round_are_made_while_one_waits() -> None:
    tools, owner = Counting(), Owner({1: (30, True)})
    model = Calling(("shell", "read_file"))
    world = play(one, model=model, tools=tools, owner=owner, permissions=ASK)
    assert [ask.tool for ask in tools.made] == ["read_file", "shell"]
    assert [one.id for one in model.asks[-1].rounds[0].results] == ["c0", "c1"], "in their order"
    assert world.ended_s == 33


def test_who_waits_for_its_owner_holds_no_slot() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.all([api.agent(str(n), tools=BOTH) for n in range(3)])

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        asks = ask.prompt == "0" and not ask.rounds
        return 1, wants("shell") if asks else {"value": ask.prompt}

    world = play(
        main, model=Fixed(plan), owner=Owner({1: (60, True)}), permissions=ASK, max_concurrency=1
    )
    assert world.end.result == ["0", "1", "2"]
    assert [one["agent"] for one in world.events("agent.finished")] == [2, 3, 1]
    assert world.ended_s == 1 + 60 + 1 + 1
    assert world.engine.slots.free == 200


def test_who_comes_back_goes_before_those_that_have_not_begun() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.all([api.agent(str(n), tools=BOTH) for n in range(5)])

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        asks = ask.prompt == "0" and not ask.rounds
        return 10, wants("shell") if asks else {"value": ask.prompt}

    world = play(
        main, model=Fixed(plan), owner=Owner({1: (3, True)}), permissions=ASK, max_concurrency=1
    )
    assert [one["agent"] for one in world.events("agent.finished")] == [2, 1, 3, 4, 5]


def test_an_agents_time_stands_still_while_its_owner_thinks() -> None:
    owner = Owner({1: (300, True)})
    how: dict[str, Any] = {"owner": owner, "permissions": ASK, "tools": Counting()}
    world = play(told, model=Calling(("shell",), latency_s=4), agent_timeout="10s", **how)
    assert world.end.result == ["shell was called"]
    assert world.ended_s == 4 + 300 + 1 + 4


def test_but_goes_on_while_tools_and_model_work() -> None:
    world = play(
        told,
        model=Calling(("shell",), latency_s=5),
        owner=Owner({1: (300, True)}),
        permissions=ASK,
        agent_timeout="10s",
        tool_latency="1s",
    )
    assert world.end.result[0] == "agent_timeout"
    assert world.ended_s == 5 + 300 + 5
    assert world.statuses() == ["expired"]


async def two(api: Api, _: Any) -> Any:
    """One that waits for its owner and is back while the other still has the only slot."""
    return await api.all(
        [api.agent("asks", tools=BOTH, timeout_ms=10_000), api.agent("works for long")]
    )


def one_asks(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
    if ask.prompt == "works for long":
        return 50, {"value": "done"}
    return 1, {"value": "came back"} if ask.rounds else wants("shell")


def test_an_agents_time_stands_still_too_while_it_waits_for_a_slot_again() -> None:
    model = Fixed(one_asks)
    how: dict[str, Any] = {"permissions": ASK, "max_concurrency": 1, "max_agents": 2}
    world = play(two, model=model, owner=Owner({1: (3, True)}), **how)
    assert world.end.result == ["came back", "done"]
    assert model.asks[-1].timeout_us == 10 * S - 1 * S - 1 * S
    assert world.ended_s == 52
    assert world.events("agent.refused") == [], "it counts once among the agents of the run"


def test_a_cancel_finds_who_waits_for_a_slot_again() -> None:
    how: dict[str, Any] = {"permissions": ASK, "max_concurrency": 1}
    owner = Owner({1: (3, True)})
    world = play(two, model=Fixed(one_asks), owner=owner, cancels={"r1": 20 * S}, **how)
    assert world.end.status == "cancelled"
    assert world.statuses() == ["cancelled", "cancelled"]
    assert world.engine.slots.free == 200


# Bounds


def test_what_an_agent_has_used_is_no_longer_kept_for_it() -> None:
    async def main(api: Api, _: Any) -> Any:
        sizes = {"long": 600, "short": 400, "third": 300}
        return await api.all(
            [api.agent(name, tools=BOTH, max_tokens=most) for name, most in sizes.items()]
        )

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        if ask.prompt == "long" and len(ask.rounds) < 4:
            return 1, wants("read_file")
        return 3.5, {"value": ask.prompt}

    world = play(main, model=Fixed(plan), permissions=ASK, token_ceiling=1_000)
    assert world.end.result == ["long", "short", "third"]
    ends = [one["agent"] for one in world.events("agent.finished")]
    assert ends == [2, 3, 1], "the third began when the second had ended"


def test_no_repair_once_an_agents_own_tokens_are_used() -> None:
    async def main(api: Api, _: Any) -> Any:
        try:
            return await api.agent("x", tools=BOTH, schema={"type": "integer"}, max_tokens=200)
        except RejectedError as error:
            return str(error)

    model = Fixed(lambda ask: (1, {"value": "five"} if ask.rounds else wants("read_file")))
    world = play(main, model=model, permissions=ASK)
    assert world.end.result == 'the answer does not fit: "five" is not of type "integer"'
    assert len(model.asks) == 2


def test_the_ceiling_is_looked_at_before_each_question() -> None:
    model = Calling(*[("read_file",)] * 20)
    world = play(told, model=model, permissions=ASK, token_ceiling=250)
    assert world.end.result[0] == "token_ceiling"
    assert world.end.total_tokens == 300
    assert len(model.asks) == 3


def test_the_ceiling_holds_for_those_who_come_back_from_their_owner() -> None:
    async def main(api: Api, _: Any) -> Any:
        return [
            getattr(one, "code", one)
            for one in await api.settled([api.agent(str(n), tools=BOTH) for n in range(3)])
        ]

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        asks = ask.prompt == "0" and not ask.rounds
        return 1, wants("shell") if asks else {"value": ask.prompt}

    world = play(
        main, model=Fixed(plan), owner=Owner({1: (60, True)}), permissions=ASK, token_ceiling=300
    )
    assert world.end.result == ["token_ceiling", "1", "2"]
    assert world.end.total_tokens == 300


def test_an_agent_with_max_tokens_stays_within_them_over_all_rounds() -> None:
    async def main(api: Api, _: Any) -> Any:
        try:
            return await api.agent("x", tools=BOTH, max_tokens=250)
        except RejectedError as error:
            return [error.code, str(error)]

    model = Calling(*[("read_file",)] * 20)
    world = play(main, model=model, permissions=ASK, token_ceiling=1_000)
    assert [ask.max_tokens for ask in model.asks] == [250, 150, 50]
    assert world.end.result == [
        "agent_failed",
        "the agent's maxTokens were used before it was done",
    ]
    assert world.engine.slots.free == 200


def test_an_agent_goes_only_so_many_rounds() -> None:
    model = Calling(*[("read_file",)] * (ROUNDS_LIMIT + 9), latency_s=0)
    world = play(told, model=model, permissions=ASK)
    assert world.end.result == ["agent_failed", "an agent has at most 50 rounds of tools", False]
    assert len(model.asks) == ROUNDS_LIMIT + 1


def test_what_an_agent_must_be_told_fits_into_a_message() -> None:
    flood = Counting(lambda _: {"text": "x" * 100_000})
    model = Calling(*[("read_file",) * 10] * 5)
    world = play(told, model=model, tools=flood, permissions=ASK)
    assert world.end.result == [
        "agent_failed", "prompt, calls and their results have more than 1,000,000 bytes", False,
    ]  # fmt: skip
    assert len(model.asks) == 2


def test_asking_for_tools_without_a_call_is_a_failure_that_may_pass() -> None:
    world = play(told, model=Fixed(lambda _: (1, {"outcome": "tools"})), permissions=ASK)
    assert world.end.result == ["agent_failed", "the agent asked for tools and named none", True]


def test_an_answer_with_calls_without_end_is_a_failure_that_may_pass() -> None:
    tools = Counting()
    world = play(told, model=Calling(("read_file",) * 257), tools=tools, permissions=ASK)
    assert world.end.result == ["agent_failed", "the agent asked for 257 tool calls at once", True]
    assert (tools.made, world.events("tool.asked")) == ([], [])


def test_an_answer_after_tools_keeps_its_schema_and_is_repaired_once() -> None:
    async def main(api: Api, _: Any) -> Any:
        return await api.agent("x", tools=BOTH, schema={"type": "integer"})

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        if not ask.rounds:
            return 1, wants("read_file")
        return 1, {"value": 5 if ask.problem else "five"}

    model = Fixed(plan)
    assert play(main, model=model, permissions=ASK).end.result == 5
    assert [(len(ask.rounds), ask.problem is None) for ask in model.asks] == [
        (0, True), (1, True), (1, False),
    ]  # fmt: skip


# Tools that say nothing, and agents that nobody waits for


def test_tools_that_say_nothing_leave_it_unknown_whether_it_happened() -> None:
    tools = Counting(lambda _: None)
    world = play(
        one, model=Calling(("read_file",)), tools=tools, permissions=ASK, tool_timeout="20s"
    )
    assert world.end.result == [UNKNOWN]
    assert world.ended_s == 1 + 21 + 1
    assert tools.cancelled == [1]
    assert world.events("tool.finished")[0]["status"] == "unknown"


def test_a_call_gets_no_more_time_than_its_agent_has_left() -> None:
    tools = Counting(lambda _: None)
    how: dict[str, Any] = {"tools": tools, "permissions": ASK, "agent_timeout": "10s"}
    world = play(told, model=Calling(("read_file",), latency_s=4), **how)
    assert tools.made[0].timeout_us == 6 * S
    assert world.end.result[0] == "agent_timeout"
    assert world.engine.slots.free == 200


@pytest.mark.parametrize("tool", BOTH)
def test_a_cancel_stops_calls_and_drops_what_waits(tool: str) -> None:
    tools, owner = Counting(lambda _: None), Owner({1: (500, True)})
    world = play(
        one,
        model=Calling((tool,)),
        tools=tools,
        owner=owner,
        permissions=ASK,
        cancels={"r1": 9 * S},
    )
    assert world.end.status == "cancelled"
    assert world.ended_s == 9
    assert tools.cancelled == ([1] if tool == "read_file" else [])
    assert world.statuses() == ["cancelled"]
    assert world.engine.slots.free == 200
    ends = world.events("tool.finished" if tool == "read_file" else "approval.decided")
    assert [one.get("status", one.get("by")) for one in ends] == ["cancelled"]


def test_the_deadline_ends_a_run_that_waits_for_its_owner() -> None:
    world = play(one, model=Calling(("shell",)), permissions=ASK, deadline="1m")
    assert (world.end.status, world.ended_s) == ("failed", 60)


def test_who_loses_a_race_is_taken_back_from_its_owner() -> None:
    async def main(api: Api, _: Any) -> Any:
        api.agent("loser", tools=BOTH)
        return await api.agent("winner")

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        return (1, wants("shell")) if ask.prompt == "loser" else (5, {"value": "won"})

    world = play(main, model=Fixed(plan), permissions=ASK)
    assert (world.end.result, world.ended_s) == ("won", 5)
    assert world.events("approval.decided")[0]["by"] == "cancelled"


def test_a_world_with_tools_is_the_same_twice() -> None:
    def world() -> GraphWorld:
        return GraphWorld(
            mains={"main": one},
            permissions=ASK,
            tool_calls="uniform(0, 6)",
            approval_delay="exponential(mean=1m)",
            approves=0.5,
            seed=7,
        )

    assert world().run().trace.records == world().run().trace.records
