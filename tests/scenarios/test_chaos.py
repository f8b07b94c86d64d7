"""The chaos scenarios hold on every host, use every kind of fault, and notice what is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scenarios.load import Plan, load_plan
from scenarios.results import Exit, Results
from scenarios.run import run
from scenarios.spec import FAULTS
from tests.contracts.fault import FROM_LOGS
from tests.scenarios.commandline import ROOT, command

FOLDER = ROOT / "scenarios" / "chaos"
PAGE = ROOT / "docs" / "chaos.md"
PLANS = {path.stem: load_plan(path) for path in sorted(FOLDER.glob("*.toml"))}
KINDS = {kind: name for name, kind in FAULTS.items()}
BY_CHANCE = frozenset(("crashing_commits",))
REPLICATIONS = {"crashing_commits": 40, "weekend": 3}  # of the others 10; what chance decides
# A sleep of 60 hours takes 36 minutes of a wall clock at a hundredfold speed.
SHORTER: dict[str, dict[str, Any]] = {"weekend": {"fault.for": "5m", "run.until": "done"}}
UNSAFE = "../ablation/unsafe.py"


def kinds(plan: Plan) -> set[str]:
    """Return the kinds of fault that a scenario uses, as a file names them."""
    return {KINDS[type(fault)] for scenario in plan.scenarios for fault in scenario.faults}


def play(name: str, overrides: dict[str, Any] | None = None, **options: Any) -> Results:
    """Run a scenario in this process."""
    return run(FOLDER / f"{name}.toml", overrides, jobs=1, **options)


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the page's table after the first, by the file that the first names."""
    found = re.findall(r"^\| \[`(\w+)`\]\(\S+\) \| (.+) \|$", page, re.MULTILINE)
    return {name: rest.split(" | ") for name, rest in found}


def test_together_they_use_every_kind_of_fault() -> None:
    assert len(PLANS) >= 15
    assert set().union(*map(kinds, PLANS.values())) == set(FAULTS) - FROM_LOGS


@pytest.mark.parametrize("name", PLANS)
def test_each_tells_a_story_and_is_judged(name: str) -> None:
    plan = PLANS[name]
    assert plan.top.summary
    assert plan.top.profile == "recommended"
    assert plan.run.check == "auto"
    assert plan.run.converge is not None
    assert plan.run.replications is not None
    assert 20 <= plan.run.replications <= 200
    assert plan.expects
    assert plan.text.startswith("# What if ")


@pytest.mark.parametrize("name", PLANS)
def test_each_holds_in_the_simulator(name: str) -> None:
    assert play(name, replications=REPLICATIONS.get(name, 10)).exit is Exit.OK


@pytest.mark.parametrize("name", PLANS)
def test_each_holds_on_the_trio_host(name: str) -> None:
    count = REPLICATIONS.get(name, 3)
    assert play(name, SHORTER.get(name), driver="trio", replications=count).exit is Exit.OK


@pytest.mark.parametrize(
    "name",
    ["late_go", "engine_dies", "full_disk", "bad_sector", "bad_middlebox", "captive_portal"],
)
def test_some_hold_over_sockets(name: str) -> None:
    soon = {"run.until": "done"}
    results = play(name, soon, driver="trio", transport="tcp", speed=200.0, replications=1)
    assert results.exit is Exit.OK


@pytest.mark.soak
@pytest.mark.parametrize("name", PLANS)
def test_each_holds_over_sockets(name: str) -> None:
    shorter = SHORTER.get(name)
    results = play(name, shorter, driver="trio", transport="tcp", speed=100.0, replications=2)
    # Two replications don't decide about a mean; what must hold is judged in each.
    assert results.exit in ({Exit.OK, Exit.INCONCLUSIVE} if name in BY_CHANCE else {Exit.OK})


@pytest.mark.soak
@pytest.mark.parametrize("name", PLANS)
def test_each_holds_with_other_chance(name: str) -> None:
    for seed in range(2, 7):
        assert play(name, seed=seed).exit is Exit.OK, seed


# What stops the harm: without it the scenario fails.
CURES: list[tuple[str, dict[str, Any]]] = [
    ("agent_dies", {"server.use": f"{UNSAFE}:NoKeys"}),
    ("bad_middlebox", {"relay.outbox": False}),
    ("both_restart", {"relay.use": f"{UNSAFE}:NoJournal"}),
    ("busy_slots", {"relay.use": f"{UNSAFE}:NoJournal"}),
    ("captive_portal", {"relay.outbox": False}),
    ("crashing_commits", {"relay.use": f"{UNSAFE}:NoJournal"}),
    ("cut_cancel", {"relay.control": "10m"}),
    ("deaf_graph", {"relay.stop_limit": "0s"}),
    ("flaky_router", {"relay.outbox": False}),
    ("full_disk", {"engine.report": "20m"}),
    ("given_up_asleep", {"server.use": f"{UNSAFE}:NoFinality"}),
    ("held_traffic", {"server.use": f"{UNSAFE}:NoKeys"}),
    ("hotel_wifi", {"relay.outbox": False}),
    ("killed_after_go", {"relay.use": f"{UNSAFE}:NoJournal"}),
    ("late_go", {"relay.use": f"{UNSAFE}:NoSecondLook"}),
    ("lost_result", {"relay.outbox": False}),
    ("lost_ticket", {"agent.retry": "new key"}),
    ("lost_ticket", {"server.use": f"{UNSAFE}:NoKeys"}),
    ("redeploy", {"relay.outbox": False}),
    ("results_refused", {"relay.outbox": False}),
    ("retrying_proxy", {"engine.use": f"{UNSAFE}:NoUniqueStart"}),
    ("slow_reordered", {"server.use": f"{UNSAFE}:NoGate"}),
    ("swapping", {"server.run_deadline": "50s"}),
    ("unshared_unheard", {"relay.strict_consent": False}),
    ("weekend", {"server.run_deadline": "1d"}),
]


@pytest.mark.parametrize(("name", "without"), CURES)
def test_each_fails_without_what_stops_the_harm(name: str, without: dict[str, Any]) -> None:
    assert play(name, without, replications=20).exit is Exit.FAILED


# The page


def test_the_page_lists_every_scenario_with_its_story_and_its_faults() -> None:
    listed = rows(PAGE.read_text(encoding="utf-8"))
    assert list(listed) == list(PLANS)
    for name, plan in PLANS.items():
        story, faults, cure = listed[name]
        assert story == plan.top.summary
        assert faults == ", ".join(f"`{kind}`" for kind in FAULTS if kind in kinds(plan))
        assert cure


def test_the_page_shows_what_a_run_prints(tmp_path: Path) -> None:
    done = command(
        ROOT, "run", "@chaos/killed_after_go", "--no-progress", "--out", str(tmp_path / "o")
    )
    assert done.code == 0
    shown, _, _ = done.out.partition("\n\n")
    assert shown.startswith("killed-after-go")
    page = PAGE.read_text(encoding="utf-8")
    for line in shown.splitlines():
        assert line.strip() in page
