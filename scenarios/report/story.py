"""A replication, told again: its records, and when each of its faults acted.

A simulated replication is made again from its seed. One that ran on another host can't be: its
story is the log that the run kept, if it kept one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from actors.errors import SimulationError
from logs.keep import MemoryRecorder
from logs.read import LogError, Section, log_files, read_sections
from logs.record import DropRecord, FaultRecord, Record
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.load import Plan
from scenarios.matchers import MetricError
from scenarios.results import CellResult
from scenarios.runner import Options, job_of
from scenarios.watchdog import watchdog
from scenarios.work import build, kind_of
from transports.faults.fault import Working

BEGINS = ("kill", "suspend", "pause")  # what a fault does to an actor, and
ENDS = ("start", "resume")  # what ends it
RECORDS_LIMIT = 500_000  # that are kept for the next time a story is asked for
Place = tuple[str, str, int]  # a scenario's name, a cell's label, a replication


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a fault had an actor down, suspended or paused."""

    fault: str
    actor: str
    act: str
    begin_us: int
    end_us: int


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a replication, and how it ended; times in microseconds.

    `windows` has when a fault that began was to act, to None for the end; `firings` when it did.
    """

    records: list[Record]
    end_us: int
    outcome: str
    windows: Mapping[str, tuple[int, int | None]]
    firings: Mapping[str, list[int]]

    def stops(self) -> list[Stop]:
        """Return when actors were stopped, in the order of the beginnings."""
        begun: dict[tuple[str, str], FaultRecord] = {}
        found: list[tuple[FaultRecord, int]] = []
        for record in self.records:
            if not isinstance(record, FaultRecord):
                continue
            key = record.actor, record.fault
            if record.act in BEGINS:
                begun[key] = record
            elif record.act in ENDS and key in begun:
                found.append((begun.pop(key), record.t))
        found += [(record, self.end_us) for record in begun.values()]
        return [
            Stop(fault=one.fault, actor=one.actor, act=one.act, begin_us=one.t, end_us=end_us)
            for one, end_us in sorted(found, key=lambda pair: pair[0].n)
        ]


class FiringRecorder(MemoryRecorder):
    """Keeps a replication's records, and the times at which its faults fired.

    Not every fault leaves a record, so their counts are looked at between two turns: what has fired
    since has done so in the turn before.
    """

    batch = 0  # so that `_flush` is called before each turn

    def __init__(self, faults: list[Working]) -> None:
        super().__init__()
        self._faults = faults
        self._counts = dict.fromkeys((fault.name for fault in faults), 0)
        self.firings: dict[str, list[int]] = {fault.name: [] for fault in faults}

    def _flush(self) -> None:
        now_us = self.records[-1].t if self.records else 0
        for fault in self._faults:
            fresh = fault.fired - self._counts[fault.name]
            if fresh > 0:
                at_us = max(now_us, fault.window.begin_us or 0)
                self.firings[fault.name] += [at_us] * fresh
            self._counts[fault.name] = fault.fired

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor, which is no turn."""
        self._flush()
        super().fault(t, actor, fault, act)

    def close(self) -> None:
        """Take note of what fired in the last turn."""
        self._flush()


class Teller:
    """Tells the stories of one run; a cell is built once.

    `unlike` counts the replications that gave other results than the run's when they were made
    again: its code was another one. They have no story.
    """

    def __init__(self, options: Options, folder: Path | None) -> None:
        self.options = options
        self._folder = folder
        self._cells: dict[tuple[str, int], CellRun | None] = {}
        self._kept: dict[Place, Story] = {}
        self._unlike: set[Place] = set()
        self._told: dict[Place, Story | None] = {}
        self._room = RECORDS_LIMIT

    @property
    def unlike(self) -> int:
        """How many replications could not be told again."""
        return len(self._unlike)

    def keep(self, places: Collection[Place]) -> None:
        """Look for the stories of a run on another host, in its logs."""
        if self.options.driver == "sim" or self._folder is None:
            return
        with contextlib.suppress(LogError):
            for path in log_files(self._folder / "logs"):
                for section in read_sections(path):
                    head = section.header
                    place = head.scenario, head.cell, head.replication
                    if place in places:
                        self._kept[place] = story_of(section)

    def tell(self, plan: Plan, result: CellResult, replication: int) -> Story | None:
        """Return a replication's story, None if there is none."""
        place = plan.name, result.cell.label, replication
        if self.options.driver != "sim":
            return self._kept.get(place)
        if place not in self._told:
            story = self._made_again(plan, result, replication)
            self._room -= 0 if story is None else len(story.records)
            if self._room < 0:
                return story
            self._told[place] = story
        return self._told[place]

    def _made_again(self, plan: Plan, result: CellResult, replication: int) -> Story | None:
        key = plan.name, result.index
        if key not in self._cells:
            self._cells[key] = self._built(plan, result.index)
        cell = self._cells[key]
        if cell is None:
            return None
        story = retold(cell, replication, self.options.patience_s)
        if not alike(cell, result, replication, story):
            self._unlike.add((plan.name, result.cell.label, replication))
            return None
        return story

    def _built(self, plan: Plan, index: int) -> CellRun | None:
        try:
            return build(job_of(plan, index, self.options))
        except ForeignActorError:
            return None


def alike(cell: CellRun, result: CellResult, replication: int, story: Story) -> bool:
    """Whether a replication that has just been made again is the one of the results.

    Of one in trouble it is asked whether it is in trouble again.
    """
    place = replication - result.first
    if place >= result.replications:
        return story.outcome != "ended" or result.trouble is not None
    if any(fault.fired != result.fired(fault.name)[place] for fault in cell.faults):
        return False
    for name, metric in cell.metrics.items():
        rows = next(rows for number, rows in result.rows(name) if number == replication)
        if metric.rows() != rows.tolist():
            return False
    return True


def retold(cell: CellRun, replication: int, patience_s: float) -> Story:
    """Run a simulated replication again, up to its end or its trouble."""
    recorder = FiringRecorder(cell.faults)
    outcome = "ended"
    try:
        with watchdog(cell.simulator, patience_s):
            cell.simulator.run(replication, recorder)
    except (SimulationError, MetricError, SystemExit) as error:
        outcome = kind_of(error)
    recorder.close()
    windows = {
        fault.name: (fault.window.begin_us, fault.window.end_us)
        for fault in cell.faults
        if fault.window.begin_us is not None
    }
    return Story(
        records=recorder.records,
        end_us=cell.simulator.now_us,
        outcome=outcome,
        windows=windows,
        firings=recorder.firings,
    )


def story_of(section: Section) -> Story:
    """Return a log's story: of its faults it has what they lost, and what they did to actors."""
    firings: dict[str, list[int]] = {}
    for record in section.records:
        if isinstance(record, DropRecord) or (
            isinstance(record, FaultRecord) and record.act in BEGINS
        ):
            firings.setdefault(record.fault, []).append(record.t)
    end_us = section.records[-1].t if section.records else 0
    return Story(
        records=section.records,
        end_us=end_us if section.end is None else section.end.t,
        outcome="truncated" if section.end is None else section.end.outcome,
        windows={},
        firings=firings,
    )
