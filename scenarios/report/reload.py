"""Results from a folder: what a run wrote into its journal, joined and judged again.

The folder has every value of every metric, so nothing is run. Its scenario files must still be what
they were: they say what is judged.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from scenarios.folder import FORMAT, SUMMARY, FolderError, Head, read_journal, resuming
from scenarios.load import Plan
from scenarios.problems import listed
from scenarios.render import plural
from scenarios.results import Results
from scenarios.run import load_plans
from scenarios.runner import Options, Runner
from scenarios.shipped import JOURNAL

CELLS_SHOWN = 3  # of those that lack replications
ANEW = "run the scenario anew"


class Reloaded(msgspec.Struct, frozen=True):
    """Results, and the options they were run with."""

    results: Results
    options: Options


def reload(target: Path) -> Reloaded:
    """Return the results that a folder, or the results.json in it, has.

    FolderError if there is no such folder, it holds no results, they are not whole, or a scenario
    file has changed since; ScenarioError if one can't be read any more.
    """
    folder = _folder(target)
    head, entries, _ = read_journal(folder / JOURNAL)
    if head.format != FORMAT:
        raise FolderError(f"{folder} was written by another version of pullcord", ANEW)
    options = msgspec.convert({**head.options, "jobs": 1}, Options)
    plans = _plans(folder, head, options)
    runner = Runner(plans, options, None)
    results = runner.look(entries)
    finished = (folder / SUMMARY).is_file()
    if not finished or (runner.done < runner.total and not runner.schedule.ends):
        raise _partial(folder, runner, finished)
    results.folder, results.seconds = folder, None
    return Reloaded(results, options)


def _folder(target: Path) -> Path:
    """Return the results folder that is meant, or say why there is none."""
    folder = target.parent if target.name == SUMMARY and not target.is_dir() else target
    cure = "name the folder that the last line of pullcord run named"
    if not target.exists():
        raise FolderError(f"{target}: there is no such folder", cure)
    if not folder.is_dir():
        raise FolderError(f"{folder} is a file, not a results folder", cure)
    if not (folder / JOURNAL).is_file():
        raise FolderError(f"{folder} has no results: there is no {JOURNAL} in it", cure)
    return folder


def _plans(folder: Path, head: Head, options: Options) -> list[Plan]:
    """Load the scenario files, named as they were where the run was begun."""
    plans = load_plans([str(Path(head.cwd, path)) for path in head.paths], options)
    if len(plans) != len(head.paths):
        raise FolderError(f"{folder} is of other scenario files than there are now", ANEW)
    for plan, path, digest in zip(plans, head.paths, head.digests, strict=True):
        plan.path = path
        if plan.digest != digest:
            raise FolderError(
                f"{path}, or an actor that it uses, has changed since {folder} was written", ANEW
            )
    return plans


def _partial(folder: Path, runner: Runner, finished: bool) -> FolderError:
    """Say what is missing."""
    lacking = []
    for one in runner.results.scenarios:
        for cell in one.cells:
            wanted = 1 if runner.options.replication is not None else cell.scenario.run.replications
            if cell.replications < wanted:
                name = f"{one.name} [{cell.cell.label}]" if cell.cell.label else one.name
                lacking.append(f"{wanted - cell.replications:,} of {name}")
    more = len(lacking) - CELLS_SHOWN
    words = lacking[:CELLS_SHOWN] + ([f"those of {plural(more, 'other cell')}"] if more > 0 else [])
    missing = ""
    if words:
        missing = f"; of {runner.total:,} replications it lacks {listed(words, last='and')}"
    why = "its journal is not whole" if finished else "its run was interrupted"
    cure = ANEW if finished else f"go on with it: {resuming(folder)}"
    return FolderError(f"{folder} can't be reported: {why}{missing}", cure)
