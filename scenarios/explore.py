"""The search: random fault plans, one a replication, until a check does not hold."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.errors import SimulationError
from scenarios import work
from scenarios.build import CellRun
from scenarios.decode import Decoder
from scenarios.executors import cores, processes
from scenarios.judging import Judging, checks_of
from scenarios.load import Plan, cell_data
from scenarios.runner import job_of
from scenarios.source import Source
from scenarios.spec import FAULTS, RunTable, Scenario
from scenarios.swarm import HEAL_S, Table, plan_of
from scenarios.watchdog import PATIENCE_S, watchdog
from scenarios.work import CellJob
from transports.faults.fault import Fault
from transports.units import Duration

AFTER_US = 3_600_000_000  # that an exploration goes on after the last fault
CONVERGE_US = 1_800_000_000  # by then all must have ended, where the scenario doesn't say
UNTIL = Duration(HEAL_S * 1_000_000 + AFTER_US)
RANGE_PLANS = 25  # at a time in one process


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Plans `first` to `last` (exclusive) of a seed."""

    seed: int
    first: int
    last: int


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan brought to light."""

    plan: int
    check: str
    sentence: str
    records: tuple[int, ...] = ()


class Explored(msgspec.Struct, kw_only=True):
    """What was explored of one cell: how many plans, what fired, and the first discovery."""

    replications: int = 0
    seconds: float = 0.0
    fired: dict[str, int] = {}
    found: Discovery | None = None

    def add(self, other: Explored) -> None:
        """Take in what a range gave."""
        self.replications += other.replications
        self.fired = dict(Counter(self.fired) + Counter(other.fired))
        if other.found is not None and (self.found is None or other.found.plan < self.found.plan):
            self.found = other.found


def explore(
    plan: Plan, index: int, seed: int, *, budget_s: float, plans: int | None, jobs: int
) -> Explored:
    """Try plans on one cell until one finds something, the time is up or so many were tried."""
    job = job_of(plan, index)
    begun = time.monotonic()
    total = Explored(fired={})

    def late() -> bool:
        return plans is None and time.monotonic() - begun > budget_s

    jobs = jobs or cores()
    with processes(jobs) as executor:
        _drive(executor, job, seed, plans, jobs, total, late)
    total.seconds = time.monotonic() - begun
    return total


def _drive(
    executor: Executor,
    job: CellJob,
    seed: int,
    plans: int | None,
    jobs: int,
    total: Explored,
    late: Callable[[], bool],
) -> None:
    """Keep so many ranges at work; ranges before the one that found something are waited for."""
    first = 0
    at_work: set[Future[Explored]] = set()
    while True:
        while len(at_work) < jobs and total.found is None and not late():
            last = first + RANGE_PLANS if plans is None else min(first + RANGE_PLANS, plans)
            if first >= last:
                break
            at_work.add(executor.submit(explore_range, job, Ask(seed=seed, first=first, last=last)))
            first = last
        if not at_work:
            return
        done, at_work = wait(at_work, return_when=FIRST_COMPLETED)
        for future in done:
            total.add(future.result())


def explore_range(job: CellJob, ask: Ask) -> Explored:
    """Try a range of plans on a cell; the first discovery ends it."""
    scenario, folder = work.scenario_of(job), Path(job.folder)
    checks = checks_of(checks_wanted(scenario), folder, faults=True)
    total = Explored(fired={})
    for number in range(ask.first, ask.last):
        tables = plan_of(ask.seed, number, actors_of(scenario))
        # Without the cell's label, which names its chance: the file that shows it has no sweep.
        cell = CellRun(with_plan(scenario, tables), job.seed, "", folder)
        judging = Judging(cell, checks)
        found: Discovery | None = None
        try:
            with watchdog(cell.simulator, PATIENCE_S):
                cell.simulator.run(number, judging.recorder())
                violations = judging.judge(number)
            for violation in violations[:1]:
                found = Discovery(
                    plan=number,
                    check=violation.check,
                    sentence=violation.sentence,
                    records=violation.records,
                )
        except (SimulationError, SystemExit) as error:
            trouble = work.trouble_of(error, number, cell)
            found = Discovery(plan=number, check=trouble.kind, sentence=trouble.sentence)
        total.replications += 1
        for working, table in zip(cell.faults[-len(tables) :], tables, strict=True):
            total.fired[table["kind"]] = total.fired.get(table["kind"], 0) + working.fired
        if found is not None:
            total.found = found
            break
    return total


def actors_of(scenario: Scenario) -> Mapping[str, str]:
    """Return the kinds of a scenario's actors by name, but for owners, who are people."""
    return {one.name: one.kind for one in scenario.cast if one.kind != "owner"}


def checks_wanted(scenario: Scenario) -> str | tuple[str, ...]:
    """Return what an exploration judges: what the file asks for, all where it says nothing."""
    return "all" if scenario.run.check in ("auto", "none") else scenario.run.check


def run_of(scenario: Scenario) -> RunTable:
    """Return [run] as an exploration has it: until long after everything has healed."""
    run = scenario.run
    return replace(
        run,
        check=checks_wanted(scenario),
        converge=run.converge or Duration(CONVERGE_US),
        until=str(UNTIL),
        limit=Duration(max(run.limit, 2 * UNTIL)),
    )


def with_plan(scenario: Scenario, tables: list[Table]) -> Scenario:
    """Return the scenario under a plan's faults."""
    run, faults = run_of(scenario), (*scenario.faults, *map(_fault, tables))
    return replace(scenario, run=run, until=(str(UNTIL),), faults=faults)


def _fault(table: Table) -> Fault:
    kind = FAULTS[table["kind"]]
    fault = Decoder(Source("plan", "", table)).struct((), table, kind, ignore=["kind"])
    assert fault is not None, "a plan has faults that there are"
    return fault


def found_file(plan: Plan, index: int, seed: int, found: Discovery) -> dict[str, Any]:
    """Return a scenario file's data that shows what was found, in its only replication.

    It may lie anywhere: the files of users' own actors are named from the root.
    """
    scenario = plan.scenarios[index]
    data = dict(cell_data(plan.data, plan.cells[index]))
    data.pop("sweep", None)
    run = run_of(scenario)
    data["run"] = {
        "seed": run.seed,
        "first": found.plan,
        "replications": 1,
        **({"chance": run.chance} if run.chance else {}),
        "until": run.until,
        "limit": str(run.limit),
        "check": run.check if isinstance(run.check, str) else list(run.check),
        "converge": str(run.converge),
    }
    own = data.get("fault", [])
    faults = plan_of(seed, found.plan, actors_of(scenario))
    data["fault"] = [*([own] if isinstance(own, dict) else own), *faults]
    for section in ("expect", "table"):
        data.pop(section, None)
    return with_absolute_files(data, plan.folder)


def with_absolute_files(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the data with the files of users' own actors named from the root."""

    def moved(key: str, value: Any) -> Any:
        if key in ("use", "check") and isinstance(value, str) and ".py:" in value:
            return str(folder.resolve() / value)
        if isinstance(value, dict):
            return {inner: moved(inner, one) for inner, one in value.items()}
        if isinstance(value, list):
            return [moved(key, one) for one in value]
        return value

    return {key: moved(key, value) for key, value in data.items()}
