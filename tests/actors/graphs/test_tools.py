"""Tools in experiments: calls take a time, owners decide after a while, agents make some calls."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Place
from actors.graphs.messages import (
    Approval,
    Approvals,
    Decide,
    Decided,
    ListApprovals,
    ToolAnswer,
    ToolAsk,
    ToolCancel,
)
from actors.graphs.tools import Approver, SyntheticTools
from tests.actors.graphs.fake_vm import Api
from tests.actors.graphs.graph_world import config_of, play
from tests.actors.graphs.tool_world import ASK
from tests.actors.harness import Bench, S, body_of, only


async def one(api: Api, _: Any) -> Any:
    return await api.agent("do it", tools=("shell", "read_file"))


def ask(call: int = 1, timeout_us: int = 60 * S) -> ToolAsk:
    return ToolAsk(run="r", call=call, tool="shell", timeout_us=timeout_us)


def tools(**keys: Any) -> Bench:
    return Bench(SyntheticTools(config_of(**keys), Place(name="tools")), "tools")


def test_a_call_takes_its_time() -> None:
    bench = tools(tool_latency="7s")
    assert bench.deliver("engine", ask()) == []
    assert body_of(bench.fire("r:1"), ToolAnswer) == ToolAnswer(
        run="r", call=1, ok=True, text="shell was called"
    )
    assert bench.context.now_us == 7 * S


def test_a_call_that_takes_too_long_has_failed() -> None:
    bench = tools(tool_latency="70s")
    bench.deliver("engine", ask())
    answer = body_of(bench.fire("r:1"), ToolAnswer)
    assert (answer.ok, answer.text) == (False, "shell took longer than 60 s")
    assert bench.context.now_us == 60 * S


def test_a_call_that_is_stopped_answers_nothing() -> None:
    bench = tools()
    bench.deliver("engine", ask())
    bench.deliver("engine", ToolCancel(run="r", call=1))
    bench.deliver("engine", ToolCancel(run="r", call=9))
    assert bench.context.timers == {}
    bench.start()
    assert bench.deliver("engine", ToolCancel(run="r", call=1)) == []


def waiting(*calls: int) -> Approvals:
    return Approvals(
        waiting=tuple(
            Approval(
                run="r", graph="g", agent=1, label=None, call=call, tool="shell", arguments=None,
                waited_us=0, left_us=S,
            )
            for call in calls
        )
    )  # fmt: skip


def approver(**keys: Any) -> Bench:
    config = config_of(**{"approval_delay": "9s", **keys})
    return Bench(Approver(config, Place(name="approver")), "approver")


def test_an_owner_looks_decides_after_a_while_and_says_it_until_it_is_heard() -> None:
    bench = approver()
    only(bench.started, ListApprovals, "engine")
    bench.deliver("engine", waiting(1, 2))
    bench.deliver("engine", waiting(1, 2))
    first = only(bench.fire("r:1"), Decide, "engine")
    assert (first.body.call, first.body.allow, bench.context.now_us) == (1, True, 9 * S)
    again = only(bench.unanswered(first), Decide, "engine")
    assert again.body == first.body
    bench.answer(again, Decided(run="r", call=1, known=False))
    only(bench.fire("r:2"), Decide, "engine")


def test_an_owner_who_never_approves_says_no() -> None:
    bench = approver(approves=0)
    bench.deliver("engine", waiting(1))
    assert body_of(bench.fire("r:1"), Decide).allow is False


def test_an_owner_approves_so_often() -> None:
    bench = approver(approves=0.3)
    bench.deliver("engine", waiting(*range(400)))
    yes = sum(body_of(bench.fire(f"r:{call}"), Decide).allow for call in range(400))
    assert 90 < yes < 150


@pytest.mark.parametrize(("calls", "seconds"), [(0, 1), (1, 1 + 2), (5, 1 + 5 * 2)])
def test_agents_make_so_many_calls_one_after_the_other(calls: int, seconds: int) -> None:
    world = play(one, permissions={"*": {"*": "allow"}}, tool_calls=calls)
    assert [event["tool"] for event in world.events("tool.started")] == [
        "shell", "read_file", "shell", "read_file", "shell",
    ][:calls]  # fmt: skip
    assert world.ended_s == seconds
    assert world.end.result == "answer to: do it"


def test_a_run_takes_as_long_as_its_owner() -> None:
    world = play(one, permissions=ASK, tool_calls=3, approval_delay="1m")
    # Four times a second for the model, three for the tools, and two calls of the shell wait.
    assert world.ended_s == 4 + 3 + 2 * 60


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"approves": 1.5}, "approves must be a probability"),
        ({"approval_timeout": "0s"}, "approval_timeout must be longer than 0s"),
        ({"tool_timeout": "0s"}, "tool_timeout must be longer than 0s"),
        ({"permissions": {"*": {"shell": "maybe"}}}, "maybe"),
        ({"permissions": {"": {"shell": "ask"}}}, "permissions name a Graph"),
        ({"tool_calls": -1}, "-1 is not a count"),
    ],
)
def test_mistakes_are_told(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config_of(**keys)
