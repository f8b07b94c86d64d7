"""The checks that a scenario asks for are judged in each of its replications."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS
from scenarios.formats import FORMATS
from scenarios.judging import checks_of
from scenarios.results import Exit
from scenarios.run import run
from tests.scenarios.loading import load, told

FORGETFUL = """schema = 1
name = "forgetful"
[run]
replications = 5
CHECK
[server]
use = "mutants.py:Forgetful"
[workload]
runs = 3
[[fault]]
kind = "drop"
message = "GraphRun"
from = "server"
nth = 1
"""
OWN = """from pullcord import Violation


def no_polls(history):
    \"\"\"Nobody polls.\"\"\"
    raise RuntimeError("what a pity")


def loop(history):
    while True:
        pass


def one(history):
    yield Violation("one", f"{len(history.records) > 3}", (1, 2))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mutants = Path(__file__).parent / "mutants.py"
    (tmp_path / "mutants.py").write_text(mutants.read_text())
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def forgetful(folder: Path, check: str = "") -> Path:
    path = folder / "forgetful.toml"
    path.write_text(FORGETFUL.replace("CHECK", check))
    return path


def test_a_scenario_with_faults_is_judged_by_all_and_one_without_by_none(tmp_path: Path) -> None:
    assert checks_of("auto", tmp_path, faults=True) == CHECKS
    assert checks_of("auto", tmp_path, faults=False) == {}
    assert checks_of("all", tmp_path, faults=False) == CHECKS
    assert checks_of("none", tmp_path, faults=True) == {}
    assert list(checks_of(("bounds_hold", "outbox_drains"), tmp_path, faults=False)) == [
        "bounds_hold",
        "outbox_drains",
    ]
    with pytest.raises(ForeignActorError, match="beside other checks"):
        checks_of(("all", "none"), tmp_path, faults=True)
    with pytest.raises(ForeignActorError, match="names no check"):
        checks_of("bounds", tmp_path, faults=False)


def test_a_violation_fails_the_run_with_its_first_replication(folder: Path) -> None:
    results = run(forgetful(folder), jobs=1)
    one = results.scenarios[0]
    assert results.exit is Exit.FAILED
    ((cell, found),) = one.found
    assert (found.check, found.replication, found.count) == ("same_key_one_run", 0, 5)
    assert "stands for the runs" in found.sentence
    assert "(in 5 of 5 replications)" in found.words(cell.replications)
    assert found.records


def test_any_number_of_jobs_finds_the_same(folder: Path) -> None:
    found = [run(forgetful(folder), jobs=jobs).scenarios[0].found[0][1] for jobs in (1, 2)]
    assert found[0] == found[1]


def test_every_format_tells_of_it_with_the_command(folder: Path) -> None:
    results = run(forgetful(folder), jobs=1)
    for name, write in FORMATS.items():
        if name != "csv":
            text = write(results)
            assert "same_key_one_run" in text, name
            assert "--replication 0" in text, name


def test_its_log_is_kept_where_failed_ones_are(folder: Path) -> None:
    run(forgetful(folder), out=folder / "out", logs="failed", jobs=1)
    (log,) = (folder / "out" / "logs").iterdir()
    heads = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    assert [head["replication"] for head in heads if head["kind"] == "header"] == [0]


def test_a_log_has_the_records_that_the_sentence_names(folder: Path) -> None:
    plain = run(forgetful(folder, 'check = "none"'), out=folder / "a", logs="all", jobs=1)
    judged = run(forgetful(folder), out=folder / "b", logs="all", jobs=1)
    assert plain.scenarios[0].found == []
    read = [
        [line for line in path.read_bytes().splitlines() if b'"kind":"header"' not in line]
        for path in (next((folder / name / "logs").iterdir()) for name in "ab")
    ]
    assert read[0] == read[1], "the checks change nothing in the log"
    found = judged.scenarios[0].found[0][1]
    for number in found.records:
        assert msgspec.json.decode(read[1][number - 1])["n"] == number


def test_a_check_of_one_s_own_judges_too(folder: Path) -> None:
    results = run(forgetful(folder, 'check = ["own.py:one"]'), jobs=1)
    ((_, found),) = results.scenarios[0].found
    assert (found.check, found.sentence, found.records) == ("one", "True", (1, 2))


def test_a_check_that_raises_is_its_own_trouble(folder: Path) -> None:
    results = run(forgetful(folder, 'check = ["own.py:no_polls"]'), jobs=1)
    ((_, trouble),) = results.scenarios[0].troubles
    assert "no_polls raised RuntimeError: what a pity" in trouble.sentence
    assert results.exit is Exit.FAILED


def test_a_check_that_never_ends_is_ended_and_named(folder: Path) -> None:
    results = run(forgetful(folder, 'check = ["own.py:loop"]'), jobs=1, patience_s=0.3)
    ((_, trouble),) = results.scenarios[0].troubles
    assert "loop did not end" in trouble.sentence
    assert results.exit is Exit.FAILED


def test_a_check_that_there_is_not_is_told_at_its_place(folder: Path) -> None:
    lines = told(folder, '[run]\ncheck = ["bounds_holt"]\n')
    assert len(lines) == 1
    lines = told(folder, '[run]\ncheck = ["own.py:two"]\n')
    assert len(lines) == 1
    assert "own.py has no function two" in lines[0]


def test_a_fault_that_heals_gives_the_system_its_time(tmp_path: Path) -> None:
    text = """[run]
until = "1h"
converge = "10m"
check = "all"
[[fault]]
kind = "partition"
from = "relay"
to = "server"
at = "10s"
for = "5m"
"""
    plan = load(tmp_path, text)
    assert plan.scenarios[0].run.converge == 600_000_000
    results = run(_file(tmp_path, text), jobs=1)
    assert results.scenarios[0].found == []
    results = run(_file(tmp_path, text.replace("10m", "1s")), jobs=1)
    assert "converges_after_heal" in {found.check for _, found in results.scenarios[0].found}


def _file(folder: Path, text: str) -> Path:
    path = folder / "converge.toml"
    path.write_text(f'schema = 1\nname = "converge"\n{text}')
    return path
