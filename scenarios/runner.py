"""Running plans: ranges of replications handed to an executor, their rows joined and judged.

The only seam is `concurrent.futures.Executor`: any executor and any number of jobs give the same
results and the same log bytes, because a replication depends on its seed, cell and number alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import AbstractContextManager
from typing import Final

import msgspec

from scenarios import work
from scenarios.choices import Driver, Logs, Processes, Transport
from scenarios.executors import cores, named, processes
from scenarios.folder import Entry, Folder
from scenarios.load import Plan, cell_data
from scenarios.log_files import LogFiles, failed
from scenarios.overrides import Override
from scenarios.reproduce import flags_of
from scenarios.results import CellResult, Results, ScenarioResult, encoded
from scenarios.schedule import Key, Piece, Schedule
from scenarios.shipped import shown
from scenarios.watchdog import PATIENCE_S
from scenarios.work import CellJob, Range, Rows, run_range

Progress = Callable[[int, int], None]  # (replications done, of so many)
PROBE_S: Final = 0.1  # a run that is done by then isn't worth the start of a process
SURE_REPLICATIONS: Final = 2000  # so many are worth it for certain
SPARE_RANGES: Final = 2  # handed out beyond what runs, so that no worker waits for this process


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run, besides what the files say.

    `pilot` runs so many replications of each cell at most; `patience_s` is the real time that one
    instant of a replication may take.
    """

    overrides: tuple[Override, ...] = ()
    seed: int | None = None
    replications: int | None = None
    replication: int | None = None
    cell: str | None = None
    contains: str | None = None
    jobs: int = 0
    executor: str | None = None
    logs: Logs = "none"
    pilot: int | None = None
    patience_s: float = PATIENCE_S
    driver: Driver = "sim"
    transport: Transport = "memory"
    processes: Processes = "one"
    speed: float = 20.0

    def all_overrides(self) -> tuple[Override, ...]:
        """Return what is set, --seed and --replications among it."""
        extra = []
        if self.seed is not None:
            extra.append(Override("run.seed", self.seed))
        if self.replications is not None:
            extra.append(Override("run.replications", self.replications))
        return (*self.overrides, *extra)


NO_OPTIONS = Options()


def chosen_cells(plan: Plan, options: Options) -> list[int]:
    """Return the indexes of the cells that --cell and -k let through."""
    return [
        index
        for index, cell in enumerate(plan.cells)
        if (options.cell is None or cell.matches(options.cell))
        and (options.contains is None or options.contains in cell.label)
    ]


class Runner:
    """Runs plans on an executor: hands out ranges, joins rows, writes journal and logs."""

    def __init__(
        self,
        plans: list[Plan],
        options: Options,
        folder: Folder | None,
        progress: Progress | None = None,
    ) -> None:
        self.options = options
        self.folder = folder
        self.logs = LogFiles(folder) if folder is not None and options.logs != "none" else None
        self.progress = progress
        self.jobs = options.jobs or cores()
        self.schedule = Schedule(self.jobs)
        self.cell_jobs: dict[Key, CellJob] = {}
        self.cells: dict[Key, CellResult] = {}
        self.parts: dict[Key, list[int]] = {}
        self.unfinished: dict[int, int] = {}  # of each scenario, the replications to come
        self.running: dict[Future[Rows], Piece] = {}
        self.results = Results(
            [self._scenario(number, plan) for number, plan in enumerate(plans)],
            None if folder is None else folder.path,
        )
        self.total = sum(self.unfinished.values())
        self.done = 0

    # Setting up

    def _scenario(self, number: int, plan: Plan) -> ScenarioResult:
        cells = []
        for index in chosen_cells(plan, self.options):
            run = plan.scenarios[index].run
            first, last = run.first, run.first + run.replications
            if self.options.replication is not None:
                first, last = self.options.replication, self.options.replication + 1
            elif self.options.pilot is not None:
                last = min(last, first + self.options.pilot)
            key = number, index
            cells.append(CellResult(plan, index, first))
            self.cells[key] = cells[-1]
            self.cell_jobs[key] = job_of(plan, index, self.options)
            self.schedule.add(key, first, last)
            self.unfinished[number] = self.unfinished.get(number, 0) + last - first
        single = self.options.replication is not None and plan.run.replications > 1
        return ScenarioResult(plan, cells, judged=not single)

    def restore(self, entries: list[Entry]) -> None:
        """Take what an interrupted run had done; what was in trouble is run again."""
        for entry in entries:
            key = (entry.scenario, entry.cell)
            rows = entry.rows
            if rows.trouble is not None:
                continue
            if self.logs is not None and self._logs_at_once:
                if not self.logs.part(key, rows.first).is_file():
                    continue  # its log was lost, so it is run again
                self.parts.setdefault(key, []).append(rows.first)
            self.schedule.restore(key, [(rows.first, rows.last)])
            self._join(key, rows)

    def look(self, entries: list[Entry]) -> Results:
        """Take what a run has given, its trouble too, and return its results as they were."""
        self.restore(entries)
        for entry in entries:
            trouble = entry.rows.trouble
            if trouble is not None:
                key = (entry.scenario, entry.cell)
                self.schedule.trouble(key, trouble.replication)
                self._join(key, entry.rows)
        self._settle()
        return self.results

    # Running

    def run(self) -> Results:
        """Run everything that is left; return the results, partial if interrupted."""
        begun = time.perf_counter()
        self.schedule.begin()
        try:
            self._work()
            self._settle()
            self._keep()
        except KeyboardInterrupt:
            self._interrupt("interrupted")
        except BrokenExecutor:
            self._interrupt(f"a worker process was killed{self._in_work()}")
        except OSError as error:
            if self.folder is None:
                raise
            raise self.folder.failed(error) from error
        finally:
            work.known.clear()
            self.results.seconds = time.perf_counter() - begun
            if self.folder is not None:
                self.folder.close()
        return self.results

    def _interrupt(self, why: str) -> None:
        self.results.interrupted = why
        for scenario in self.results.scenarios:
            scenario.complete = False

    def _in_work(self) -> str:
        """Say what ran when a worker died: one of these may be why."""
        pieces = [
            f"replications {piece.first} to {piece.last - 1} of "
            f"{self.results.scenarios[piece.key[0]].name}"
            + (f" [{self.cells[piece.key].cell.label}]" if self.cells[piece.key].cell.label else "")
            for piece in list(self.running.values())[: self.jobs]
        ]
        return f" while it ran {' or '.join(pieces)}" if pieces else ""

    def _work(self) -> None:
        """Hand out ranges until none is left."""
        self._show_progress()
        if self.options.executor is None:
            alone = self.jobs == 1
            if alone or self.total - self.done < SURE_REPLICATIONS:
                self._work_here(float("inf") if alone else PROBE_S)
            if not self.schedule.empty():
                self._work_on(processes(self.jobs))
        else:
            self._work_on(named(self.options.executor))

    def _work_here(self, limit_s: float) -> None:
        """Run ranges in this process, for so long."""
        begun = time.perf_counter()
        while (left_s := limit_s - (time.perf_counter() - begun)) > 0:
            piece = self.schedule.next()
            if piece is None:
                return
            one = self._range(piece, min(piece.budget_s, left_s))
            self._take(piece, run_range(self.cell_jobs[piece.key], one))

    def _work_on(self, context: AbstractContextManager[Executor]) -> None:
        with context as executor:
            while True:
                while len(self.running) < self.jobs + SPARE_RANGES:
                    piece = self.schedule.next()
                    if piece is None:
                        break
                    one = self._range(piece, piece.budget_s)
                    future = executor.submit(run_range, self.cell_jobs[piece.key], one)
                    self.running[future] = piece
                if not self.running:
                    return
                for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                    rows = future.result()
                    self._take(self.running.pop(future), rows)

    @property
    def _logs_at_once(self) -> bool:
        """Whether each replication's log is written as it runs: one on trio is never the same."""
        logs = self.options.logs
        return logs == "all" or (logs == "failed" and self.options.driver != "sim")

    def _range(self, piece: Piece, budget_s: float) -> Range:
        log = None
        if self.logs is not None and self._logs_at_once:
            log = str(self.logs.part(piece.key, piece.first))
        return Range(
            first=piece.first,
            last=piece.last,
            log=log,
            check=self.cell_jobs[piece.key].foreign and piece.first == self.cells[piece.key].first,
            budget_s=budget_s,
            patience_s=self.options.patience_s,
        )

    def _take(self, piece: Piece, rows: Rows) -> None:
        """Take what a range gave."""
        key = piece.key
        if rows.trouble is not None:
            self.schedule.trouble(key, rows.trouble.replication)
        else:
            self.schedule.done(piece, rows.last, rows.seconds)
        if self.folder is not None:
            self.folder.write_line(Entry(scenario=key[0], cell=key[1], rows=rows))
        if self._logs_at_once:
            self.parts.setdefault(key, []).append(rows.first)
        self._join(key, rows)
        self._show_progress()

    def _join(self, key: Key, rows: Rows) -> None:
        """Join a range's rows with its cell's; judge its scenario if that was its last one."""
        count = rows.last - rows.first
        self.done += count
        self.unfinished[key[0]] -= count
        self.cells[key].add(rows)
        if not self.unfinished[key[0]]:
            scenario = self.results.scenarios[key[0]]
            scenario.complete = True
            scenario.settle()

    def _show_progress(self) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total)

    # Ending

    def _settle(self) -> None:
        """Leave of each scenario that was in trouble only what lies before the first one."""
        for number, (index, _) in self.schedule.ends.items():
            for key, cell in self.cells.items():
                if key[0] == number and key[1] > index:
                    cell.discard()
                    self.parts.pop(key, None)
            firsts = self.parts.get((number, index), [])
            cell = self.cells[number, index]
            end = cell.first + cell.replications
            self.parts[number, index] = [first for first in firsts if first <= end]

    def _keep(self) -> None:
        """Write the folder's last files."""
        if self.folder is None:
            return
        if self.logs is not None:
            self._keep_logs(self.logs)
        self.folder.write_file("results.json", encoded(self.results))
        if self.logs is not None:
            self.logs.clear()

    def _keep_logs(self, logs: LogFiles) -> None:
        if self.options.logs == "all":
            for key, firsts in self.parts.items():
                if firsts:
                    scenario = self.results.scenarios[key[0]]
                    logs.join(logs.path(scenario, key[1]), key, firsts)
            return
        for number, scenario in enumerate(self.results.scenarios):
            wanted = failed(scenario)
            for cell in scenario.cells:
                replications = wanted.get(cell.cell.label)
                if not replications:
                    continue
                key, path = (number, cell.index), logs.path(scenario, cell.index)
                if self._logs_at_once:
                    logs.pick(path, key, self.parts.get(key, []), replications)
                else:
                    job = self.cell_jobs[key]
                    logs.write(path, job, replications, self.options.patience_s)


def job_of(plan: Plan, index: int, options: Options = NO_OPTIONS) -> CellJob:
    """Return what a worker must know of a cell."""
    cell, scenario = plan.cells[index], plan.scenarios[index]
    job = CellJob(
        data=msgspec.json.encode(cell_data(plan.data, cell)),
        folder=str(plan.folder),
        label=cell.label,
        seed=scenario.run.seed,
        digest=plan.digest,
        path=shown(plan.path),
        options=flags_of(plan),
        foreign=bool(plan.foreign),
        driver=options.driver,
        transport=options.transport,
        processes=options.processes,
        speed=options.speed,
    )
    work.known[job] = scenario
    return job
