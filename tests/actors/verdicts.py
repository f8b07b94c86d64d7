"""What must be so at the end of a story, whatever became of its messages, commits and processes."""

from __future__ import annotations

from typing import Any

from actors.messages import TERMINAL, GraphRun
from actors.simulator import Simulator
from tests.actors.harness import Trace, rows


def complaints(sim: Simulator, trace: Trace, unheard: int = 0) -> list[str]:
    """What is not as it must be in the end.

    Of so many turns nothing may have been heard, though they committed: their process died then.
    """
    runs = rows(sim, "server", "runs")
    starts, ends = len(trace.events("engine.started")), len(trace.events("run.terminal"))
    refused = bool(trace.events("agent.refused"))  # its session was no longer shared
    told = any(body.status in TERMINAL for body in trace.bodies(GraphRun))
    holds = {
        f"{len(runs)} runs were queued": len(runs) == (0 if refused else 1),
        "a run stands still": all(run.status in TERMINAL for run in runs),
        f"{ends} ends for {len(runs)} runs": len(runs) - unheard <= ends <= len(runs),
        "the agent still waits": all(job.ended for job in rows(sim, "agent", "jobs")),
        "nobody told the agent": told or refused,
        f"the Graph started {starts} times": starts <= 1,
        "the Graph has more than one execution": len(rows(sim, "engine", "executions")) <= 1,
        "the outbox is not empty": not rows(sim, "relay", "outbox"),
        "the engine still reports an end": not any(
            execution.open for execution in rows(sim, "engine", "executions")
        ),
        "the relay still looks after a run": not any(
            attempt.open for attempt in rows(sim, "relay", "journal")
        ),
        "a completed run has no result": all(
            run.status != "completed" or run.completion.result == "xx" for run in runs
        ),
        "a result was lost": executed(sim) <= known(runs),
    }
    return [complaint for complaint, true in holds.items() if not true]


def executed(sim: Simulator) -> set[str]:
    """The executions that ended, of which the relay told the engine that it has the end on disk."""
    executions = rows(sim, "engine", "executions")
    return {each.execution_id for each in executions if each.open is None and each.execution_id}


def known(runs: list[Any]) -> set[str]:
    """The executions of which the server knows the end."""
    ends = [done for run in runs for done in (run.completion, run.late) if done is not None]
    return {done.execution_id for done in ends if done.execution_id is not None}
