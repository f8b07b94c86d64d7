"""Where a shrink begins: files, cells and logs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from logs.read import LogError
from scenarios.problems import ScenarioError
from scenarios.run import run
from scenarios.shrink_start import HERE, Wanted, find, is_log, starts
from scenarios.shrink_trial import show
from tests.scenarios.commandline import ROOT

UNSAFE = ROOT / "scenarios" / "ablation" / "unsafe.py"
TWICE = f"""
schema = 1
name = "twice"
summary = "Starts twice."
[run]
seed = 3
[engine]
use = "{UNSAFE}:NoUniqueStart"
[metrics.starts]
count = "engine.started"
[[table]]
columns = ["starts.mean"]
[[fault]]
kind = "duplicate"
message = "FleetRun"
probability = 0.3
for = "20m"
"""
SWEEP = '[sweep.product]\n"relay.poll" = ["5s", "20s"]\n'


def never() -> bool:
    return False


def write(folder: Path, text: str, name: str = "tried.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_the_first_replication_that_fails_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, TWICE)
    told: list[int] = []
    found, tried = find(path, Wanted(), never, told.append)
    assert found is not None
    data = found.start.data
    assert data["run"] == {"seed": 3, "replications": tried, "check": "executed_at_most_once"}
    assert told == list(range(1, tried))
    assert tried > 1
    assert data["fault"][0]["name"] == "duplicate-1"
    assert not data.keys() & {"summary", "metrics", "table", "sweep"}
    assert found.start.origin == f"{path}, seed 3, replication {tried - 1}"
    results = run(path, replication=tried - 1, jobs=1, seed=3)
    sentences = [one.sentence for _, one in results.scenarios[0].found]
    assert found.shown.sentence_of(found.goal) in sentences
    (other,) = starts(path, Wanted(seed=4, replication=7))
    assert other.data["run"] == {"seed": 4, "replications": 8, "check": "all"}


def test_nothing_is_found_where_nothing_fails(tmp_path: Path) -> None:
    path = write(tmp_path, 'schema = 1\nname = "good"\n')
    assert find(path, Wanted(replication=5), never) == (None, 1)
    assert find(path, Wanted(), lambda: True) == (None, 1)


def test_a_wanted_check_passes_others_over(tmp_path: Path) -> None:
    path = write(tmp_path, TWICE)
    wanted = Wanted(check="bounds_hold", replication=5)
    assert find(path, wanted, never) == (None, 1)
    found, _ = find(path, Wanted(check="executed_at_most_once"), never)
    assert found is not None
    own = 'def never_two(history):\n    """No."""\n    from pullcord import Violation\n    yield '
    own += 'Violation("never_two", "there are two")\n'
    write(tmp_path, own, "mine.py")
    path = write(tmp_path, TWICE.replace("seed = 3", 'check = ["all", "mine.py:never_two"]'))
    found, _ = find(path, Wanted(check="mine.py:never_two"), never)
    assert found is not None
    assert found.goal.check == f"{tmp_path}/mine.py:never_two"
    assert found.start.data["run"]["check"] == found.goal.check


def test_a_log_has_its_cell_seed_and_replication(tmp_path: Path) -> None:
    path = write(tmp_path, TWICE)
    first, tried = find(path, Wanted(), never)
    run(path, logs="all", out=tmp_path / "out", jobs=1, replications=tried)
    assert is_log(tmp_path / "out")
    found, seen = find(str(tmp_path / "out"), Wanted(), never)
    assert found is not None
    assert first is not None
    assert (found.start.data, seen) == (first.start.data, tried)
    assert found.start.origin.startswith("the log ")
    (log,) = (tmp_path / "out" / "logs").glob("*.jsonl")
    again, seen = find(str(log), Wanted(replication=tried - 1), never)
    assert again is not None
    assert (again.start.data, seen) == (first.start.data, 1)


@pytest.mark.parametrize("swept", ["5s", "20s"])
def test_a_swept_cell_needs_no_label_if_it_shows_the_same_without(
    tmp_path: Path, swept: str
) -> None:
    path = write(tmp_path, TWICE + SWEEP)
    run(path, logs="all", out=tmp_path / "out", jobs=1, replications=9)
    for target in (path, str(tmp_path / "out")):
        found, _ = find(target, Wanted(cell=swept), never)
        assert found is not None
        assert found.start.label == ""
        assert found.start.data["relay"] == {"poll": swept}
        assert f"relay.poll={swept}" in found.start.origin


def test_a_label_that_the_chance_needs_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.shrink_start.LABEL_REPLICATIONS", 0)
    path = write(tmp_path, TWICE.replace("0.3", "0.02") + SWEEP)
    kept = []
    for start in islice(starts(path, Wanted(cell="5s")), 300):
        if show(start.data, start.label, HERE).checks and not show(start.data, "", HERE).checks:
            number = start.data["run"]["replications"] - 1
            found, _ = find(path, Wanted(cell="5s", replication=number), never)
            assert found is not None
            kept.append((found.start.label, list(found.start.rules.fixed)))
            break
    assert kept == [("relay.poll=5s", [("relay", "poll")])]


Refused = Callable[[Path], tuple[str, Wanted]]


@pytest.mark.parametrize(
    ("target", "wanted", "words"),
    [
        ("@chaos", Wanted(), "about one"),
        ("nosuch.toml", Wanted(), "no such file"),
        ("nosuch.jsonl", Wanted(), "no such file"),
        ("@examples/first", Wanted(check="bound_holds"), "bounds_hold"),
        ("@examples/first", Wanted(cell="x"), "nothing is swept"),
        ("@foreign/perl_relay", Wanted(), "program of its own"),
    ],
)
def test_what_can_t_be_shrunk_is_refused(target: str, wanted: Wanted, words: str) -> None:
    with pytest.raises((ScenarioError, LogError)) as raised:
        find(target, wanted, never)
    error = raised.value
    told = error.render() if isinstance(error, ScenarioError) else str(error)
    assert words in told


def test_a_log_of_real_tasks_or_without_a_scenario_is_refused_with_the_cure(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, TWICE)
    run(path, logs="all", out=tmp_path / "trio", jobs=1, driver="trio")
    with pytest.raises(LogError) as raised:
        find(str(tmp_path / "trio"), Wanted(), never)
    assert "--to-scenario" in raised.value.cure
    (log,) = (tmp_path / "trio" / "logs").glob("*.jsonl")
    with pytest.raises(ScenarioError, match="seed"):
        find(str(log), Wanted(seed=1), never)
    bare = tmp_path / "bare.jsonl"
    header = log.read_bytes().splitlines()[0]
    start = header.index(b'"resolved":') + len(b'"resolved":')
    bare.write_bytes(header[:start] + b"{}}\n")
    with pytest.raises(LogError, match="no scenario"):
        find(str(bare), Wanted(), never)


def test_a_label_that_can_t_be_read_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, TWICE + SWEEP)
    run(path, logs="all", out=tmp_path / "out", jobs=1, cell="5s")
    (log,) = (tmp_path / "out" / "logs").glob("*.jsonl")
    text = log.read_bytes().replace(b'"cell":"relay.poll=5s"', b'"cell":"relay.poll=6s"')
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(text)
    with pytest.raises(LogError, match=r"relay\.poll=6s") as raised:
        find(str(odd), Wanted(), never)
    assert "--cell" in raised.value.cure
