"""One trial of a shrink: a candidate's replication in the simulator, and what it shows.

The replication that counts is the last one that the data asks for. A candidate that does much more
than what it came from, or that can't be loaded, shows nothing.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from actors.errors import SimulationError
from logs.keep import MemoryRecorder
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.cell import CellLoader
from scenarios.checks import history_of, judge
from scenarios.decode import Decoder
from scenarios.judging import SENTENCES_LIMIT_CHARS, checks_of
from scenarios.problems import ScenarioError
from scenarios.shrink import Data
from scenarios.source import Source
from scenarios.spec import Scenario
from scenarios.watchdog import PATIENCE_S, watchdog
from scenarios.work import trouble_of

TRY_PATIENCE_S = 1.0  # that one instant of a candidate may take: it should do less than its parent
ROOM_RECORDS = 2_000  # that a candidate may have besides four times those of the first
# What these check depends on how long the scenario gives everything to end.
TIMED = frozenset({"converges_after_heal", "outbox_drains", "results_arrive"})


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """What every candidate must show: a violated check, or else a kind of trouble.

    `check` is what [run] check calls it; `actor` is who fails, or the check that can't judge, and
    `error` the type of what it raises. With `control` nothing may be shown once the faults are
    taken away. No replication may have more than `limit_records`.
    """

    check: str = ""
    kind: str = ""
    actor: str = ""
    error: str = ""
    control: bool = False
    limit_records: int = sys.maxsize

    @property
    def words(self) -> str:
        """The goal in a few words."""
        return self.check or (f"{self.actor} {self.kind}" if self.actor else self.kind)

    @property
    def timed(self) -> bool:
        """Whether the time that a scenario gives is part of what is shown.

        A user's own check may look at the clock, so it counts too.
        """
        return self.kind == "limit reached" or self.check in TIMED or ":" in self.check


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What a replication showed: its violated checks with a sentence each, or its trouble."""

    checks: dict[str, str] = {}
    kind: str = ""
    actor: str = ""
    error: str = ""
    sentence: str = ""
    records: int = 0

    def shows(self, goal: Goal) -> bool:
        """Whether it shows what is looked for."""
        if goal.check:
            return goal.check in self.checks
        return (self.kind, self.actor, self.error) == (goal.kind, goal.actor, goal.error)

    def sentence_of(self, goal: Goal) -> str:
        """What is said of what is looked for."""
        return self.checks[goal.check] if goal.check else self.sentence


class TooLongError(SimulationError):
    """A candidate does much more than what it came from."""


class _Bounded(MemoryRecorder):
    """Keeps so many records at most: a candidate that polls without end is given up."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.batch = limit

    def _flush(self) -> None:
        raise TooLongError(f"more than {self.batch:,} records")


def scenario_of_data(data: Data, folder: Path, place: str = "a candidate") -> Scenario:
    """Return the scenario that a cell's data has; ScenarioError with everything wrong about it.

    `place` is what errors call the data.
    """
    decoder = Decoder(Source(place, "", data))
    scenario = CellLoader(decoder, data, folder).load()
    decoder.finish()
    assert scenario is not None, "without a problem there is a scenario"
    return scenario


def replication_of(data: Data) -> int:
    """Return the replication that counts, from 0: the last."""
    return int(data.get("run", {}).get("replications", 1)) - 1


def cell_of(data: Data, label: str, folder: Path, **more: Any) -> CellRun:
    """Build data's cell; ScenarioError or ForeignActorError if that can't be."""
    scenario = scenario_of_data(data, folder)
    return CellRun(scenario, scenario.run.seed, label, folder, **more)


def holds(goal: Goal, label: str, folder: Path, data: Data) -> bool:
    """Whether data shows the goal, and with `control` not without its faults."""
    if goal.control and "fault" not in data:
        return False
    try:
        if not show(data, label, folder, goal=goal).shows(goal):
            return False
        bare = {key: value for key, value in data.items() if key != "fault"}
        return not (goal.control and show(bare, label, folder, goal=goal).shows(goal))
    except (ScenarioError, ForeignActorError):
        return False


def show(data: Data, label: str, folder: Path, *, goal: Goal | None = None) -> Shown:
    """Run the replication of data that counts, and return what it shows.

    Without a goal every check that the scenario asks for is judged. ScenarioError or
    ForeignActorError if the data makes no cell.
    """
    cell = cell_of(data, label, folder)
    patience_s = PATIENCE_S if goal is None else TRY_PATIENCE_S
    recorder = _Bounded(sys.maxsize if goal is None else goal.limit_records)
    try:
        # What an actor prints, hundreds of times, belongs to nobody.
        with contextlib.redirect_stdout(io.StringIO()), watchdog(cell.simulator, patience_s):
            cell.simulator.run(replication_of(data), recorder)
            checks = dict(_violated(cell, recorder, folder))
    except TooLongError:
        return Shown(kind="too long")
    except (SimulationError, SystemExit) as error:
        trouble = trouble_of(error, replication_of(data), cell)
        # Each of these sentences begins with whose failure it is.
        failed = trouble.kind == "failed"
        return Shown(
            kind=trouble.kind,
            actor=trouble.sentence.partition(" ")[0] if failed else "",
            error=type(error.__cause__ or error).__name__ if failed else "",
            sentence=trouble.sentence,
            records=len(recorder.records),
        )
    return Shown(checks=checks, records=len(recorder.records))


def _violated(cell: CellRun, recorder: MemoryRecorder, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each check that does not hold, by the name that [run] has for it."""
    run = cell.scenario.run
    checks = checks_of(run.check, folder, faults=bool(cell.scenario.faults))
    if not checks:
        return
    history = history_of(cell, recorder, healed_us=cell.healed_us, converge_us=run.converge)
    for name, check in checks.items():
        for violation in judge(history, {name: check})[:1]:
            yield name, violation.sentence[:SENTENCES_LIMIT_CHARS]
