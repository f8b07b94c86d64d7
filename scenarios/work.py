"""The work of one process: a range of one cell's replications, from plain data to rows.

This module is what worker processes import, so it imports the core alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from traceback import StackSummary, TracebackException, walk_tb
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from actors.errors import (
    ActorFailedError,
    LimitReachedError,
    SimulationError,
    WouldSleepForeverError,
)
from logs.record import HeaderRecord
from logs.write import SectionWriter, UnwritableError
from scenarios.build import CellRun
from scenarios.cast import ForeignActorError
from scenarios.cell import CellLoader
from scenarios.choices import Driver, Processes, Transport
from scenarios.decode import Decoder
from scenarios.matchers import MetricError
from scenarios.metrics import Column
from scenarios.reproduce import command
from scenarios.source import Source
from scenarios.spec import Scenario
from scenarios.watchdog import PATIENCE_S, Stop, StuckError, acting, is_ours, watchdog
from transports.codec import FrameError
from transports.version import VERSION

if TYPE_CHECKING:
    from scenarios.judging import Judging

BUILT_LIMIT = 8  # cells that a worker keeps built: it goes through them one after another
LOG_BUFFER_BYTES = 1 << 20


class CellJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker must know of a cell; the same for each of its ranges, so it is built once.

    `path` is the scenario file as the user named it, and `options` are the --set and others that
    its log's reproducing command repeats.
    """

    data: bytes  # the cell's data, as JSON
    folder: str
    label: str
    seed: int
    digest: str
    path: str
    options: tuple[str, ...] = ()
    foreign: bool = False
    driver: Driver = "sim"
    transport: Transport = "memory"
    processes: Processes = "one"
    speed: float = 20.0


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Replications `first` to `last` (exclusive) of a cell, their log going to `log` if given.

    After `budget_s` of real time it ends early, at least one replication done. With `check` the
    first is run again, to catch an actor that isn't deterministic.
    """

    first: int
    last: int
    log: str | None = None
    check: bool = False
    budget_s: float = float("inf")
    patience_s: float = PATIENCE_S


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """A replication that did not reach its end.

    `foreign` tells whether a user's own actor may be to blame; `trace` shows the lines of its file.
    """

    replication: int
    kind: str
    sentence: str
    foreign: bool
    trace: str = ""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A check that did not hold in `count` replications; what was seen in the first of them."""

    check: str
    replication: int
    sentence: str
    records: tuple[int, ...] = ()
    count: int = 1

    def words(self, replications: int) -> str:
        """Return what was found, of so many replications, in one line."""
        times = f" (in {self.count} of {replications} replications)" if replications > 1 else ""
        where = f" [records {', '.join(map(str, self.records))}]" if self.records else ""
        return f"{self.sentence}{where}{times}"


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """What a range gives: replications `first` to `last`, and the trouble that ended it.

    `values` has each metric's rows as little-endian doubles; `counts` the rows a replication as
    unsigned 32-bit integers, None for one each; `fired` likewise each fault's firings. `found` has
    each check that did not hold.
    """

    first: int
    last: int
    values: dict[str, bytes]
    counts: dict[str, bytes | None]
    fired: dict[str, bytes]
    seconds: float
    trouble: Trouble | None = None
    found: tuple[Found, ...] = ()


class NotDeterministicError(Exception):
    """The same replication, run twice, gave two logs."""


# What ends a range: the scenario's, the file's or a user's actor's fault.
_TROUBLE = (SimulationError, NotDeterministicError, MetricError, UnwritableError, SystemExit)

known: dict[CellJob, Scenario] = {}  # decoded before the workers were forked


def packed(numbers: array[Any]) -> bytes:
    """Return an array's bytes, little-endian."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(kind: str, data: bytes) -> array[Any]:
    """Return the array that `packed` gave these bytes of."""
    numbers: array[Any] = array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def build(job: CellJob) -> CellRun:
    """Return a cell, decoded and built; ForeignActorError if a user's actor can't be made."""
    scenario, world = scenario_of(job), None
    if job.driver != "sim":
        from scenarios.drivers import trio_world  # noqa: PLC0415  the simulator needs no trio

        world = trio_world(scenario, job.transport, job.speed, Path(job.folder), job.processes)
    return CellRun(scenario, job.seed, job.label, Path(job.folder), world=world)


def scenario_of(job: CellJob) -> Scenario:
    """Return a cell's scenario, decoded unless that was done before the workers were forked."""
    scenario = known.get(job)
    if scenario is None:
        data = msgspec.json.decode(job.data)
        decoder = Decoder(Source(job.path, "", data))
        scenario = CellLoader(decoder, data, Path(job.folder)).load()
        decoder.finish()
        assert scenario is not None, "the plan was checked before its cells were sent out"
    return scenario


class _Built(threading.local):
    """Each thread's own cells: two threads can't share a simulator."""

    def __init__(self) -> None:
        self.cell: Callable[[CellJob], CellRun] = lru_cache(maxsize=BUILT_LIMIT)(build)


_built = _Built()


def run_range(job: CellJob, work: Range) -> Rows:
    """Run a range of replications; a replication in trouble ends it."""
    begun = time.perf_counter()
    try:
        cell = _built.cell(job)
    except ForeignActorError as error:
        return Rows(
            first=work.first,
            last=work.first,
            values={},
            counts={},
            fired={},
            seconds=time.perf_counter() - begun,
            trouble=trouble_of(error, work.first),
        )
    columns = {name: Column() for name in cell.metrics}
    fired = {fault.name: array("I") for fault in cell.faults}
    judging = cell.judging()
    trouble = None
    done = 0
    # What an actor prints must not stand among the results.
    with log_file(work.log) as out, contextlib.redirect_stdout(sys.stderr):
        try:
            with watchdog(cell.simulator, work.patience_s):
                for replication in range(work.first, work.last):
                    run_one(job, cell, replication, out, judging)
                    if work.check and not done and job.driver == "sim":
                        check_determinism(cell, replication)
                    cell.collect(columns, done)
                    if judging is not None:
                        judging.judge(replication)
                    for fault in cell.faults:
                        fired[fault.name].append(fault.fired)
                    done += 1
                    if time.perf_counter() - begun > work.budget_s:
                        break
        except _TROUBLE as error:
            trouble = trouble_of(error, work.first + done, cell)
    return Rows(
        first=work.first,
        last=work.first + done,
        values={name: packed(column.values) for name, column in columns.items()},
        counts={name: _packed_counts(column) for name, column in columns.items()},
        fired={name: packed(counts) for name, counts in fired.items()},
        seconds=time.perf_counter() - begun,
        trouble=trouble,
        found=() if judging is None else judging.take(),
    )


def _packed_counts(column: Column) -> bytes | None:
    return None if column.counts is None else packed(array("I", column.counts))


def run_one(
    job: CellJob,
    cell: CellRun,
    replication: int,
    out: BinaryIO | None,
    judging: Judging | None = None,
) -> None:
    """Run one replication, with its log if there is a file for it; its history for the checks."""
    if out is None:
        cell.simulator.run(replication, None if judging is None else judging.recorder())
        return
    writer = SectionWriter(out) if judging is None else judging.writer(out)
    writer.begin(header(job, replication))
    outcome = "interrupted"
    try:
        cell.simulator.run(replication, writer)
        outcome = "ended"
    except Stop:
        outcome = "stuck"
        raise
    except (SimulationError, SystemExit) as error:
        outcome = kind_of(error)
        raise
    finally:
        writer.close(outcome, cell.simulator.now_us, cell.healed_us)


def log_one(job: CellJob, replication: int, out: BinaryIO, patience_s: float) -> None:
    """Write one replication's log; a replication in trouble has its log up to there."""
    with contextlib.suppress(ForeignActorError):
        log_of(job, _built.cell(job), replication, out, patience_s)


def log_of(job: CellJob, cell: CellRun, replication: int, out: BinaryIO, patience_s: float) -> None:
    """Write the log of one replication of a cell that is built already."""
    with contextlib.suppress(*_TROUBLE), watchdog(cell.simulator, patience_s):
        run_one(job, cell, replication, out)


def header(job: CellJob, replication: int) -> HeaderRecord:
    """Return the first record of a replication's log."""
    data = _decoded(job.data)
    return HeaderRecord(
        scenario=data["name"],
        digest=job.digest,
        seed=job.seed,
        cell=job.label,
        replication=replication,
        command=command(job.path, job.options, job.label, replication),
        pullcord=VERSION,
        python=platform.python_version(),
        path=job.path,
        folder=job.folder,
        driver=job.driver,
        transport=job.transport,
        processes=job.processes,
        speed=job.speed if job.transport in ("tcp", "unix") else 0.0,
        # JSON already, so that it isn't encoded for each replication; a reader gets a dictionary.
        resolved=cast(dict[str, Any], msgspec.Raw(job.data)),
    )


@lru_cache(maxsize=BUILT_LIMIT)
def _decoded(data: bytes) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(data)
    return decoded


# Trouble


def check_determinism(cell: CellRun, replication: int) -> None:
    """Run a replication by new actors, by used ones, and with its messages as bytes.

    NotDeterministicError if the logs differ. One that can't go on with new actors is as it is.
    """
    log = _logged(cell.twin(), replication)
    for attempt, different, why in (
        (cell, _DIFFERENT, _WHY),
        (cell, _DIFFERENT, _WHY),  # the first of these may be the first that this cell runs
        (cell.twin(coded=True), _ENCODED, _WHY_ENCODED),
    ):
        try:
            other = _logged(attempt, replication)
        except (SimulationError, FrameError) as error:
            raise NotDeterministicError(f"{different}: {error}") from error
        if other != log:
            raise NotDeterministicError(f"{different}{_difference(log, other)}{why}")


def _logged(cell: CellRun, replication: int) -> bytes:
    out = io.BytesIO()
    writer = SectionWriter(out)
    writer.begin(None)
    cell.simulator.run(replication, writer)
    writer.close("ended", cell.simulator.now_us)
    return out.getvalue()


_ENCODED = "the same replication ran differently when its messages were sent as bytes"
_WHY_ENCODED = (
    ". An actor changes a message after it was sent, "
    "or puts into one what its fields' types don't say"
)
_DIFFERENT = "the same replication ran differently the second time"
_WHY = (
    ". An actor keeps state that its on_start does not rebuild, "
    "or reads a clock, chance or the world outside its context"
)


def _difference(first: bytes, second: bytes) -> str:
    for number, pair in enumerate(zip(first.splitlines(), second.splitlines(), strict=False), 1):
        if pair[0] != pair[1]:
            one, other = (_words(msgspec.json.decode(line)) for line in pair)
            then = other if other != one else "the same with other contents"
            return f", from record {number} on: {one}, then {then}"
    return ""


def _words(record: dict[str, Any]) -> str:
    if record["kind"] == "end":
        return f"the end at {record['t'] / 1e6:g} s"
    what = record.get("event") or record.get("timer") or record["kind"]
    if "envelope" in record:
        what = f"{record['envelope']['body'].get('type', what)} to"
    return f"{what} of {record['actor']} at {record['t'] / 1e6:g} s"


def kind_of(error: BaseException) -> str:
    """Return what a replication in trouble is called, in messages and in its log."""
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (WouldSleepForeverError, "would sleep for ever"),
        (LimitReachedError, "limit reached"),
        (NotDeterministicError, "not deterministic"),
        (StuckError, "stuck"),
        (MetricError, "no number"),
        (ForeignActorError, "no actor"),
    )
    told: str | None = getattr(error, "kind", None)  # of an actor in a process of its own
    return told or next((name for kind, name in kinds if isinstance(error, kind)), "failed")


def trouble_of(error: BaseException, replication: int, cell: CellRun | None = None) -> Trouble:
    """Return what is told of a replication that did not reach its end."""
    foreign = (
        {one.name for one in cell.scenario.cast if one.foreign or one.command}
        if cell is not None
        else {""}
    )
    sentence, trace, guilty = str(error), "", bool(foreign)
    if isinstance(error, SystemExit):
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        sentence = f"{acting(frames)[0]} called sys.exit({error.code!r})"
        trace = user_trace(error)
    elif isinstance(error, ActorFailedError) and error.__cause__ is not None:
        cause = error.__cause__
        sentence = f"{error}: {type(cause).__name__}: {cause}"
        trace = user_trace(cause)
    actor = getattr(error, "actor", None)
    if actor is not None:
        guilty = actor in foreign
    trace = getattr(error, "trace", trace)  # of an actor in a process of its own
    guilty = getattr(error, "foreign", guilty)  # a user's own check
    if isinstance(error, MetricError | ForeignActorError) and error.cure:
        sentence = f"{error}; {error.cure}"
    return Trouble(
        replication=replication,
        kind=kind_of(error),
        sentence=sentence,
        foreign=guilty,
        trace=trace,
    )


def user_trace(error: BaseException) -> str:
    """Return the traceback's frames outside pullcord; all of them if there is none outside.

    Without the last line, the exception itself, unless it has a cause that is shown too.
    """
    told = TracebackException.from_exception(error)
    frames = [frame for frame in told.stack if not is_ours(frame.filename)]
    if frames:
        told.stack = StackSummary.from_list(frames)
    chained = told.__cause__ or (told.__context__ and not told.__suppress_context__)
    lines = told.format() if chained else told.stack.format()
    return "".join(lines).rstrip("\n")


# Processes and files


@contextmanager
def log_file(path: str | None) -> Iterator[BinaryIO | None]:
    """Open a range's log, if it has one; an OSError names it."""
    if path is None:
        yield None
        return
    try:
        with Path(path).open("wb", buffering=LOG_BUFFER_BYTES) as out:
            yield out
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror, path) from error
        raise


def begin_worker(folder: str) -> None:
    """Prepare a worker process: Ctrl-C is its parent's to handle, and it dies with its parent.

    Its temporary files go into `folder`, which whoever of the two lives longer removes.
    """
    import multiprocessing  # noqa: PLC0415  10 ms that a run in one process saves
    from multiprocessing.connection import wait  # noqa: PLC0415  likewise

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # with which its parent ends it
    tempfile.tempdir = folder
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            wait([parent.sentinel])
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)

        threading.Thread(target=follow, daemon=True, name="follow parent").start()
