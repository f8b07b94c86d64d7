"""From what a user names to a run: files to plans, a results folder, a resumed run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from scenarios.choices import Transport
from scenarios.folder import FORMAT, SUMMARY, Folder, FolderError, Head
from scenarios.load import Plan, load_plan, problem_of
from scenarios.overrides import Override
from scenarios.problems import Problem, ScenarioError, suggest
from scenarios.results import Results
from scenarios.runner import Options, Progress, Runner, chosen_cells
from scenarios.shipped import find
from scenarios.spec import SEPARATE_FAULTS, Cast, Scenario
from scenarios.stand_in import NEEDS_TCP
from transports.faults.fault import ActorFault

ROOT = Path(__file__).resolve().parent.parent


def run(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    overrides: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Run a scenario file, a folder of them, or a shipped one by its name ("@published").

    `overrides` sets keys: {"relay.poll": "5s"}. `options` are those of `scenarios.runner.Options`:
    seed, replications, replication, cell, contains, jobs, executor, logs, patience_s. Writes a
    results folder only if `out` names one. Raises ScenarioError with every problem of the files,
    FolderError if the folder can't be used, and KeyboardInterrupt when it was interrupted.

    Where processes are not forked (macOS, Windows, a program that has threads), a script that calls
    this with `jobs` other than 1 needs the usual `if __name__ == "__main__"`.
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    extra = tuple(Override(key, value) for key, value in (overrides or {}).items())
    chosen = msgspec.convert({"overrides": extra, **options}, Options)
    plans = load_plans([os.fspath(one) for one in paths], chosen)
    folder = None
    if out is not None:
        folder = Folder.create(Path(out), head_of(plans, chosen))
    elif chosen.logs != "none":
        raise ValueError("logs need a folder to be written to: give out=")
    results = Runner(plans, chosen, folder, progress).run()
    if results.interrupted is not None:
        raise KeyboardInterrupt(results.interrupted)
    return results


def load_plans(paths: Sequence[str], options: Options, *, to_run: bool = True) -> list[Plan]:
    """Load every scenario that the paths mean; ScenarioError with the problems of all.

    Unless they are `to_run`, a program of one's own without sockets is none of them.
    """
    plans: list[Plan] = []
    problems: list[Problem] = []
    for file in find(list(paths)):
        try:
            plans.append(load_plan(file, options.all_overrides()))
        except ScenarioError as error:
            problems.extend(one for one in error.problems if one not in problems)
    if options.driver != "sim":
        for plan in plans:
            plan.host = _host_flags(options)
    problems += _not_on_host(plans, options, to_run)
    if problems:
        raise ScenarioError(problems)
    seen: dict[str, str] = {}
    for plan in plans:
        if plan.name in seen:
            raise problem_of(
                plan.path,
                f'"{plan.name}" is also the name of {seen[plan.name]}',
                "give each its own: results and logs are filed under it",
            )
        seen[plan.name] = plan.path
    if not any(chosen_cells(plan, options) for plan in plans):
        raise _no_cell(plans, options)
    return plans


def _host_flags(options: Options) -> tuple[str, ...]:
    """Return the flags that choose a run's host again."""
    if options.transport == "memory":
        return ("--driver", options.driver)
    separate = () if options.processes == "one" else ("--processes", options.processes)
    return ("--transport", options.transport, *separate, "--speed", f"{options.speed:g}")


def _not_on_host(plans: Sequence[Plan], options: Options, to_run: bool) -> Iterator[Problem]:
    """Yield a problem for all that can't be on the host that the options choose."""
    if options.processes == "separate":
        yield from _no_processes(options)
    refuse = _not_on_trio if options.processes == "one" else _not_separate
    for plan in plans:
        yield from _not_on_programs(plan)
        yield from refuse(plan) if options.driver != "sim" else ()
        yield from _not_over(options.transport, plan) if to_run else ()


def _not_on_trio(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each fault that only the simulator can do."""
    for name in dict.fromkeys(
        fault.name for scenario in plan.scenarios for fault in scenario.faults if fault.sim_only
    ):
        words = f"the fault {name} acts in the simulator alone"
        yield Problem(path=plan.path, message=words, cure="leave --driver and --transport out")


def _not_on_programs(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each fault that could only act within programs of one's own."""
    for name, victim in dict.fromkeys(
        (fault.name, one.name)
        for scenario in plan.scenarios
        for fault in scenario.faults
        if isinstance(fault, ActorFault) and not fault.on_programs
        for one in _only_programs(scenario, fault.actor)
    ):
        words = f"the fault {name} acts within {victim}, a program of its own"
        yield Problem(path=plan.path, message=words, cure='use kind = "kill", or another actor')


def _only_programs(scenario: Scenario, actor: str) -> list[Cast]:
    """Return the victims of a fault if all of them are programs."""
    victims = [one for one in scenario.cast if fnmatchcase(one.name, actor)]
    return victims if all(one.command for one in victims) else []


def _no_processes(options: Options) -> Iterator[Problem]:
    """Yield what keeps actors from having processes of their own."""
    if sys.platform == "win32":
        words = "needs signals that stop and kill a process, which Windows has not"
        yield Problem(path="--processes", message=words, cure="leave it out")
    if options.transport == "memory":
        words = "processes have no memory in common, so separate ones need sockets"
        yield Problem(path="--processes", message=words, cure="give --transport tcp, or unix")


def _not_separate(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each fault that does not act on separate processes."""
    refused = {
        fault.name: type(fault).__struct_config__.tag
        for scenario in plan.scenarios
        for fault in scenario.faults
        if type(fault) not in SEPARATE_FAULTS
    }
    for name, kind in refused.items():
        words = f"the fault {name}, a {kind}, does not act on actors in processes of their own"
        yield Problem(path=plan.path, message=words, cure="leave --processes out")


def _not_over(transport: Transport, plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each part of a scenario that needs another transport."""
    if transport != "tcp":
        yield from _not_without_tcp(plan)
    if transport == "memory":
        yield from _not_without_sockets(plan)


def _not_without_tcp(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each program of one's own, which joins over sockets alone."""
    for name in dict.fromkeys(
        one.name for scenario in plan.scenarios for one in scenario.cast if one.command
    ):
        yield Problem(path=plan.path, message=NEEDS_TCP.format(name), cure="give --transport tcp")


def _not_without_sockets(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each fault that would do nothing to whole messages."""
    faults = (fault for scenario in plan.scenarios for fault in scenario.faults)
    for name in dict.fromkeys(fault.name for fault in faults if fault.needs_sockets):
        words = f"the fault {name} does nothing to a message that arrives whole, as in memory"
        yield Problem(path=plan.path, message=words, cure="give --transport tcp")


def _no_cell(plans: list[Plan], options: Options) -> ScenarioError:
    labels = [cell.label for plan in plans for cell in plan.cells if cell.label]
    if not labels:
        return problem_of("--cell" if options.cell else "-k", "nothing is swept here: leave it out")
    if options.cell is None:
        return problem_of(
            "-k", f'no cell\'s label contains "{options.contains}"', f"there is {labels[0]!r}"
        )
    near = suggest(options.cell, labels) or labels[0]
    return problem_of("--cell", f'no cell is called "{options.cell}"', f"there is {near!r}")


def head_of(plans: list[Plan], options: Options) -> Head:
    """Return the journal's first line."""
    fixed = msgspec.structs.replace(options, jobs=0, executor=None)
    return Head(
        code=code_digest(),
        cwd=str(Path.cwd()),
        paths=tuple(plan.path for plan in plans),
        digests=tuple(plan.digest for plan in plans),
        options=msgspec.to_builtins(fixed),
    )


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a hash of pullcord's own source, which decides the results too."""
    state = blake2b(digest_size=16)
    for name in ("actors", "transports", "scenarios", "logs"):
        for path in sorted((ROOT / name).rglob("*.py")):
            state.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def resume(
    path: Path, progress: Progress | None = None, jobs: int = 0, executor: str | None = None
) -> Results:
    """Go on with an interrupted run; FolderError if its files or the code have changed.

    One that has ended gives its results again, as they stand there if it ran on real clocks.
    """
    folder, head, entries = Folder.resume(path)
    try:
        plans, options = _as_begun(folder, head, jobs, executor)
        if options.driver != "sim" and (path / SUMMARY).is_file():
            # It would give other rows, and its logs would take the place of those that are there.
            results = Runner(plans, options, None).look(entries)
            results.folder, results.seconds = path, None
            folder.close()
            return results
        runner = Runner(plans, options, folder, progress)
        runner.restore(entries)
    except BaseException:
        folder.close()
        raise
    return runner.run()


def _as_begun(
    folder: Folder, head: Head, jobs: int, executor: str | None
) -> tuple[list[Plan], Options]:
    """Return what a run was begun with; FolderError if it has changed."""
    anew = "run it anew: its rows would come from two programs"
    since = f"since {folder.path} was begun"
    if head.format != FORMAT or head.code != code_digest():
        raise FolderError(f"pullcord itself has changed {since}", anew)
    chosen = msgspec.convert({**head.options, "jobs": jobs, "executor": executor}, Options)
    plans = load_plans([_from_here(one, head.cwd) for one in head.paths], chosen)
    changed = [
        plan.path for plan, digest in zip(plans, head.digests, strict=True) if plan.digest != digest
    ]
    if changed:
        names = ", ".join(changed)
        raise FolderError(f"{names}, or an actor that it uses, has changed {since}", anew)
    return plans, chosen


def _from_here(path: str, cwd: str) -> str:
    """Return a path as it was named, if it means the same file from the working directory."""
    return path if Path(cwd) == Path.cwd() else str(Path(cwd, path))


def default_base() -> Path:
    """Return where results go: logs/results in a checkout, else ./pullcord-results."""
    checkout = (ROOT / "pyproject.toml").is_file() and (ROOT / "logs" / "record.py").is_file()
    return ROOT / "logs" / "results" if checkout else Path("pullcord-results")


def default_name(plans: list[Plan], targets: Sequence[str]) -> str:
    """Return what a run's folder is called, less its number."""
    if len(plans) == 1:
        return plans[0].name
    return Path(targets[0].removeprefix("@")).resolve().name or "run"
