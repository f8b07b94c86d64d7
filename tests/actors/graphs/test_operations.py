"""What a run consists of: paths, depths, settlements and usage."""

from __future__ import annotations

import pytest

from actors.graphs.messages import AgentAnswer
from actors.graphs.operations import Operation, Script
from actors.graphs.seam import Failure, Request, Settlement


def operation(script: Script | None = None) -> Operation:
    return Operation(7, script or Script(1, "main", "", {}, None), Request(id=3, op="agent"))


def test_a_script_is_known_by_its_callers() -> None:
    root = Script(1, "main", "source", {}, None)
    child = Script(2, "part", "source", {}, operation(root))
    assert (root.path, root.depth) == ("main", 0)
    assert (child.path, child.depth) == ("main/part", 1)
    root.close()
    root.close()


def test_settlements_answer_the_scripts_own_number() -> None:
    assert operation().succeed([1]) == Settlement(id=3, ok=True, value=[1])
    assert operation().fail("graph", "graph_depth", "no", retryable=False) == Settlement(
        id=3,
        ok=False,
        error=Failure(kind="graph", code="graph_depth", message="no", info={"retryable": False}),
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [(None, "the agent failed"), ("", "the agent failed"), ("o\0ver", "o\ufffdver")],
)
def test_an_answer_that_is_no_value_says_why(error: str | None, message: str) -> None:
    answer = AgentAnswer(run="r", agent=7, outcome="failed", error=error, retryable=False)
    told = operation().of_answer(answer).error
    assert told is not None
    assert (told.kind, told.code, told.message) == ("agent", "agent_failed", message)
    assert told.info == {"retryable": False}


def test_usage_adds_up() -> None:
    one = operation()
    for cost in (0.1, 0.2, -4.0, float("nan")):
        one.use(AgentAnswer(run="r", agent=7, outcome="ok", tokens=5, cost=cost))
    assert one.tokens == 20
    assert one.cost == pytest.approx(0.3)
