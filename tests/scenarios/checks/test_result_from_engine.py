"""The result of a completed run is what its engine reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.messages import Completion, GraphRun
from actors.text import bounded
from scenarios.checks.history import History, Violation
from scenarios.checks.result_from_engine import result_from_engine
from scenarios.results import Exit
from scenarios.run import run
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import DONE, KINDS, SEEN, Tale

NAME = "result_from_engine"
OTHER = "run r1 is completed with another result than one from its engine"
NONE = "run r1 is completed with a result without one from its engine"


def test_a_relay_that_posts_a_result_of_its_own_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "relay", "LyingRelay")
    (found,) = result_from_engine(history)
    report, told = (history.turn(number) for number in found.records)
    assert report.envelope.body.completion.result == "xx"  # type: ignore[union-attr]  # a message
    assert told.envelope.body.result == "made up"  # type: ignore[union-attr]  # a message
    (run,) = history.stories
    assert found.sentence == OTHER.replace("r1", run)


@pytest.mark.parametrize(
    "change",
    [
        {"result": "yy"},
        {"result": None, "result_truncated": True},
        {"execution_id": "e2"},
        {"total_tokens": 6},
        {"reported_cost": 1.0},
    ],
)
def test_whatever_differs_is_found(change: dict[str, Any]) -> None:
    tale = Tale()
    made = tale.finish()
    told = tale.say("server", "claude", msgspec.structs.replace(SEEN, **change), lost=True)
    tale.say("server", "claude", msgspec.structs.replace(SEEN, **change))  # the same again
    assert tale.judge(result_from_engine) == [Violation(NAME, OTHER, (made, told))]


def test_a_result_of_another_run_or_of_a_failed_graph_or_from_nobody_is_found() -> None:
    tale = Tale()
    tale.finish(run="r2")
    told = tale.say("server", "claude", SEEN)
    assert tale.judge(result_from_engine) == [Violation(NAME, NONE, (told,))]
    made = tale.finish(msgspec.structs.replace(DONE, status="failed"))
    assert tale.judge(result_from_engine) == [Violation(NAME, OTHER, (made, told))]


@pytest.mark.parametrize("result", ["x" * 100_001, "a\0b\ud800", [1.0, float("nan")], {"a": [1]}])
def test_the_bounds_of_a_result_are_no_difference(result: Any) -> None:
    made = Completion(execution_id="e1", status="completed", result=result, total_tokens=5)
    done = bounded(made)
    tale = Tale()
    tale.finish(made)
    seen = GraphRun(
        command_id="r1",
        status="completed",
        result=done.result,
        result_truncated=done.result_truncated,
        execution_id="e1",
        total_tokens=done.total_tokens,
    )
    tale.say("server", "claude", seen)
    assert tale.judge(result_from_engine) == []


def test_what_is_not_judged() -> None:
    tale = Tale()
    tale.say("server", "claude", GraphRun(command_id="r1", status="completed", replayed=True))
    tale.say("server", "claude", msgspec.structs.replace(SEEN, status="cancelled", result=None))
    assert tale.judge(result_from_engine) == []
    tale.say("server", "claude", SEEN)
    assert len(tale.judge(result_from_engine)) == 1
    without = {name: kind for name, kind in KINDS.items() if kind != "engine"}
    assert list(result_from_engine(History(tale.recorder.records, kinds=without))) == []


# On a wire that flips bits

NOISE = """
schema = 1
name = "noise"
summary = "Now and then a bit flips, both ways."
profile = "recommended"
[run]
until = ["done", "40m"]
converge = "20m"
[engine]
duration = "uniform(10s, 30s)"
[workload]
runs = 5
every = "20s"
[agent]
poll = "hinted"
wait = "25s"
[[fault]]
kind = "corrupt"
name = "up"
from = "relay"
to = "server"
share = SHARE
for = "10m"
[[fault]]
kind = "corrupt"
name = "down"
from = "server"
to = "relay"
share = SHARE
for = "10m"
[metrics.ended]
count = "run.terminal"
per = "replication"
[[expect]]
that = "ended.mean equals 5"
"""


@pytest.mark.parametrize("share", ["0.0003", "0.003"])
def test_no_result_changes_on_a_wire_that_flips_bits(tmp_path: Path, share: str) -> None:
    path = tmp_path / "noise.toml"
    path.write_text(NOISE.replace("SHARE", share))
    for seed in (1, 2, 3):
        results = run(path, seed=seed, replications=100, jobs=1)
        assert results.exit is Exit.OK
