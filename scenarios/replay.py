"""Replaying a log: everything is run again, and the first difference is shown.

A simulator's log is run again from its header, and compared byte by byte from the second line on.
A log of the trio host, whose order of messages never comes twice, is re-executed actor by actor:
each gets what the log says that it got, and must let out what the log says that it let out.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from actors.replayer import Difference, Output, Replayer, Script
from logs.causes import Causes
from logs.diff import Difference as Field
from logs.diff import differences
from logs.read import LogError, RawSection, Section
from logs.record import HeaderRecord, Record
from scenarios.build import CellRun
from scenarios.log_sections import no_scenario
from scenarios.problems import quote, suggest
from scenarios.references import some
from scenarios.watchdog import PATIENCE_S
from scenarios.work import CellJob, build, log_of, scenario_of
from transports.units import parse_duration
from transports.version import VERSION

BEFORE = 3  # records that are shown before a divergence: the last that were equal
CHAIN = 12  # records of a cause chain that are shown


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns are compared: one actor's or all, from a record on, up to another.

    What lies before is re-executed all the same, since states come of it. `first` and `last` are
    record numbers, or times in microseconds where their `_us` says so.
    """

    actor: str | None = None
    first: int | None = None
    last: int | None = None
    first_us: int | None = None
    last_us: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == EVERYTHING

    def has(self, record: Record) -> bool:
        """Whether a turn is compared."""
        return (
            self.actor in (None, record.actor)
            and (self.first is None or record.n >= self.first)
            and (self.first_us is None or record.t >= self.first_us)
        )

    def count(self, section: Section) -> int:
        """Return how many of a section's records are compared."""
        return sum(self.has(one) and not self.is_over(one) for one in section.records)

    def is_over(self, record: Record) -> bool:
        """Whether this record and all behind it are of no interest."""
        return (self.last is not None and record.n > self.last) or (
            self.last_us is not None and record.t > self.last_us
        )


EVERYTHING = Window()


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where a replay first did something else: section, file, record, and both versions.

    `logged` and `made` are lines of JSON, or words for what a turn let out; `fields` are those that
    differ in the first of them, each with both values. `before` are the last
    records that were equal, `chain` the causes of the one that differs, the latest last.
    """

    section: str
    path: str
    line: int
    n: int
    why: str
    record: Record | None
    logged: tuple[str, ...]
    made: tuple[str, ...]
    fields: tuple[Field, ...]
    before: tuple[Record, ...]
    chain: tuple[Record, ...]
    written_by: str


class _Versions(NamedTuple):
    """What the log says, what the replay did, and the fields in which they differ."""

    logged: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()


class Replayed(msgspec.Struct):
    """What a replay did: sections run again, records compared among them, what differed if any.

    `what` is one of them: a replication, or a start of a deployed process. `left_out` are sentences
    on what can't be run again.
    """

    what: str = "replication"
    left_out: list[str] = []
    sections: int = 0
    records: int = 0
    truncated: int = 0
    divergence: Divergence | None = None


def job_of_header(header: HeaderRecord, folder: Path | None = None) -> CellJob:
    """Return what a log's header says of its cell; `folder` is where a user's own actors lie."""
    home = folder or next(
        (place for place in (Path(header.folder), Path(header.path).parent) if place.is_dir()),
        Path(),
    )
    return CellJob(
        data=msgspec.json.encode(header.resolved),
        folder=str(home),
        label=header.cell,
        seed=header.seed,
        digest=header.digest,
        path=header.path or header.scenario,
    )


def replayer_of(job: CellJob) -> Replayer:
    """Return the replay host of a cell; ForeignActorError if an actor can't be made."""
    scenario = scenario_of(job)
    host = CellRun(scenario, job.seed, job.label, Path(job.folder), world=Replayer).simulator
    assert isinstance(host, Replayer), "it was made by this factory"
    host.edges = frozenset(one.name for one in scenario.cast if one.command)
    return host


def check_actor(name: str | None, host: Replayer) -> None:
    """Raise LogError for the name of an actor that there is not, or that is a program."""
    if name in host.edges:
        raise LogError(
            "--actor",
            f"{quote(name)} is a program of its own, which is not run again",
            f"there is {some([one for one in host.contexts if one not in host.edges])}",
        )
    if name is not None and name not in host.contexts:
        near = suggest(name, host.contexts)
        cure = f"did you mean {quote(near)}?" if near else f"there is {some(host.contexts)}"
        raise LogError("--actor", f"no actor is called {quote(name)}", cure)


def replay(
    sections: Iterator[RawSection],
    *,
    window: Window = EVERYTHING,
    folder: Path | None = None,
) -> Replayed:
    """Replay sections up to the first divergence."""
    done = Replayed()
    cells: dict[CellJob, CellRun] = {}  # built here: a user's file may have changed meanwhile
    hosts: dict[CellJob, Replayer] = {}
    for raw in sections:
        header = raw.header()
        if not header.resolved:
            cure = "logs of pullcord run --logs all can be replayed"
            raise no_scenario(raw, "run again", cure)
        job = job_of_header(header, folder)
        if header.driver == "sim" and window.is_all:
            if job not in cells:
                cells[job] = build(job)
            records, cut, divergence = _again(raw, job, cells[job], header.replication)
        else:
            section = raw.section()
            if job not in hosts:
                hosts[job] = replayer_of(job)
            check_actor(window.actor, hosts[job])
            records, cut = window.count(section), section.end is None
            divergence = step_through(section, hosts[job], window)
        done.sections += 1
        done.records += records
        done.truncated += cut
        if divergence is not None:
            done.divergence = divergence
            break
    return done


# From the seed


class _Comparer(io.RawIOBase):
    """Takes what a section's writer writes, and finds where it differs from what it should be."""

    def __init__(self, expected: bytes) -> None:
        super().__init__()
        self._expected = memoryview(expected)
        self._begun = False
        self._at = 0
        self.difference: tuple[int, bytes] | None = None  # the line's number from 0, and ours

    def writable(self) -> bool:
        """Take what is written."""
        return True

    def write(self, data: Any) -> int:
        """Compare a batch of whole lines; the first is the header, which is never compared."""
        if not self._begun:
            self._begun = True
        elif self.difference is None:
            self._compare(bytes(data))
        return len(data)

    def _compare(self, data: bytes) -> None:
        # A truncated log is equal as far as it goes.
        wanted = self._expected[self._at : self._at + len(data)]
        if data[: len(wanted)] != wanted:
            rest = bytes(wanted)
            equal = next(
                at for at, pair in enumerate(zip(data, rest, strict=False)) if pair[0] != pair[1]
            )
            begin = data.rfind(b"\n", 0, equal) + 1
            before = bytes(self._expected[: self._at + begin])
            self.difference = before.count(b"\n"), data[begin:].split(b"\n", 1)[0]
        self._at += len(data)

    @property
    def missing(self) -> bool:
        """Whether less was written than there should be."""
        return self.difference is None and self._at < len(self._expected)


def _again(
    raw: RawSection, job: CellJob, cell: CellRun, replication: int
) -> tuple[int, bool, Divergence | None]:
    """Run a replication again; return how many records it has, whether it was cut, what differs."""
    lines = raw.lines[1:]
    torn = bool(lines) and not lines[-1].endswith(b"\n")
    comparer = _Comparer(b"".join(lines[:-1] if torn else lines))
    log_of(job, cell, replication, comparer, PATIENCE_S)  # type: ignore[arg-type]  # it is written to
    cut = torn or not lines or not lines[-1].startswith(b'{"kind":"end"')
    records = len(lines) - (not cut)
    if comparer.difference is None and not comparer.missing:
        return records, cut, None
    number, ours = comparer.difference or (len(lines) - 1, b"")
    section = raw.section()
    record = section.records[number] if number < len(section.records) else None
    logged = lines[number].rstrip(b"\n")
    fields = () if not ours else differences(_value(logged), _value(ours))
    told = _Versions((logged.decode(),), (ours.decode(),), tuple(fields))
    why = "the same replication ran differently"
    return records, cut, _divergence(section, record, number, why, told)


def _value(line: bytes) -> Any:
    """Return a line's JSON, nothing for one that is none: somebody has been at the file."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None


# Actor by actor


def step_through(section: Section, host: Replayer, window: Window) -> Divergence | None:
    """Re-execute a section actor by actor; return the first turn that differs within the window."""
    host.begin(section.header.replication, script_of(section))
    for record in section.records:
        if window.is_over(record):
            break
        difference = host.take(record)
        if difference is not None and window.has(record):
            return _of_turn(section, difference)
    return None


def script_of(section: Section) -> Script:
    """Return what a section says of its turns."""
    # An actor that raised ended its replication: what its last turn let out is not known.
    cut = section.end is None or section.end.outcome in ("failed", "stuck", "interrupted")
    return Script(section.records, truncated=cut)


def _of_turn(section: Section, difference: Difference) -> Divergence:
    record = difference.record
    told = _Versions()
    if difference.index is not None:
        logged, made = difference.logged[difference.index :], difference.made[difference.index :]
        both = [msgspec.to_builtins(one) for one in (*logged[:1], *made[:1])]
        fields = differences(*both) if logged and made else ()
        told = _Versions(_lines(logged), _lines(made), tuple(fields))
    return _divergence(section, record, section.records.index(record), difference.why, told)


def _lines(outputs: tuple[Output, ...]) -> tuple[str, ...]:
    words = (f"{one} {msgspec.json.encode(one.fields).decode()}" for one in outputs)
    return tuple(words) or ("nothing more",)


def _divergence(
    section: Section,
    record: Record | None,
    at: int,
    why: str,
    told: _Versions,
) -> Divergence:
    header = section.header
    by = "" if header.pullcord == VERSION else f"pullcord {header.pullcord}"
    return Divergence(
        section=section.where,
        path=section.path,
        line=section.line + 1 + at,
        n=0 if record is None else record.n,
        why=why,
        record=record,
        logged=told.logged,
        made=told.made,
        fields=told.fields,
        before=tuple(section.records[max(at - BEFORE, 0) : at]),
        chain=tuple(Causes(section.records).chain(0 if record is None else record.cause)[-CHAIN:]),
        written_by=by,
    )


# What the command line says


def window_of(actor: str | None, first: str | None, last: str | None) -> Window:
    """Return what --actor, --from and --until say: a record's number, or a time as `12.5s`."""
    begin, end = _moment("--from", first), _moment("--until", last)
    for one, other in zip(begin, end, strict=True):
        if one is not None and other is not None and one > other:
            raise LogError("--until", f"{last} is before --from {first}", "swap the two")
    return Window(actor=actor, first=begin[0], first_us=begin[1], last=end[0], last_us=end[1])


def _moment(flag: str, text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    if text.isdecimal():
        return int(text), None
    try:
        return None, int(parse_duration(text))
    except ValueError as error:
        raise LogError(flag, str(error), "give a record's number, or a time as 12.5s") from None
