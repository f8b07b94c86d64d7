"""What a user asks for on the command line, checked: every mistake at once, none passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scenarios.choices import Driver
from scenarios.flags import CellFlags, RunFlags
from scenarios.overrides import Override, parse_override
from scenarios.problems import Problem, ScenarioError, listed
from scenarios.runner import Options
from transports.units import parse_duration


def options_of(targets: Sequence[str] | None, flags: CellFlags) -> Options:
    """Return the options that flags mean; ScenarioError with everything wrong about them."""
    run = flags if isinstance(flags, RunFlags) else RunFlags()
    problems = [
        _problem(flag, f"must be at least {least}, not {given}", cure)
        for flag, given, least, cure in (
            ("--seed", flags.seed, 0, None),
            ("--replications", flags.replications, 1, None),
            ("--replication", run.replication, 0, "they are counted from 0"),
            ("--jobs", flags.jobs, 1, "leave it out for one process a core"),
        )
        if given is not None and given < least
    ]
    if not targets and run.resume is None:
        problems.append(_problem("pullcord run", "which scenario?", "pullcord run @published"))
    if flags.cell is not None and flags.contains is not None:
        problems.append(_problem("--cell", "names one cell, so -k can't choose others"))
    overrides: list[Override] = []
    for text in flags.set or ():
        try:
            overrides.append(parse_override(text))
        except ValueError as error:
            problems.append(_problem("--set", str(error)))
    patience_s = 0.0
    try:
        patience_s = parse_duration(run.patience) / 1e6
    except ValueError as error:
        problems.append(_problem("--patience", str(error)))
    else:
        if not patience_s:
            problems.append(_problem("--patience", "must be above 0s"))
    driver = _driver(run, problems)
    if problems:
        raise ScenarioError(problems)
    return Options(
        overrides=tuple(overrides),
        seed=flags.seed,
        replications=flags.replications,
        replication=run.replication,
        cell=flags.cell,
        contains=flags.contains,
        jobs=flags.jobs or 0,
        executor=run.executor,
        logs=run.logs,
        patience_s=patience_s,
        driver=driver,
        transport=run.transport,
        processes=run.processes,
        speed=run.speed,
    )


def _driver(run: RunFlags, problems: list[Problem]) -> Driver:
    """Return what drives the actors, adding what is wrong with it to the problems."""
    if not 0 < run.speed < float("inf"):
        problems.append(_problem("--speed", f"must be above 0, not {run.speed:g}"))
    driver = run.driver or ("sim" if run.transport == "memory" else "trio")
    if driver == "sim" and run.transport != "memory":
        words = f"the simulator has no sockets, so --transport {run.transport} needs another driver"
        problems.append(_problem("--driver", words, "leave --driver out, or write --driver trio"))
    return driver


class ExploreLimits(NamedTuple):
    """How long an exploration may go on, from which seed, on how many processes."""

    budget_s: float
    plans: int | None
    seed: int
    jobs: int


def explore_limits(
    targets: Sequence[str], budget: str, plans: int | None, seed: int, jobs: int | None
) -> ExploreLimits:
    """Return what flags of `explore` mean; ScenarioError with everything wrong about them."""
    problems = [
        _problem(flag, f"must be at least {least}, not {given}")
        for flag, given, least in (("--plans", plans, 1), ("--seed", seed, 0), ("--jobs", jobs, 1))
        if given is not None and given < least
    ]
    budget_s = 0.0
    try:
        budget_s = parse_duration(budget) / 1e6
    except ValueError as error:
        problems.append(_problem("--budget", str(error)))
    else:
        if not budget_s:
            problems.append(_problem("--budget", "must be above 0s"))
    if not targets:
        cure = "pullcord explore @ablation"
        problems.append(_problem("pullcord explore", "which scenario?", cure))
    if problems:
        raise ScenarioError(problems)
    return ExploreLimits(budget_s, plans, seed, jobs or 0)


def refuse_with_resume(given: Sequence[str]) -> None:
    """Refuse flags that a resumed run has already."""
    if given:
        words = f"goes on with a run as it was begun, so {listed(given, last='and')} can't be given"
        raise ScenarioError([_problem("--resume", words, "leave it out, or run it anew")])


def _problem(path: str, message: str, cure: str | None = None) -> Problem:
    return Problem(path=path, message=message, cure=cure)
