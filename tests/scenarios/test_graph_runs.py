"""The shipped Graphs run, each shows its one thing, and the scenarios about them hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.graphs.messages import AgentAsk
from actors.graphs.meta import read_script
from actors.graphs.script import ScriptVmPort
from scenarios.run import run
from scenarios.shipped import shipped
from tests.actors.graphs.graph_world import GraphWorld
from tests.actors.graphs.models import Fixed

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "graphs"
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.js"))}
SCENARIOS = {name: path for name, path in shipped().items() if name.startswith("graph_runs/")}


def played(name: str, *, args: dict[str, Any] | None = None, **how: Any) -> GraphWorld:
    """Run a shipped Graph to its end."""
    graph = f"{name}.js"
    return GraphWorld(
        ScriptVmPort(), files=FILES, graph=graph, runs={"r1": args or {}}, **how
    ).run()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_about_graphs_holds(name: str) -> None:
    results = run(SCENARIOS[name], replications=50 if name != "graph_runs/ceiling" else None)
    (scenario,) = results.scenarios
    assert len(scenario.judgements) >= 3
    assert results.passed, scenario.judgements


def test_there_are_eight_examples_and_each_says_what_it_shows() -> None:
    assert len(FILES) >= 8
    for name, source in FILES.items():
        assert source.startswith("// "), name
        assert f'name: "{name.removesuffix(".js")}"' in source
        assert read_script(source).meta is not None


@pytest.mark.parametrize("name", [name.removesuffix(".js") for name in FILES])
def test_every_example_runs_to_its_end_twice_alike(name: str) -> None:
    args = {"text": "a long story"} if name == "summarise" else {}
    first, again = (played(name, args=args, token_ceiling=20_000) for _ in range(2))
    assert first.end.status == "completed", first.end.error
    assert first.trace.records == again.trace.records
    assert len(first.events("agent.finished")) == len(first.events("agent.started")) > 0


@pytest.mark.parametrize(("severity", "agents"), [("low", 2), ("high", 4)])
def test_triage_takes_the_path_that_its_first_agent_finds(severity: str, agents: int) -> None:
    found = {"severity": severity, "component": "relay"}
    world = played("triage", model=Fixed(lambda ask: (1, {"value": found if ask.schema else "x"})))
    assert len(world.events("agent.started")) == agents
    assert world.end.result.keys() == {"severity", "component"} | (
        {"answer"} if severity == "low" else {"cause", "patch", "test"}
    )


def test_review_keeps_what_the_others_found() -> None:
    def plan(ask: AgentAsk) -> tuple[float, dict[str, Any]]:
        return (1, {"outcome": "failed"} if "relay" in ask.prompt else {"value": "fine"})

    world = played("review", model=Fixed(plan))
    assert world.end.result == {"summary": "fine", "reviewed": 3, "failed": ["relay.py"]}
    assert [one["text"] for one in world.events("fleet.phase")] == ["review", "sum up"]
    assert [one["text"] for one in world.events("fleet.log")] == ["no review of relay.py"]


def test_translate_waits_for_no_other_text() -> None:
    slow = Fixed(lambda ask: (60 if "Good morning" in ask.prompt else 1, {"value": "x"}))
    world = played("translate", model=slow)
    starts = [one["agent"] for one in world.events("agent.started")]
    assert len(starts) == 6
    assert world.ended_s == 120  # the slow text's two stages, and nobody else's
    assert [one["index"] for one in world.end.result] == [0, 1, 2]


def test_stubborn_tries_each_task_so_often_and_later_each_time() -> None:
    world = played("stubborn", args={"tasks": 2, "attempts": 4}, failure=1)
    assert world.end.result == {"done": 0, "failed": 2}
    assert len(world.events("agent.started")) == 8
    assert [one["delay_ms"] for one in world.events("fleet.retry")] == [
        1_000, 1_000, 2_000, 2_000, 4_000, 4_000,
    ]  # fmt: skip
    assert world.ended_s == 4 + 1 + 2 + 4


def test_research_calls_a_graph_for_each_question() -> None:
    world = played("research", args={"questions": ["one", "two"]})
    assert world.end.result.keys() == {"one", "two"}
    assert [one["graph"] for one in world.events("graph.started")] == ["research/summarise"] * 2
    assert world.end.total_tokens == 400


def test_thorough_stops_in_time() -> None:
    world = played("thorough", tokens=500, token_ceiling=2_300)
    assert world.end.result == {"rounds": 4}
    assert world.end.total_tokens == 2_000
    assert world.events("agent.refused") == []


def test_patient_asks_less_and_less_often() -> None:
    asks = iter([False, False, False, True])
    world = played("patient", model=Fixed(lambda _: (1, {"value": {"ready": next(asks)}})))
    assert world.end.result == {"questions": 4, "seconds": 4 + 5 + 10 + 20}


def test_hundred_keeps_what_was_done_before_the_ceiling() -> None:
    world = played("hundred", max_concurrency=4, token_ceiling=1_000)
    assert (world.end.status, world.end.result) == ("completed", {"done": 12})


def test_fan_is_as_wide_as_it_is_told() -> None:
    world = played("fan", args={"width": 7})
    assert len(world.end.result) == 7
    assert world.ended_s == 1
