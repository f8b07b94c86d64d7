"""Nothing of a run starts after the server has said that it is cancelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.messages import GraphRun
from scenarios.checks.cancelled_never_starts import cancelled_never_starts
from scenarios.checks.history import Violation
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import Tale

NAME = "cancelled_never_starts"
QUEUED_BEHIND = """
[relay]
phase = "5s"
[engine]
duration = "30s"
[run]
until = "200s"
[[agent]]
runs = 2
cancel = "10s"
"""


def test_a_server_that_lets_a_cancelled_run_start_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "LenientServer", QUEUED_BEHIND)
    (found,) = cancelled_never_starts(history)
    cancelled, started = (history.turn(number) for number in found.records)
    assert cancelled in history.events("run.terminal")
    assert started in history.events("engine.started")
    run = started.fields["run"]  # type: ignore[union-attr]  # an event has fields
    assert found.sentence == f"run {run} was cancelled, and then the engine let it start"


@pytest.mark.parametrize(
    ("event", "who"), [("run.started", "the server"), ("engine.started", "the engine")]
)
def test_either_start_is_found(event: str, who: str) -> None:
    tale = Tale()
    cancelled = tale.end("cancelled")
    actor = "engine" if who == "the engine" else "server"
    started = tale.event(event, actor=actor, run="r1", execution="e1")
    words = f"run r1 was cancelled, and then {who} let it start"
    assert tale.judge(cancelled_never_starts) == [Violation(NAME, words, (cancelled, started))]


def test_an_answer_proves_it_from_when_it_was_said() -> None:
    tale = Tale()
    early = tale.recorder.timer(0, "server", 0, "x")
    started = tale.event("engine.started", actor="engine", run="r1", execution="e1")
    body = GraphRun(command_id="r1", status="cancelled")
    told = tale.say("server", "claude", body, by=early, lost=True)
    words = "run r1 was cancelled, and then the engine let it start"
    assert tale.judge(cancelled_never_starts) == [Violation(NAME, words, (told, started))]


def test_a_run_that_ran_before_it_was_cancelled_or_ended_otherwise_is_none() -> None:
    tale = Tale()
    tale.event("run.started", run="r1", device="relay")
    tale.event("engine.started", actor="engine", run="r1", execution="e1")
    tale.end("cancelled")
    tale.end("interrupted", "r2")
    tale.event("engine.started", actor="engine", run="r2", execution="e2")
    assert tale.judge(cancelled_never_starts) == []
