"""Reports from people who run such scripts, tried with real scripts on the real engine.

Those that concern the VM alone are tried with it; these concern what the engine and the script's
own functions do together.
"""

from __future__ import annotations

from typing import Any

import pytest

from actors.graphs.script import ScriptVmPort
from tests.actors.graphs.graph_world import GraphWorld
from tests.actors.graphs.models import Deaf, Fixed
from tests.actors.harness import S

pytest.importorskip("quickjs", reason="quickjs-ng has no wheel for this machine")

PARALLEL = "parallel(Array.from({ length: 100 }, (_, n) => () => agent(`number ${n}`)))"


def run(script: str, **how: Any) -> GraphWorld:
    """Run a script to its end; others are its sub-graphs."""
    others = {f"{name}.js": text for name, text in how.pop("others", {}).items()}
    return GraphWorld(ScriptVmPort(), files={"main.js": script, **others}, **how).run()


@pytest.mark.parametrize(("slots", "spent"), [(1, 1_000), (4, 1_200), (16, 1_600)])
def test_report_1_parallel_does_not_multiply_the_ceiling(slots: int, spent: int) -> None:
    world = run(f"await {PARALLEL}", max_concurrency=slots, token_ceiling=1_000)
    assert world.end.total_tokens == spent
    assert world.end.status == "failed"


def test_report_2_queued_thunks_do_not_pass_the_gate() -> None:
    world = run(f"await {PARALLEL}", max_concurrency=3, token_ceiling=100)
    assert len(world.events("agent.started")) == 3
    assert len(world.events("agent.refused")) == 97


def test_report_3_parallel_does_not_swallow_the_ceiling() -> None:
    settled = PARALLEL[:-1] + ", { settle: true })"
    world = run(
        f"try {{ await {settled}; return 'swallowed'; }} catch (e) {{ return [e.name, e.code]; }}",
        token_ceiling=1_000,
    )
    assert world.end.result == ["BudgetError", "token_ceiling"]


def test_report_4_results_are_not_lost_at_the_ceiling() -> None:
    world = run(f"await {PARALLEL}", max_concurrency=4, token_ceiling=1_000)
    assert world.end.status == "failed"
    assert world.end.error is not None
    assert world.end.error.startswith("BudgetError: the token ceiling is reached")
    assert world.end.result[:12] == [f"answer to: number {n}" for n in range(12)]
    assert world.end.result[12:] == [None] * 88


def test_report_5_retries_make_no_storm() -> None:
    task = "retry(() => agent('x'), { attempts: 10 })"
    script = f"return (await parallel(Array(200).fill(() => {task}), {{ settle: true }})).length"
    world = run(script, failure=1, max_concurrency=50)
    assert len(world.events("agent.started")) == 1_000
    assert {one["code"] for one in world.events("agent.refused")} == {"agent_limit"}
    assert world.end.result == 200


def test_report_6_an_agent_that_loops_for_ever_ends() -> None:
    script = "try { await agent('loop', { timeoutMs: 30_000 }) } catch (e) { return e.code }"
    world = run(script, model=Deaf())
    assert world.end.result == "agent_timeout"
    assert world.ended_s == 35  # and five seconds in which the model may say what it used


def test_report_7_one_stuck_agent_does_not_lose_all() -> None:
    world = run(
        "const found = await parallel(['a', 'stuck', 'b'].map(word => () => agent(word)),"
        " { settle: true }); return found.map(one => one.value ?? one.error.code)",
        model=Fixed(lambda ask: (1e6 if ask.prompt == "stuck" else 1, {"value": ask.prompt})),
    )
    assert world.end.result == ["a", "agent_timeout", "b"]


def test_report_8_a_cancel_reaches_the_sub_graph() -> None:
    world = run(
        "await graph('inner')",
        others={"inner": "try { await graph('deep') } finally { log('seen') }",
                "deep": "await parallel([() => agent('x'), () => sleep(1e9)])"},
        latency="100s",
        cancels={"r1": 40 * S},
    )  # fmt: skip
    assert (world.end.status, world.ended_s) == ("cancelled", 40)
    assert world.end.total_tokens == 40
    assert world.events("fleet.log") == []
    assert len(world.events("graph.finished")) == 2


def test_report_9_a_launch_that_nobody_awaits_is_told() -> None:
    world = run("agent('forgotten'); return await agent('wanted')")
    assert world.end.status == "failed"
    assert world.end.error is not None
    assert world.end.error.startswith("GraphError: the script ended before")
    assert '"forgotten"' in world.end.error
    assert world.statuses() == ["completed", "completed"]
    world = run("agent('forgotten'); return 1")
    assert world.end.status == "failed"
    assert world.events("agent.started") == []


def test_report_9_a_launch_that_is_awaited_later_is_no_false_alarm() -> None:
    world = run("const one = agent('a'); const two = one.then(x => x + '!'); return await two")
    assert world.end.result == "answer to: a!"


def test_report_10_a_catch_loop_at_the_ceiling_ends() -> None:
    world = run("for (;;) { try { await agent('x') } catch {} }", token_ceiling=500)
    assert world.end.status == "failed"
    assert world.end.error == "more than 10,000 agents of the run were refused"
    assert world.end.total_tokens == 500


def test_report_15_indirect_recursion_ends() -> None:
    world = run(
        "try { return await graph('other') } catch (e) { return [e.name, e.code] }",
        others={"other": "return await graph('main')"},
    )
    assert world.end.result == ["GraphError", "graph_depth"]


def test_report_16_a_cancelled_agents_usage_counts() -> None:
    world = run("await agent('x')", latency="100s", tokens=1_000, cancels={"r1": 25 * S})
    assert (world.end.status, world.end.total_tokens) == ("cancelled", 250)
    (agent,) = world.events("agent.finished")
    assert (agent["status"], agent["tokens"]) == ("cancelled", 250)


def test_the_ceiling_of_a_sub_graph_is_the_runs() -> None:
    world = run(
        "try { await graph('part') } catch (e) { return [e.name, e.code, e.partial.length] }",
        others={"part": f"await {PARALLEL}"},
        token_ceiling=1_000,
    )
    assert world.end.result == ["BudgetError", "token_ceiling", 100]


def test_a_mistake_of_the_script_is_told_with_its_place() -> None:
    world = run("const a = 1;\nawait agent('x');\n  nothing.at.all;\n")
    assert world.end.status == "failed"
    assert world.end.error is not None
    assert world.end.error.startswith("ReferenceError: nothing is not defined (line 3, column ")
    assert world.end.total_tokens == 100
    assert run("return (").end.error is not None


def test_time_and_chance_are_the_runs_own() -> None:
    script = "const t = Date.now(); await sleep(1500); return [Date.now() - t, Math.random()]"
    first, again = run(script).end.result, run(script).end.result
    assert first == again
    assert first[0] == 1_500
    assert run(script, seed=2).end.result[1] != first[1]


def test_ten_thousand_agents_in_one_real_run() -> None:
    script = """
    let done = 0;
    for (let part = 0; part < 5; part++) {
      done += (await parallel(Array.from({ length: 2000 }, (_, n) => () => agent("x")))).length;
    }
    return done;
    """
    world = run(script, max_concurrency=200, max_agents=10_000)
    assert world.end.result == 10_000
    assert world.end.total_tokens == 1_000_000
    assert world.ended_s == 50
