"""From a log's section to a stepper: its cell is built for replay, its checks are there when asked.

Metrics are left out: they would count again what is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from actors.checkpoints import SteppedReplayer
from logs.read import LogError, Section
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, judge
from scenarios.checks.history import Violation
from scenarios.log_check import why_not
from scenarios.log_history import history_of_log
from scenarios.problems import ScenarioError
from scenarios.replay import job_of_header
from scenarios.stepper import Stepper
from scenarios.work import CellJob, scenario_of


def stepper_of(section: Section, folder: Path | None = None) -> Stepper:
    """Return a stepper on a section; LogError if it can't be re-executed or is empty.

    `folder` is where a user's own actors lie, if not where the header says.
    """
    if not section.header.resolved:
        raise LogError(
            f"{section.path}, line {section.line}",
            "its header has no scenario, so there is nothing to step through",
            "logs of pullcord run --logs all can be; pullcord log show needs no scenario",
        )
    if not section.records:
        raise LogError(f"{section.path}, line {section.line}", "it has no records")
    job = job_of_header(section.header, folder)
    try:
        begun = [_replayer(job)]
    except ForeignActorError as error:
        cure = error.cure or "say where it is: --folder"
        raise LogError(section.where, str(error), cure) from None
    except ScenarioError as error:
        raise LogError(
            section.where,
            f"its scenario can't be read here: {error.problems[0].message}",
            f"step through it with pullcord {section.header.pullcord}, which wrote it",
        ) from None

    def make() -> SteppedReplayer:
        return begun.pop() if begun else _replayer(job)

    programs = [one.name for one in scenario_of(job).cast if one.command]
    return Stepper(section, make, lambda: list(_violations(section)), left_out=programs)


def _replayer(job: CellJob) -> SteppedReplayer:
    scenario = msgspec.structs.replace(scenario_of(job), metrics={})
    host = CellRun(scenario, job.seed, job.label, Path(job.folder), world=SteppedReplayer).simulator
    assert isinstance(host, SteppedReplayer), "it was made by this factory"
    return host


def _violations(section: Section) -> Iterator[Violation]:
    """Judge a section by every built-in check that its records can tell something of."""
    cut = history_of_log(section)
    checks = {name: check for name, check in CHECKS.items() if not why_not(name, cut)}
    yield from judge(cut.history, checks)
