"""What `pullcord shrink` prints and writes, and that it shrinks what the ablation finds."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scenarios import shrink_report
from scenarios.explore import Discovery, found_file
from scenarios.problems import ScenarioError
from scenarios.render import Text
from scenarios.run import load_plans
from scenarios.runner import Options
from scenarios.shrink import Search
from scenarios.shrink_report import (
    Limits,
    _Progress,
    file_text,
    limits_of,
    ran,
    shrink_target,
    shrunk_of,
    sizes,
)
from scenarios.shrink_start import HERE, Found, Wanted, find
from scenarios.shrink_trial import show
from tests.scenarios.commandline import ROOT, command
from tests.scenarios.conftest import Call

# Each safeguard's first random plan of seed 1 that shows it gone, as `explore @ablation` tells.
PLANS = {
    "bound": 0,
    "finality": 12,
    "journal": 2,
    "key_check": 5,
    "outbox": 0,
    "report": 2,
    "second_consent_check": 106,
    "source_check": 0,
    "start_gate": 12,
    "tombstone": 10,
    "unique_start": 35,
}
UNSAFE = ROOT / "scenarios" / "ablation" / "unsafe.py"


def never() -> bool:
    return False


def discovered(folder: Path, name: str) -> Path:
    """The file that an exploration writes of an ablation."""
    (plan,) = load_plans([f"@ablation/{name}"], Options())
    found = Discovery(plan=PLANS[name], check="", sentence="")
    path = folder / f"{name}.json"
    path.write_bytes(msgspec.json.encode(found_file(plan, 0, 1, found)))
    return path


def found_in(path: Path, **wanted: Any) -> Found:
    found, _ = find(str(path), Wanted(**wanted), never)
    assert found is not None
    return found


@pytest.mark.parametrize("name", PLANS)
def test_a_removed_safeguard_shrinks_to_two_faults_and_two_runs_at_most(
    name: str, tmp_path: Path
) -> None:
    found = found_in(discovered(tmp_path, name), replication=PLANS[name])
    shrunk = shrunk_of(found, Limits())
    assert shrunk.unfinished == []
    counts = sizes(shrunk.data)
    assert counts["faults"] <= 2
    assert counts["runs"] <= 2
    assert counts["replications"] == 1
    assert "probability" not in msgspec.json.encode(shrunk.data).decode()
    path = tmp_path / "min.toml"
    path.write_text(file_text(found, shrunk, path))
    checks, kinds, code = ran(str(path))
    assert (checks, kinds, code) == ([found.goal.check], [], 1)
    assert shrunk.sentence in path.read_text()


def test_shrinking_again_changes_nothing_and_two_processes_come_to_the_same(
    tmp_path: Path,
) -> None:
    found = found_in(discovered(tmp_path, "finality"), replication=12)
    shrunk = shrunk_of(found, Limits())
    side_by_side = shrunk_of(found, Limits(jobs=2))
    assert side_by_side == shrunk
    path = tmp_path / "min.toml"
    path.write_text(file_text(found, shrunk, path))
    again = shrunk_of(found_in(path), Limits())
    assert sizes(again.data) == sizes(shrunk.data)


OWN = """
from pullcord import Relay

class Forgetful(Relay):
    def on_start_answer(self, context, envelope):
        self.count = getattr(self, "count", 0) + 1
        if self.count == 2:
            raise RuntimeError("the second is too much")
        super().on_start_answer(context, envelope)
"""
ASLEEP = """
class Asleep:
    def __init__(self, config, place):
        self.handlers = {}

    def on_start(self, context): ...

    def on_timer(self, context, timer): ...
"""
USING = """
schema = 1
name = "own"
profile = "recommended"
[relay]
use = "mine.py:Forgetful"
poll = "7s"
[workload]
runs = 9
every = "45s"
[engine]
duration = "uniform(5s, 90s)"
[[session]]
name = "a"
[[session]]
name = "b"
[[fault]]
kind = "delay"
delay = "exponential(mean=2s)"
probability = 0.2
for = "20m"
[[fault]]
kind = "kill"
actor = "server"
at = "11m"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(OWN)
    path = tmp_path / "own.toml"
    path.write_text(USING)
    return path


def test_a_user_s_own_actor_that_raises(own: Path) -> None:
    found = found_in(own)
    assert (found.goal.kind, found.goal.actor) == ("failed", "relay")
    shrunk = shrunk_of(found, Limits())
    out = own.parent / "min.toml"
    text = file_text(found, shrunk, out)
    assert text.endswith(
        'schema = 1\nname = "own"\n\n[run]\nseed = 1\n\n'
        '[relay]\nuse = "mine.py:Forgetful"\n\n[workload]\nruns = 2\n'
    )
    out.write_text(text)
    assert ran(str(out)) == ([], ["failed"], 1)


def test_a_limit_that_is_reached_stays(tmp_path: Path) -> None:
    path = tmp_path / "late.toml"
    path.write_text(
        'schema = 1\nname = "late"\n[run]\nuntil = ["run.terminal", "40m"]\nlimit = "1h"\n'
        '[workload]\nruns = 3\n[agent]\npoll = "every 1m"\n'
        '[[fault]]\nkind = "kill"\nactor = "relay"\nat = "90s"\ndown = "9d"\n'
        '[[fault]]\nkind = "delay"\ndelay = "1s"\nmessage = "Sync"\n'
    )
    found = found_in(path)
    assert found.goal.kind == "limit reached"
    assert found.goal.control
    shrunk = shrunk_of(found, Limits())
    assert shrunk.data["run"]["limit"] == "1h", "a short limit is reached by anything"
    assert [one["kind"] for one in shrunk.data["fault"]] == ["kill"]
    assert sizes(shrunk.data)["runs"] == 1


def test_what_would_sleep_for_ever(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ASLEEP)
    path = tmp_path / "sleeps.toml"
    path.write_text(
        'schema = 1\nname = "sleeps"\n[run]\nlimit = "9d"\n[agent]\nuse = "mine.py:Asleep"\n'
        '[relay]\nuse = "mine.py:Asleep"\n[server]\nretention = "2d"\n[[session]]\nname = "a"\n'
    )
    found = found_in(path)
    assert found.goal.kind == "would sleep for ever"
    shrunk = shrunk_of(found, Limits())
    assert shrunk.data.keys() == {"schema", "name", "run", "agent", "relay"}
    assert shrunk.data["run"].keys() <= {"seed", "limit"}
    assert "nothing is due" in shrunk.sentence


def test_a_label_stays_as_a_sweep_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.shrink_start.LABEL_REPLICATIONS", 0)
    path = tmp_path / "swept.toml"
    path.write_text(
        f'schema = 1\nname = "swept"\n[engine]\nuse = "{UNSAFE}:NoUniqueStart"\n'
        '[sweep.product]\n"relay.poll" = ["5s", "20s"]\n'
        '[[fault]]\nkind = "duplicate"\nmessage = "FleetRun"\nprobability = 0.02\n'
    )
    for number in range(400):
        found, _ = find(str(path), Wanted(cell="5s", replication=number), never)
        if found is not None and found.start.label:
            break
    else:
        pytest.fail("some replication shows it with its label alone")
    shrunk = shrunk_of(found, Limits())
    out = tmp_path / "min.toml"
    out.write_text(file_text(found, shrunk, out))
    assert '[sweep.product]\n"relay.poll" = ["5s"]' in out.read_text()
    assert ran(str(out)) == (["executed_at_most_once"], [], 1)


# The command


def test_the_command_writes_a_file_that_fails_and_tells_what_went(own: Path) -> None:
    folder = own.parent
    done = command(folder, "shrink", "own.toml", "--color", "never")
    assert done.code == 0, done
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0].startswith("faults 2 → 0, runs 9 → 2, ")
    assert lines[1].startswith("failed: relay failed on StartAnswer")
    assert lines[2:] == [
        "wrote own-min.toml, verified by 2 new processes",
        "  reproduce: pullcord run own-min.toml",
    ]
    assert sorted(one.name for one in folder.iterdir()) == ["mine.py", "own-min.toml", "own.toml"]
    run = command(folder, "run", "own-min.toml", "--out", "results")
    assert run.code == 1
    assert "the second is too much" in run.out


def test_flags_are_checked_before_anything_is_run(call: Call, own: Path) -> None:
    there = own.parent / "there.toml"
    there.write_text("mine\n")
    target = str(own)
    for flags, words in (
        (["--out", str(there)], "is there already"),
        (["--out", "x.py"], "let it end in .toml"),
        (["--out", "no/x.toml"], "no folder"),
        (["--budget", "soon"], "--budget"),
        (["--budget", "0s"], "above 0s"),
        (["--jobs", "0"], "at least 1"),
        (["--replication", "-1"], "at least 0"),
        (["--seed", "-1"], "at least 0"),
    ):
        done = call("shrink", target, *flags)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
    assert there.read_text() == "mine\n"


def test_nothing_to_shrink_is_exit_3(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text('schema = 1\nname = "good"\n')
    done = call("shrink", str(path), "--replication", "3")
    assert (done.code, done.err) == (3, "")
    assert done.out == "nothing to shrink: no check failed in 1 replication\n"
    assert call("shrink", str(path), "--budget", "10ms").code == 3


def shrunk_here(
    own: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str], **limits: Any
) -> tuple[int, list[str]]:
    """Shrink without new processes: each verification answers what the list says."""
    monkeypatch.setattr(shrink_report, "_differs", lambda _goal, _path: answers.pop(0))
    stream = io.StringIO()
    out = own.parent / "min.toml"
    code = shrink_target(str(own), Wanted(), Limits(out=out, **limits), Text(stream))
    return code, stream.getvalue().splitlines()


def test_what_does_not_show_it_twice_is_not_written(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, lines = shrunk_here(own, monkeypatch, ["", "shows something else: stuck"])
    assert code == 1
    assert lines[-1] == "not written: run anew, the smallest scenario shows something else: stuck"
    assert sorted(one.name for one in own.parent.iterdir()) == ["mine.py", "own.toml"]


def test_a_budget_that_is_up_leaves_what_is_smallest_so_far(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own.parent / "min.toml").write_text("old")
    code, lines = shrunk_here(own, monkeypatch, ["", ""], budget_s=1e-6, force=True)
    assert code == 0
    assert lines[1].startswith("the budget was up before these were done: faults, the end, ")
    assert ran(str(own.parent / "min.toml")) == ([], ["failed"], 1)


def test_a_file_in_json_is_written_where_its_name_says_so(own: Path) -> None:
    found = found_in(own)
    shrunk = shrunk_of(found, Limits(budget_s=1e-6))
    data = msgspec.json.decode(file_text(found, shrunk, own.parent / "x.json"))
    assert data["relay"]["use"] == "mine.py:Forgetful"
    elsewhere = msgspec.json.decode(file_text(found, shrunk, own.parent / "a" / "x.json"))
    assert elsewhere["relay"]["use"] == f"{own.parent}/mine.py:Forgetful"
    assert show(elsewhere, "", HERE).kind == "failed"


def test_another_file_is_told_from_the_same(own: Path) -> None:
    found = found_in(own)
    assert shrink_report._differs(found.goal, own) == ""
    good = own.parent / "good.toml"
    good.write_text('schema = 1\nname = "good"\n')
    words = shrink_report._differs(found.goal, good)
    assert words == "shows something else: ends with exit code 0"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_progress_tells_how_small_it_is(
    stream: io.StringIO, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = _Progress(stream)
    progress.tried(5)
    assert stream.getvalue() == ""
    now = [1e9]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress.tried(5)
    now[0] += 60
    progress.smaller(Search(found_in(own).start.data, bool))
    progress.end()
    told = stream.getvalue()
    assert "5 replications, and no check failed" in told
    assert "faults 2, runs 9, keys " in told
    assert told.count("\n") == (0 if stream.isatty() else 2)


def test_limits_are_what_the_flags_say() -> None:
    assert limits_of("90s", None, None, force=False) == Limits(budget_s=90.0)
    with pytest.raises(ScenarioError, match="--jobs"):
        limits_of("90s", 0, None, force=False)
