"""From a log's section to a stepper: its cell is built for replay, its checks are there when asked.

Metrics are left out: they would count again what is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from actors.checkpoints import SteppedReplayer
from actors.recorded import SteppedProcess
from logs.read import LogError, Section
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, judge
from scenarios.checks.history import History, Violation
from scenarios.log_check import STANDS_ON, why_not
from scenarios.log_history import history_of_log
from scenarios.log_sections import no_scenario
from scenarios.problems import ScenarioError
from scenarios.replay import job_of_header
from scenarios.stepper import Stepper
from scenarios.work import CellJob, scenario_of

if TYPE_CHECKING:
    from scenarios.service.replaying import Start

END_LIMIT_RECORDS: Final = 10_000  # re-executed before the first answer: half a second


def stepper_of(section: Section, folder: Path | None = None) -> Stepper:
    """Return a stepper on a section; LogError if it can't be re-executed or is empty.

    `folder` is where a user's own actors lie, if not where the header says.
    """
    if not section.header.resolved:
        cure = "logs of pullcord run --logs all can be; pullcord log show needs no scenario"
        raise no_scenario(section, "step through", cure)
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
    return Stepper(section, make, lambda stepper: list(_violations(stepper)), left_out=programs)


def stepper_of_process(start: Start) -> Stepper:
    """Return a stepper on what a deployed process wrote; LogError if its settings are no more."""
    from scenarios.service.replaying import process_of  # noqa: PLC0415  has every actor

    def make() -> SteppedProcess:
        return process_of(start, SteppedProcess)

    left_out = sorted(make().edges)
    return Stepper(start.section, make, lambda stepper: list(_violations(stepper)), left_out)


def _replayer(job: CellJob) -> SteppedReplayer:
    scenario = msgspec.structs.replace(scenario_of(job), metrics={})
    host = CellRun(scenario, job.seed, job.label, Path(job.folder), world=SteppedReplayer).simulator
    assert isinstance(host, SteppedReplayer), "it was made by this factory"
    return host


def _violations(stepper: Stepper) -> Iterator[Violation]:
    """Judge a section by every built-in check that can tell something of it."""
    cut = history_of_log(stepper.section)
    known = _knows_the_end(stepper)
    history = at_the_end(stepper, cut.history) if known else cut.history
    checks = {
        name: check
        for name, check in CHECKS.items()
        if (known and name in STANDS_ON) or not why_not(name, cut)
    }
    yield from judge(history, checks)


def _knows_the_end(stepper: Stepper) -> bool:
    """Whether re-execution tells what the stores are at the end, and soon enough."""
    section = stepper.section
    if section.end is None or len(section.records) > END_LIMIT_RECORDS:
        return False
    stepper.explore(section.records[-1].n)
    heard = dict.fromkeys(record.actor for record in section.records)
    return all(name in stepper.lanes and not stepper.lanes[name].differences for name in heard)


def at_the_end(stepper: Stepper, told: History) -> History:
    """Return a log's history with the stores and timers that re-execution ends with."""
    for lane in stepper.lanes.values():
        lane.go_to(stepper.records[-1].n)
    contexts = {name: lane.context for name, lane in stepper.lanes.items()}
    return History(
        told.records,
        kinds=told.kinds,
        configs=told.configs,
        stores={name: one.store.snapshot() for name, one in contexts.items()},
        timers={
            name: {timer: due[0] for timer, due in one.timers.items()}
            for name, one in contexts.items()
        },
        ended_us=told.ended_us,
        healed_us=told.healed_us,
        converge_us=told.converge_us,
        outcome=told.outcome,
    )
