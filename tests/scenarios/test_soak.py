"""The built-in actors stand long runs of random faults: a hundred thousand plans, and real sockets.

Each prints its figures (`make soak` shows them): replications a minute, what fired, what was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scenarios.explore import Explored, explore
from scenarios.load import Plan, load_plan
from scenarios.results import ScenarioResult
from scenarios.run import run
from scenarios.spec import FAULTS
from tests.contracts.fault import FROM_LOGS

PLANS = {"cancels": 40_000, "agents": 30_000, "owner": 30_000}  # of `make soak`, by workload
FEW_PLANS = 25  # of the ordinary test, for each workload
SEED = 11  # test_explore takes others
TCP_REPLICATIONS = 200
FEW_TCP_REPLICATIONS = 2
TCP_SPEED = 200.0  # a time-out of 10 s is then 50 ms of the machine

Say = Callable[[str], None]

HEAD = """schema = 1
name = "soak-{name}"
profile = "recommended"
"""
CANCELS = """[workload]
runs = 3
every = "30s"
[agent]
poll = "every 10s"
cancel = "uniform(0s, 300s)"
"""
# No agent retries under a new key: its lost replies would queue run after run, and no time would do
# for one desktop to work them off.
AGENTS = """[relay]
count = 2
[engine]
duration = "lognormal(median=60s, sigma=0.8, min=5s)"
[[session]]
name = "Invoices"
[[session]]
name = "Letters"
relay = "relay-2"
[[agent]]
runs = 2
every = "20s"
poll = "hinted"
[[agent]]
runs = 2
poll = "every 15s"
wait = "10s"
cancel = "uniform(0s, 200s)"
[[agent]]
runs = 1
session = "Letters"
poll = "backoff 2s x2 max 30s"
"""
OWNER = """[workload]
runs = 4
every = "60s"
[agent]
poll = "every 10s"
cancel = "uniform(30s, 600s)"
[[step]]
at = "45s"
do = "unshare"
[[step]]
at = "100s"
do = "share"
[[step]]
at = "170s"
do = "rename"
[[step]]
at = "260s"
do = "disable"
[[step]]
at = "320s"
do = "enable"
"""
WORKLOADS = {"cancels": CANCELS, "agents": AGENTS, "owner": OWNER}
KILLS = """[run]
until = "400s"
converge = "250s"
[engine]
duration = "40s"
[workload]
runs = 2
every = "20s"
[agent]
poll = "every 10s"
[[fault]]
kind = "kill"
actor = "relay"
at = "35s"
down = "20s"
[[fault]]
kind = "kill"
actor = "server"
at = "62s"
down = "15s"
[[fault]]
kind = "kill"
actor = "engine"
at = "95s"
down = "5s"
[[fault]]
kind = "drop"
probability = 0.05
for = "120s"
"""


def plan_of(folder: Path, name: str, text: str) -> Plan:
    path = folder / f"{name}.toml"
    path.write_text(HEAD.format(name=name) + text)
    return load_plan(path)


def explored(folder: Path, name: str, plans: int, say: Say) -> Explored:
    """Try so many plans on a workload, on every core, and say what came of it."""
    plan = plan_of(folder, name, WORKLOADS[name])
    seen = explore(plan, 0, SEED, budget_s=0, plans=plans, jobs=0)
    per_minute = seen.replications / seen.seconds * 60
    fired = ", ".join(f"{kind} {count:,}" for kind, count in sorted(seen.fired.items()))
    say(f"{name}: {seen.replications:,} replications, {per_minute:,.0f} a minute; fired: {fired}")
    return seen


def over_tcp(folder: Path, replications: int, say: Say) -> ScenarioResult:
    """Run the workload with kills over sockets, on every core, and say what came of it."""
    path = Path(plan_of(folder, "kills", KILLS).path)
    options: dict[str, Any] = {"driver": "trio", "transport": "tcp", "speed": TCP_SPEED, "jobs": 0}
    begun_s = time.monotonic()
    results = run(path, replications=replications, **options).scenarios[0]
    took_s = time.monotonic() - begun_s
    (cell,) = results.cells
    fired = {
        fault.name: int(sum(cell.fired(fault.name))) for fault in results.plan.scenarios[0].faults
    }
    say(
        f"over TCP: {replications} replications in {took_s:.0f} s, "
        f"{replications / took_s * 60:,.0f} a minute; fired: {fired}"
    )
    return results


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Prints past pytest's capture, so that a soak tells its figures when it passes too."""

    def line(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="")  # noqa: T201  the figures are what a soak is for

    return line


def judge_explored(seen: Explored, plans: int) -> None:
    assert seen.found is None, seen.found
    assert seen.replications == plans
    assert seen.fired.keys() == FAULTS.keys() - FROM_LOGS, "every kind of fault was tried"
    assert sum(seen.fired.values()) > plans


def judge_tcp(results: ScenarioResult, replications: int) -> None:
    assert results.troubles == []
    assert results.found == []
    (cell,) = results.cells
    for fault in ("kill-1", "kill-2", "kill-3"):
        assert list(cell.fired(fault)) == [1] * replications


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_few_random_plans_find_nothing(name: str, tmp_path: Path, say: Say) -> None:
    seen = explored(tmp_path, name, FEW_PLANS, say)
    assert seen.found is None, seen.found
    assert seen.replications == FEW_PLANS
    assert sum(seen.fired.values()) > FEW_PLANS


@pytest.mark.soak
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_hundred_thousand_random_plans_find_nothing(name: str, tmp_path: Path, say: Say) -> None:
    judge_explored(explored(tmp_path, name, PLANS[name], say), PLANS[name])


def test_kills_over_sockets_violate_no_check(tmp_path: Path, say: Say) -> None:
    judge_tcp(over_tcp(tmp_path, FEW_TCP_REPLICATIONS, say), FEW_TCP_REPLICATIONS)


@pytest.mark.soak
def test_two_hundred_replications_with_kills_over_sockets_violate_no_check(
    tmp_path: Path, say: Say
) -> None:
    judge_tcp(over_tcp(tmp_path, TCP_REPLICATIONS, say), TCP_REPLICATIONS)


def test_the_plans_are_a_hundred_thousand() -> None:
    assert sum(PLANS.values()) >= 100_000
    assert PLANS.keys() == WORKLOADS.keys()
