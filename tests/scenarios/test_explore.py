"""The search finds what a missing safeguard breaks, and gives a file that shows it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from scenarios.explore import actors_of, explore, found_file
from scenarios.run import load_plans, run
from scenarios.runner import Options

ABLATION = sorted((Path(__file__).resolve().parents[2] / "scenarios" / "ablation").glob("*.toml"))
QUICK = [path for path in ABLATION if path.stem not in ("tombstone", "delivery_number")]


def test_the_canaries_are_there() -> None:
    assert len(QUICK) >= 10


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_a_removed_safeguard_is_always_found_and_shown_again(path: Path, tmp_path: Path) -> None:
    (plan,) = load_plans([str(path)], Options())
    seen = explore(plan, 0, 1, budget_s=0, plans=400, jobs=1)
    assert seen.found is not None, seen
    assert seen.replications == seen.found.plan + 1, "one process finds it at the first plan"
    data = found_file(plan, 0, 1, seen.found)
    file = tmp_path / "found.json"
    file.write_bytes(msgspec.json.encode(data))
    results = run(file, replication=seen.found.plan, jobs=1)
    assert seen.found.check in {found.check for _, found in results.scenarios[0].found}


def test_two_processes_find_the_same_first_plan() -> None:
    path = next(path for path in QUICK if path.stem == "unique_start")
    (plan,) = load_plans([str(path)], Options())
    found = [explore(plan, 0, 3, budget_s=0, plans=300, jobs=jobs).found for jobs in (1, 2)]
    assert found[0] is not None
    assert found[0] == found[1]


def test_the_built_in_actors_stand_two_hundred_plans(tmp_path: Path) -> None:
    path = tmp_path / "base.toml"
    path.write_text(
        'schema = 1\nname = "base"\nprofile = "recommended"\n[workload]\nruns = 3\nevery = "30s"\n'
        '[agent]\npoll = "every 10s"\ncancel = "uniform(0s, 300s)"\n'
    )
    (plan,) = load_plans([str(path)], Options())
    seen = explore(plan, 0, 5, budget_s=0, plans=200, jobs=1)
    assert seen.found is None, seen.found
    assert seen.replications == 200
    assert sum(seen.fired.values()) > 1_000
    assert list(actors_of(plan.scenarios[0])) == ["server", "relay", "engine", "agent"]


def test_a_swept_cell_with_a_limit_and_faults_of_its_own_is_shown_by_its_file(
    tmp_path: Path,
) -> None:
    unsafe = ABLATION[0].parent / "unsafe.py"
    path = tmp_path / "swept.toml"
    path.write_text(
        'schema = 1\nname = "swept"\nprofile = "recommended"\n[run]\nlimit = "1h"\n'
        '[workload]\nruns = 3\nevery = "30s"\n[agent]\npoll = "every 10s"\n'
        f'[engine]\nuse = "{unsafe}:NoUniqueStart"\n[sweep.product]\n"relay.poll" = ["5s", "20s"]\n'
        '[[fault]]\nname = "kill-1"\nkind = "duplicate"\nprobability = 0.1\nfor = "10m"\n'
    )
    (plan,) = load_plans([str(path)], Options())
    for index in range(2):
        seen = explore(plan, index, 1, budget_s=0, plans=100, jobs=1)
        assert seen.found is not None
        file = tmp_path / f"found-{index}.json"
        file.write_bytes(msgspec.json.encode(found_file(plan, index, 1, seen.found)))
        (one,) = run(file, replication=seen.found.plan, jobs=1).scenarios
        assert seen.found.sentence in {found.sentence for _, found in one.found}
