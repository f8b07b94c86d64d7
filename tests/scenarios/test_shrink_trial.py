"""Trials: what a candidate shows, and which candidates show nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from scenarios.problems import ScenarioError
from scenarios.shrink_trial import (
    Goal,
    Shown,
    holds,
    replication_of,
    scenario_of_data,
    show,
)

UNSAFE = Path(__file__).resolve().parents[2] / "scenarios" / "ablation" / "unsafe.py"
TWICE: dict[str, Any] = {
    "schema": 1,
    "name": "twice",
    "run": {"check": "executed_at_most_once"},
    "engine": {"use": f"{UNSAFE}:NoUniqueStart"},
    "fault": [{"kind": "duplicate", "message": "FleetRun", "nth": 1}],
}
HERE = Path("/")
USERS = """
from pullcord import Relay, messages

class Raising(Relay):
    def on_start_answer(self, context, envelope):
        print("never seen")
        raise RuntimeError("oh")

class Leaving(Relay):
    def on_start_answer(self, context, envelope):
        raise SystemExit(4)

class Calling(Relay):
    def on_start_answer(self, context, envelope):
        context.send("nobody", messages.FleetUnknown(channel="x"))

class Looping(Relay):
    def on_start_answer(self, context, envelope):
        while True:
            pass

def late(history):
    raise ValueError("no")
"""


@pytest.fixture
def users(tmp_path: Path) -> str:
    path = tmp_path / "users.py"
    path.write_text(USERS)
    return str(path)


def data_with(**tables: Any) -> dict[str, Any]:
    return {"schema": 1, "name": "tried", **tables}


def test_a_violation_is_shown_and_held(capsys: pytest.CaptureFixture[str]) -> None:
    shown = show(TWICE, "", HERE)
    assert list(shown.checks) == ["executed_at_most_once"]
    goal = Goal(check="executed_at_most_once")
    assert shown.sentence_of(goal).endswith("was started 2 times")
    assert holds(goal, "", HERE, TWICE)
    assert not holds(Goal(check="bounds_hold"), "", HERE, TWICE)
    assert not holds(goal, "", HERE, {**TWICE, "fault": []})
    assert goal.words == "executed_at_most_once"
    assert capsys.readouterr().out == ""


def test_the_last_replication_counts() -> None:
    datas: list[dict[str, Any]] = [{}, {"run": {}}, {"run": {"replications": 5}}]
    assert [replication_of(data) for data in datas] == [0, 0, 4]


@pytest.mark.parametrize(
    ("actor", "words", "error"),
    [
        ("Raising", "relay failed on", "RuntimeError"),
        ("Leaving", "called sys.exit(4)", "SystemExit"),
        ("Calling", "relay sent to 'nobody'", "KeyError"),
    ],
)
def test_who_fails_is_part_of_the_goal(
    users: str, actor: str, words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_with(relay={"use": f"{users}:{actor}"})
    shown = show(data, "", HERE)
    assert shown.kind == "failed"
    assert words in shown.sentence
    goal = Goal(kind="failed", actor="relay", error=error)
    assert holds(goal, "", HERE, data)
    assert not holds(Goal(kind="failed", actor="engine", error=error), "", HERE, data)
    assert not holds(Goal(kind="failed", actor="relay", error="OSError"), "", HERE, data)
    assert not holds(goal, "", HERE, data_with())
    assert capsys.readouterr().out == ""


def test_other_kinds_of_trouble(users: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = data_with(
        run={"until": "run.terminal", "limit": "1h"},
        fault=[{"kind": "kill", "actor": "relay", "at": "1s", "down": "2h"}],
    )
    assert show(asleep, "", HERE).kind == "limit reached"
    assert Goal(kind="limit reached").timed
    monkeypatch.setattr("scenarios.shrink_trial.TRY_PATIENCE_S", 0.2)
    looping = data_with(relay={"use": f"{users}:Looping"})
    goal = Goal(kind="stuck")
    assert holds(goal, "", HERE, looping)
    checked = data_with(run={"check": f"{users}:late"})
    shown = show(checked, "", HERE)
    assert (shown.kind, shown.actor) == ("failed", f"{users}:late")
    assert Goal(kind="failed", actor="x").words == "x failed"


def test_a_candidate_that_does_too_much_or_can_t_be_loaded_shows_nothing() -> None:
    goal = Goal(check="executed_at_most_once", limit_records=10)
    assert show(TWICE, "", HERE, goal=goal) == Shown(kind="too long")
    assert not holds(goal, "", HERE, TWICE)
    assert Goal(check="x").limit_records == sys.maxsize
    goal = Goal(check="executed_at_most_once")
    wrongs: list[dict[str, Any]] = [
        {"relay": {"poll": "x"}},
        {"engine": {"use": "none.py:X"}},
        {"relay": []},
    ]
    for wrong in wrongs:
        assert not holds(goal, "", HERE, {**TWICE, **wrong})
    with pytest.raises(ScenarioError, match="poll"):
        scenario_of_data(data_with(relay={"poll": "x"}), HERE)


def test_what_is_shown_without_the_faults_too_is_another_thing() -> None:
    hurried = data_with(
        run={"check": "converges_after_heal", "converge": "1s", "until": "1h"},
        fault=[{"kind": "drop", "message": "Sync", "nth": 1, "for": "1m"}],
    )
    goal = Goal(check="converges_after_heal")
    assert goal.timed
    assert not Goal(check="bounds_hold").timed
    assert Goal(check="mine.py:check").timed
    assert holds(goal, "", HERE, hurried)
    assert not holds(Goal(check="converges_after_heal", control=True), "", HERE, hurried)
    assert holds(Goal(check="executed_at_most_once", control=True), "", HERE, TWICE)


def test_the_label_names_the_chance() -> None:
    data = data_with(run={"check": "all"}, agent={"runs": 3})
    records = {label: show(data, label, HERE).records for label in ("", "a=1", "b=2")}
    assert len(set(records.values())) > 1
