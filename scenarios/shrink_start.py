"""Where a shrink begins: a log or a scenario file, and the replication of it that shows something.

What is shrunk is one cell as plain data of its own: its swept values in place, its faults by name
(their chance comes from it), its actors' files named from the root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from logs.read import HEADER, LogError
from logs.record import HeaderRecord
from logs.seek import raw_section
from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS
from scenarios.explore import checks_wanted
from scenarios.load import Plan, cell_data
from scenarios.log_sections import chosen, refuse
from scenarios.overrides import assign
from scenarios.problems import quote, suggest
from scenarios.replay import job_of_header
from scenarios.run import load_plans
from scenarios.runner import Options, chosen_cells
from scenarios.shipped import shown
from scenarios.shrink import Data
from scenarios.shrink_steps import Rules, at
from scenarios.shrink_trial import (
    ROOM_RECORDS,
    Goal,
    Shown,
    replication_of,
    scenario_of_data,
    show,
)
from scenarios.stand_in import NEEDS_TCP
from scenarios.sweep import Cell

LABEL_REPLICATIONS = 100  # among which a swept cell's trouble is looked for without its label
RESULTS = ("metrics", "table", "expect", "sweep", "summary")  # what shows nothing of a violation
_LABEL_KEY = re.compile(r"(?:^|, )([\w-]+(?:\.[\w-]+)*)=")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which replication is meant: what the command line says of it."""

    seed: int | None = None
    cell: str | None = None
    replication: int | None = None
    check: str | None = None


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """One replication of a cell that is to be tried; `origin` says in words where it comes from.

    `assignments` are the swept keys with their values, whose label names the chance.
    """

    data: Data
    origin: str
    assignments: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The cell's label."""
        return Cell(self.assignments).label

    @property
    def rules(self) -> Rules:
        """Which keys must stay: those that the label holds."""
        copied = dict(self.data)
        return Rules(fixed=[path for one in self.assignments for path in assign(copied, *one)])


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A replication that shows something, ready to be shrunk."""

    start: Start
    goal: Goal
    shown: Shown


HERE = Path("/")  # every file is named from the root


def find(
    target: str, wanted: Wanted, late: Callable[[], bool], tell: Callable[[int], object] = bool
) -> tuple[Found | None, int]:
    """Return the first replication that shows something, and how many were tried.

    ScenarioError or LogError if the target can't be read or used. `late` ends the search; at least
    one is tried. `tell` is given the number that has been tried.
    """
    tried = 0
    for start in starts(target, wanted):
        try:
            seen = show(start.data, start.label, HERE)
        except ForeignActorError as error:
            refuse(target, str(error), error.cure)
        tried += 1
        goal = _goal(seen, wanted.check)
        if goal is not None:
            return _ready(start, goal, seen), tried
        if late():
            break
        tell(tried)
    return None, tried


def starts(target: str, wanted: Wanted) -> Iterator[Start]:
    """Yield the replications that a target means, in order; of a file without an end."""
    if wanted.check is not None and ":" not in wanted.check and wanted.check not in CHECKS:
        near = suggest(wanted.check, CHECKS)
        cure = f"did you mean {quote(near)}?" if near else "pullcord names check"
        refuse("--check", f"no check is called {quote(wanted.check)}", cure)
    if is_log(Path(target)):
        yield from _of_log(Path(target), wanted)
    else:
        yield from _of_file(target, wanted)


def is_log(path: Path) -> bool:
    """Whether a path is a log, or a folder of results."""
    if path.is_dir():
        return (path / "journal.jsonl").exists() or any(path.glob("*.jsonl"))
    if path.suffix == ".jsonl":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False


def _of_file(target: str, wanted: Wanted) -> Iterator[Start]:
    options = Options(seed=wanted.seed, cell=wanted.cell)
    plans = load_plans([target], options)
    if len(plans) > 1:
        refuse(target, f"it has {len(plans)} scenarios, and this is about one", "name its file")
    (plan,) = plans
    cells = chosen_cells(plan, options)
    numbers = count() if wanted.replication is None else iter([wanted.replication])
    for number in numbers:
        for index in cells:
            yield _of_cell(plan, index, number)


def _of_cell(plan: Plan, index: int, replication: int) -> Start:
    cell, scenario = plan.cells[index], plan.scenarios[index]
    data = prepared(cell_data(plan.data, cell), plan.folder, scenario.run.seed, replication)
    words = f"{shown(plan.path)}, " + (f"cell {cell.label}, " if cell.label else "")
    words += f"seed {scenario.run.seed}, replication {replication}"
    return Start(data=data, origin=words, assignments=cell.assignments)


def _of_log(log: Path, wanted: Wanted) -> Iterator[Start]:
    if wanted.seed is not None:
        refuse("--seed", "a log has its seed already", "leave it out")
    for entry in chosen(log, wanted.cell, wanted.replication):
        header = raw_section(entry).header()
        place = f"{entry.path}, line {entry.line}"
        if not header.resolved:
            cure = "logs of pullcord run --logs all can be shrunk"
            raise LogError(place, "its header has no scenario, so nothing can be run again", cure)
        if header.driver != "sim":
            cure = f"first pullcord replay {entry.path} --to-scenario FILE, then shrink that file"
            raise LogError(place, "it is of real tasks, whose order no seed gives again", cure)
        folder = Path(job_of_header(header).folder)
        data = prepared(header.resolved, folder, header.seed, header.replication, place)
        yield Start(
            data=data,
            origin=f"the log {entry.path}: {entry.words}, seed {header.seed}",
            assignments=_assignments(header, place),
        )


def _assignments(header: HeaderRecord, place: str) -> tuple[tuple[str, Any], ...]:
    """Return the swept keys that a label names, with their values from the log's scenario."""
    keys = _LABEL_KEY.findall(header.cell)
    found = tuple((key, at(header.resolved, tuple(key.split(".")))) for key in keys)
    if Cell(found).label != header.cell:
        cure = f"shrink its scenario: pullcord shrink FILE --cell {quote(header.cell)}"
        raise LogError(place, f"its cell's label can't be read: {header.cell}", cure)
    return found


def prepared(
    data: Data, folder: Path, seed: int, replication: int, place: str = "the scenario"
) -> Data:
    """Return a cell's data as it is shrunk: with everything that its chance depends on.

    ScenarioError if it can't be loaded, as data of another version, or can't be simulated.
    """
    kept = {key: value for key, value in data.items() if key not in RESULTS}
    kept = _from_root(kept, folder.resolve())
    scenario = scenario_of_data(kept, HERE, place)
    for one in scenario.cast:
        if one.command:
            refuse("pullcord shrink", NEEDS_TCP.format(one.name), "shrinking is in the simulator")
    check = checks_wanted(scenario)
    run = {
        **kept.get("run", {}),
        "seed": seed,
        "replications": replication + 1,
        "check": check if isinstance(check, str) else list(check),
    }
    faults = kept.pop("fault", [])
    faults = [faults] if isinstance(faults, dict) else faults
    named = [
        {**one, "name": fault.name} for one, fault in zip(faults, scenario.faults, strict=True)
    ]
    return {**kept, "run": run, **({"fault": named} if named else {})}


def _from_root(value: Any, folder: Path, key: str = "") -> Any:
    """Return data with the files of users' own actors and checks named from the root."""
    if key in ("use", "check") and isinstance(value, str) and ".py:" in value:
        return str(folder / value)
    if isinstance(value, dict):
        return {inner: _from_root(one, folder, inner) for inner, one in value.items()}
    if isinstance(value, list):
        return [_from_root(one, folder, key) for one in value]
    return value


def _goal(seen: Shown, check: str | None) -> Goal | None:
    """Return what is to be kept of what a replication shows; None if it shows nothing wanted."""
    if seen.kind:
        return None if check else Goal(kind=seen.kind, actor=seen.actor, error=seen.error)
    wanted = (name for name in seen.checks if check in (None, name) or name.endswith(f"/{check}"))
    name = next(wanted, None)
    return None if name is None else Goal(check=name)


def _ready(start: Start, goal: Goal, seen: Shown) -> Found:
    """Return the start with the goal's check alone, and if that goes without the cell's label."""
    limit = 4 * seen.records + ROOM_RECORDS
    goal = msgspec.structs.replace(goal, limit_records=limit)
    if goal.check:
        start = _with_run(start, check=goal.check)
    if start.label:
        start = _without_label(start, goal)
    if goal.timed and "fault" in start.data:
        bare = {key: value for key, value in start.data.items() if key != "fault"}
        quiet = not show(bare, start.label, HERE, goal=goal).shows(goal)
        goal = msgspec.structs.replace(goal, control=quiet)
    return Found(start=start, goal=goal, shown=show(start.data, start.label, HERE, goal=goal))


def _with_run(start: Start, **keys: Any) -> Start:
    data = {**start.data, "run": {**start.data["run"], **keys}}
    return msgspec.structs.replace(start, data=data)


def _without_label(start: Start, goal: Goal) -> Start:
    """Return a start whose file needs no sweep, if one of its first replications shows the goal."""
    own = replication_of(start.data)
    for replication in dict.fromkeys([own, *range(LABEL_REPLICATIONS)]):
        other = _with_run(start, replications=replication + 1)
        if show(other.data, "", HERE, goal=goal).shows(goal):
            return msgspec.structs.replace(other, assignments=())
    return start
