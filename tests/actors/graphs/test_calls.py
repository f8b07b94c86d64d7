"""Tool calls of a run: bounds, clean texts, and what events tell: never arguments."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.graphs import calls
from actors.graphs.calls import RESULT_LIMIT_CHARS, ROUND_CALLS_LIMIT, bounded_text
from actors.graphs.messages import AgentAsk, ToolAnswer, ToolCall
from tests.actors.graphs.fake_vm import Api
from tests.actors.graphs.graph_world import GraphWorld, play
from tests.actors.graphs.models import Fixed
from tests.actors.graphs.tool_world import ASK, Calling, Counting, Owner, wants

FREE = {"*": {"*": "allow"}}


async def one(api: Api, _: Any) -> Any:
    return await api.agent("do it", tools=("shell", "read_file"), label="worker")


def once(call: ToolCall) -> Fixed:
    """A model that wants one call, and tells what came of it."""

    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        if ask.rounds:
            return 1, {"value": ask.rounds[0].results[0].text}
        return 1, {"outcome": "tools", "calls": (call,)}

    return Fixed(plan)


def test_events_tell_of_each_call_from_beginning_to_end() -> None:
    model = Calling(("shell",), ("http_get",))
    world = play(one, model=model, tools=Counting(), owner=Owner({1: (7, True)}), permissions=ASK)
    call = {"run": "r1", "graph": "main", "agent": 1, "call": 1, "tool": "shell"}
    other = call | {"call": 2, "tool": "http_get"}
    assert world.events("tool.asked") == [
        call | {"permission": "ask", "chars": 4},
        other | {"permission": "deny", "chars": 4},
    ]
    assert world.events("approval.waiting") == [call | {"timeout_us": 900_000_000}]
    assert world.events("approval.decided") == [
        call | {"allow": True, "by": "owner", "waited_us": 7_000_000}
    ]
    assert world.events("tool.started") == [call]
    assert world.events("tool.finished") == [
        call | {"status": "ok", "chars": len("shell was called"), "took_us": 1_000_000}
    ]


def secrets_in(world: GraphWorld) -> list[Any]:
    events = [record for record in world.trace.records if record[0] == "event"]
    return [record for record in events if "hunter2" in repr(record)]


@pytest.mark.parametrize("tool", ["shell", "read_file", "http_get"])
def test_no_event_has_arguments_or_results(tool: str) -> None:
    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        return 1, {"value": "x"} if ask.rounds else wants(tool, arguments={"password": "hunter2"})

    tools = Counting(lambda _: {"text": "hunter2"})
    world = play(one, model=Fixed(plan), tools=tools, owner=Owner({1: (1, True)}), permissions=ASK)
    assert len(world.events("tool.asked")) == 1
    assert secrets_in(world) == []


def test_a_failed_call_is_told_with_its_reason() -> None:
    tools = Counting(lambda _: {"ok": False, "text": "no such file"})
    model = Calling(("read_file",))
    world = play(one, model=model, tools=tools, permissions=ASK)
    assert world.end.result == ["no such file"]
    assert model.asks[-1].rounds[0].results[0].ok is False
    assert world.events("tool.finished")[0]["status"] == "failed"


def test_results_are_clean_and_cut_with_a_word_about_it() -> None:
    assert bounded_text("a\0b\ud800") == "a\ufffdb\ufffd"
    assert bounded_text("x" * RESULT_LIMIT_CHARS) == "x" * RESULT_LIMIT_CHARS
    assert bounded_text("x" * 60_000) == "x" * 50_000 + "\n(cut: it has 60,000 characters)"
    assert bounded_text("🙂" * 30_000).startswith("🙂" * 25_000 + "\n(cut: it has 60,000")


@pytest.mark.parametrize("arguments", [{"a": "x\0\ud800"}, [1.5, float("nan")], None, "text", 5])
def test_arguments_are_made_clean_and_handed_on(arguments: Any) -> None:
    tools = Counting()
    model = once(ToolCall(id="c\0", tool="read_file", arguments=arguments))
    world = play(one, model=model, tools=tools, permissions=ASK)
    assert world.end.result == "read_file was called"
    (made,) = tools.made
    assert msgspec.json.decode(msgspec.json.encode(made.arguments)) == made.arguments
    assert model.asks[-1].rounds[0].results[0].id == "c\ufffd"


def deep() -> Any:
    found: Any = None
    for _ in range(70):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (deep(), "denied: the arguments can't be written as JSON, or are nested too deep"),
        ({"x": {1, 2}}, "denied: the arguments can't be written as JSON, or are nested too deep"),
        ({"x": "y" * 20_000}, "denied: arguments have at most 20,000 characters"),
    ],
)
def test_arguments_that_no_owner_could_look_at_are_denied(arguments: Any, words: str) -> None:
    tools = Counting()
    model = once(ToolCall(id="c", tool="read_file", arguments=arguments))
    assert play(one, model=model, tools=tools, permissions=ASK).end.result == words
    assert tools.made == []


def test_only_so_many_calls_are_made_at_once() -> None:
    tools = Counting()
    model = Calling(("read_file",) * (ROUND_CALLS_LIMIT + 2))
    world = play(one, model=model, tools=tools, permissions=ASK)
    assert len(tools.made) == ROUND_CALLS_LIMIT
    assert world.end.result[-2:] == ["denied: at most 32 calls are made at once"] * 2


def test_a_run_has_only_so_many_calls_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "OPEN_CALLS_LIMIT", 2)
    tools = Counting()
    model = Calling(("read_file", "shell", "read_file"), ("read_file",))
    how: dict[str, Any] = {"owner": Owner({2: (5, True)}), "permissions": ASK}
    world = play(one, model=model, tools=tools, **how)
    assert [ask.call for ask in tools.made] == [1, 2, 4]
    assert world.end.result[2] == "denied: 2 calls of this run wait or are made: try again later"


def test_a_run_makes_only_so_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALLS_LIMIT", 3)
    tools = Counting()
    model = Calling(("read_file",) * 2, ("read_file",) * 2)
    world = play(one, model=model, tools=tools, permissions=ASK)
    assert len(tools.made) == 3
    assert world.end.result[-1] == "denied: a run may make 3 calls"


@pytest.mark.parametrize("tool", ["read_file ", "READ_FILE", "read_file\0", "", "*", "r" * 300])
def test_a_name_that_is_not_exactly_a_tools_is_denied(tool: str) -> None:
    tools = Counting()
    world = play(one, model=once(ToolCall(id="c", tool=tool)), tools=tools, permissions=FREE)
    assert world.end.result.startswith("denied: this is none of the tools")
    assert tools.made == []
    assert len(world.events("tool.asked")[0]["tool"]) <= 200


def test_answers_of_others_and_late_ones_change_nothing() -> None:
    """Tools that answer twice, and for calls that nobody made."""
    tools = Counting()
    world = GraphWorld(
        mains={"main": one}, model=Calling(("read_file",)), tools=tools, permissions=ASK
    )
    engine = world.engine

    def stray() -> None:
        context = world.sim.contexts["tools"]
        for call in (1, 2, 99):
            for run in ("r1", "r2"):
                body = ToolAnswer(run=run, call=call, ok=True, text="forged")
                context.send("engine", body)

    world.at(1_500_000, stray).run()
    assert world.end.result == ["read_file was called"]
    assert engine.fleets == {}
