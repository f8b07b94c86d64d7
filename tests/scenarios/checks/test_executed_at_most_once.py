"""Each run's Graph is started once at most."""

from __future__ import annotations

from pathlib import Path

from actors.messages import CHANNEL, FleetStarted
from scenarios.checks.executed_at_most_once import executed_at_most_once
from scenarios.checks.history import Violation
from tests.scenarios.checks.broken import OTHERS
from tests.scenarios.checks.chaos import chaos_history
from tests.scenarios.checks.tale import Tale

NAME = "executed_at_most_once"
SEED = 0  # one in which a message to the engine comes twice


def test_an_engine_that_starts_a_channel_again_is_found(tmp_path: Path) -> None:
    double = ("[engine]\n", f'[engine]\nuse = "{OTHERS}:DoubleEngine"\n')
    history = chaos_history(tmp_path, "published", SEED, 0.25, double)
    found = list(executed_at_most_once(history))
    assert found
    for violation in found:
        starts = [history.turn(number) for number in violation.records]
        runs = {start.fields["run"] for start in starts}  # type: ignore[union-attr]  # events have fields
        assert violation.sentence == f"run {runs.pop()} was started {len(starts)} times"
        assert not runs
        assert len(starts) > 1


def test_two_starts_are_found_with_their_records() -> None:
    tale = Tale()
    first = tale.event("engine.started", actor="engine", run="r1", execution="e1")
    tale.event("engine.started", actor="engine", run="r2", execution="e2")
    second = tale.event("engine.started", actor="engine", run="r1", execution="e1")
    assert tale.judge(executed_at_most_once) == [
        Violation(NAME, "run r1 was started 2 times", (first, second))
    ]


def test_two_executions_that_relays_were_told_of_are_found_without_events() -> None:
    tale = Tale()
    for execution in ("e1", "e1", "e2"):
        body = FleetStarted(channel=CHANNEL + "r1", execution_id=execution)
        tale.say("engine", "relay", body, lost=execution == "e2")
    assert tale.judge(executed_at_most_once) == [
        Violation(NAME, "run r1 was started as e1 and e2", (1, 3))
    ]


def test_a_start_that_was_undone_never_was() -> None:
    tale = Tale()
    for number in (1, 2):
        turn = tale.recorder.timer(0, "engine", 0, "x")
        tale.event("engine.started", actor="engine", by=turn, run="r1", execution=f"e{number}")
        if number == 1:
            tale.recorder.undone(0, "engine", turn, "the commit failed")
    assert tale.judge(executed_at_most_once) == []


def test_a_relay_s_own_words_count_for_nothing() -> None:
    tale = Tale()
    for _ in range(2):
        tale.event("engine.started", actor="relay", run="r1", execution="e1")
    assert tale.judge(executed_at_most_once) == []
