"""What is known of a run from its events, and the lines that tell of it."""

from typing import Any

import pytest

from scenarios.graph_progress import Progress, line_of, money, one_line

RUN = {"run": "r", "graph": "g"}
EVENTS: list[tuple[int, str, dict[str, Any]]] = [
    (0, "fleet.started", {**RUN, "execution": "e"}),
    (0, "fleet.phase", {**RUN, "text": "sort"}),
    (0, "agent.started", {**RUN, "agent": 1, "label": "one", "phase": "sort"}),
    (0, "agent.started", {**RUN, "agent": 2, "label": None, "phase": "sort"}),
    (1_500_000, "agent.finished", {**RUN, "agent": 1, "status": "completed", "code": None,
                                   "tokens": 100, "cost": 0.1, "spent": 100}),
    (1_500_000, "graph.started", {"run": "r", "graph": "g/h", "depth": 1}),
    (1_600_000, "fleet.log", {"run": "r", "graph": "g/h", "text": "found\n 3"}),
    (1_700_000, "fleet.retry", {**RUN, "text": "busy", "attempt": 1}),
    (2_000_000, "agent.finished", {**RUN, "agent": 2, "status": "expired", "code": "agent_timeout",
                                   "tokens": 20, "cost": 0.2, "spent": 120}),
    (2_000_000, "agent.refused", {**RUN, "agent": 3, "code": "token_ceiling"}),
    (2_100_000, "graph.finished", {"run": "r", "graph": "g/h", "status": "failed"}),
    (2_200_000, "fleet.finished", {"run": "r", "status": "failed", "tokens": 120, "cost": 0.3,
                                   "agents": 2, "refused": 1}),
]  # fmt: skip


def played(ceiling: int | None = None, until: int = len(EVENTS)) -> Progress:
    progress = Progress(ceiling)
    for event in EVENTS[:until]:
        progress.take(*event)
    return progress


def test_the_state_of_a_run_that_has_ended() -> None:
    progress = played(1000)
    assert (progress.status, progress.tokens, progress.cost, progress.left) == (
        "failed", 120, 0.3, 880,
    )  # fmt: skip
    phase = progress.graphs["g"].phases["sort"]
    assert [(one.shown, one.status, one.ended_us) for one in phase.agents] == [
        ("one", "completed", 1_500_000),
        ("agent 2", "expired", 2_000_000),
    ]
    assert phase.refused == 1
    assert progress.graphs["g/h"].status == "failed"
    assert progress.said == "busy"


def test_the_account_in_one_line() -> None:
    assert played().totals() == (
        "1 of 2 agents done; 1 too late; 1 refused; 120 tokens; cost 0.3000"
    )
    assert "120 of 100 tokens, 0 left" in played(100).totals()


def test_on_the_way_what_has_ended_counts() -> None:
    progress = played(until=5)
    assert (progress.status, progress.tokens, progress.cost) == ("working", 100, 0.1)
    assert (progress.count("working"), progress.count("completed")) == (1, 1)


def test_each_event_is_a_line_or_nothing() -> None:
    progress, lines = Progress(None), []
    for event in EVENTS:
        progress.take(*event)
        lines.append(line_of(*event, progress))
    assert lines == [
        "     0.0 s  g started as r",
        "     0.0 s  phase sort",
        "     0.0 s  … one",
        "     0.0 s  … agent 2",
        "     1.5 s  ✓ one completed after 1.5 s, 100 tokens, cost 0.1000",
        None,
        "     1.6 s  h: found 3",
        "     1.7 s  attempt 1 failed, again: busy",
        "     2.0 s  ⌛ agent 2 expired agent_timeout after 2.0 s, 20 tokens, cost 0.2000",
        "     2.0 s  agent 3 refused: token_ceiling",
        "     2.1 s  h: ended: failed",
        "     2.2 s  failed: 1 of 2 agents done; 1 too late; 1 refused; 120 tokens; cost 0.3000",
    ]


@pytest.mark.parametrize(
    ("cost", "shown"), [(0, "0.00"), (0.0123, "0.0123"), (1.5, "1.50"), (0.00001, "0.0000")]
)
def test_money(cost: float, shown: str) -> None:
    assert money(cost) == shown


def test_what_a_script_says_can_not_move_the_terminals_cursor() -> None:
    shown = one_line("a\x1b[2J\n\tb" + "x" * 500)
    assert shown.startswith("a␛[2J b")
    assert len(shown) == 200
    fields = {**RUN, "text": "{x} {0} {graph}"}
    assert line_of(0, "fleet.log", fields, Progress(None)) == "     0.0 s  {x} {0} {graph}"
