"""Promotion: a log of real sockets becomes a scenario whose messages come in the same order.

What failed for real is then a regression test of milliseconds. The scenario has the log's resolved
data, its seed, its cell's chance and its replication's number. In the place of latencies and of the
faults that acted on messages or connections stands one `schedule` a way: when each message arrived,
or that it never did. What struck actors and their clocks stands there with the times at which it
did, and which of their turns failed in a `commit_schedule`. So no fault is a matter of chance.

A real clock is late, so a `timer_schedule` an actor lets its timers fire when they did. Then every
input comes at its own time, and an order differs only where two came in the same microsecond, which
`compare` would show.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from actors.actor import Commit
from actors.commits import MEANWHILE
from actors.replayer import TURNS
from logs.read import LogError, RawSection, Section
from logs.record import (
    FaultRecord,
    LateRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from scenarios.cast import ForeignActorError
from scenarios.explore import with_absolute_files
from scenarios.log_sections import SHOWN, no_scenario
from scenarios.replay import job_of_header
from scenarios.watchdog import PATIENCE_S
from scenarios.work import CellJob, build, log_of, scenario_of

Table = dict[str, Any]
AFTER_US = 60_000_000  # that a replication may go on behind the end of its log
CRASHES = {Commit.KILLED.value: "before", Commit.SILENCED.value: "after"}


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario made of a log: its data, how many messages it has, and how far the order holds.

    `parted` names the actor and its message, counted from 1, where the order is another; None if it
    is the same everywhere.
    """

    data: Table
    messages: int
    lost: int
    parted: tuple[str, int] | None


def promote(raw: RawSection, folder: Path | None = None) -> Promoted:
    """Return the scenario of a section; LogError if its messages can't be told.

    Users' own actors are looked for in `folder`, by default where the header says that they lay.
    """
    section = raw.section()
    header = section.header
    if header.processes == "separate" and not header.resolved:
        raise no_scenario(section, "make one of", SHOWN)
    if not header.resolved or header.driver == "sim":
        why = "its messages' order is that of the simulator: it comes again from its seed"
        if not header.resolved:
            why = "its header has no scenario"
        raise LogError(
            f"{raw.path}, line {raw.line}", why, "give a log of --driver trio, as over TCP"
        )
    arrivals = arrivals_of(section.records)
    job = job_of_header(header, folder)
    data = with_absolute_files(_data(section, arrivals), Path(job.folder))
    return Promoted(
        data=data,
        messages=sum(len(ways) for ways in arrivals.values()),
        lost=sum(not times for ways in arrivals.values() for times in ways),
        parted=compare(section, run_again(job, header.replication, data)),
    )


Way = tuple[str, str]


def arrivals_of(records: Sequence[Record]) -> dict[Way, list[list[int]]]:
    """Return of each way its messages' arrivals, in the order in which they were sent."""
    ways: dict[Way, list[list[int]]] = {}
    times: dict[int, list[int]] = {}
    for record in records:
        if isinstance(record, SendRecord):
            envelope = record.envelope
            times[envelope.id] = []
            ways.setdefault((envelope.source, envelope.target), []).append(times[envelope.id])
        elif isinstance(record, MessageRecord | LateRecord):
            found = times.get(record.envelope.id)
            if found is not None:
                found.append(record.t)
    return ways


def _data(section: Section, arrivals: Mapping[Way, list[list[int]]]) -> Table:
    header = section.header
    data: Table = {key: value for key, value in header.resolved.items() if key not in _LEFT_OUT}
    data["name"] = f"{header.scenario}-from-a-log"
    data["run"] = _run(section)
    faults: list[Table] = [
        *_clocks(section.records),
        *_failed(section.records),  # asked before the crashes, as they count on
        *strikes(section.records),
        *(
            {
                "kind": "schedule",
                "name": f"{source} to {target}",
                "from": _literal(source),
                "to": _literal(target),
                "arrivals_us": times,
            }
            for (source, target), times in arrivals.items()
        ),
        *_timers(section),
    ]
    data["fault"] = faults
    return data


def _timers(section: Section) -> Iterator[Table]:
    """Yield of each actor when its timers fired: a real clock's are late."""
    records, end = section.records, section.end
    healed = {} if end is None or end.healed is None else {"healed_us": end.healed}
    timers: dict[str, dict[str, list[int]]] = {}
    timeouts: dict[str, list[int]] = {}
    for record in records:
        if isinstance(record, TimerRecord):
            timers.setdefault(record.actor, {}).setdefault(record.timer, []).append(record.t)
        elif isinstance(record, UnansweredRecord):
            timeouts.setdefault(record.actor, []).append(record.t)
    for name in dict.fromkeys([*timers, *timeouts]):
        yield {
            "kind": "timer_schedule",
            "name": f"timers of {name}",
            "actor": _literal(name),
            "timers_us": timers.get(name, {}),
            "timeouts_us": timeouts.get(name, []),
            "end_us": records[-1].t,
            **healed,
        }


_LEFT_OUT = ("run", "fault", "link", "expect", "table", "sweep", "metrics")


def _literal(name: str) -> str:
    """Return the glob that matches this name alone."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _run(section: Section) -> Table:
    header = section.header
    run = dict(header.resolved.get("run", {}))
    run |= {"seed": header.seed, "first": header.replication, "replications": 1}
    if not run.get("chance") and header.cell:
        run["chance"] = header.cell
    return run


def _tables(data: Any) -> list[Table]:
    return data if isinstance(data, list) else [data]


def _clocks(records: Sequence[Record]) -> list[Table]:
    """Return what clocks did, at the times at which they did: jumps, and drifts with their end."""
    tables: list[Table] = []
    drifting: dict[tuple[str, str], tuple[int, Table]] = {}  # since when, by actor and fault
    for record in records:
        if not isinstance(record, FaultRecord):
            continue
        what, _, amount = record.act.partition(" ")
        table: Table = {"actor": _literal(record.actor), "at": f"{record.t}us"}
        if what == "clock":
            tables.append({"kind": "clock_step", **table, "by": amount})
        elif what == "rate":
            key = record.actor, record.fault
            if key in drifting:
                since_us, drift = drifting.pop(key)
                drift["for"] = f"{record.t - since_us}us"
            if float(amount) != 1:
                rest = f"{records[-1].t + AFTER_US - record.t}us"  # unless it ends before
                drift = {"kind": "clock_drift", **table, "rate": float(amount), "for": rest}
                drifting[key] = record.t, drift
                tables.append(drift)
    for number, table in enumerate(tables, 1):
        table["name"] = f"{table['kind']} {number}"
    return tables


def _failed(records: Sequence[Record]) -> Iterator[Table]:
    """Yield of each actor which of its turns failed at their commit, and when its disk was full."""
    turns: dict[str, int] = {}
    since_us: dict[str, int] = {}  # the time of the last turn
    tables: dict[str, Table] = {}
    for record in records:
        if isinstance(record, TURNS):
            turns[record.actor] = turns.get(record.actor, 0) + (type(record) is not StartRecord)
            since_us[record.actor] = record.t
        elif not isinstance(record, UndoneRecord | FaultRecord):
            continue
        table = tables.setdefault(
            record.actor, {"actor": _literal(record.actor), "failed": [], "full_us": []}
        )
        if isinstance(record, UndoneRecord) and record.why.startswith(Commit.FAILED.value):
            table["failed"].append(turns[record.actor])
        elif isinstance(record, FaultRecord) and record.act == "unwritable":
            # It is told behind the first turn that failed for it, which came at that turn's time.
            begin_us = since_us.get(record.actor, record.t)
            table["full_us"].append([begin_us, records[-1].t + AFTER_US])
        elif isinstance(record, FaultRecord) and record.act == "writable" and table["full_us"]:
            table["full_us"][-1][1] = record.t
    for name, table in tables.items():
        if table["failed"]:
            yield {"kind": "commit_schedule", "name": f"failed writes of {name}", **table}


def strikes(records: Sequence[Record]) -> list[Table]:
    """Return what killed and stopped actors, as tables of a scenario."""
    return _Strikes(records).tables


class _Strikes:
    """Finds what killed and stopped actors, each once, at the time at which it did."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.tables: list[Table] = []
        self._open: dict[str, tuple[int, Table]] = {}
        # Of each actor its turns, but the starts, that the next crash is asked about: on one that
        # failed, and on one where another crash fired, it is not.
        self._turns: dict[str, int] = {}
        self._last: dict[str, Record] = {}
        self._cut = {
            record.cause
            for record in records
            if isinstance(record, UndoneRecord) and record.why == MEANWHILE
        }
        for record in records:
            self._read(record)
        for table in self.tables:
            if _length(table) not in table:  # for the rest of the log
                table[_length(table)] = f"{records[-1].t + AFTER_US}us"

    def _read(self, record: Record) -> None:
        actor = record.actor
        if isinstance(record, TURNS):
            self._last[actor] = record
            if isinstance(record, StartRecord):
                self._end(record, "down")
            else:
                self._turns[actor] = self._turns.get(actor, 0) + 1
        elif isinstance(record, UndoneRecord):
            self._turns[actor] -= record.why.startswith(Commit.FAILED.value)
        elif isinstance(record, FaultRecord):
            if record.act == "resume":
                self._end(record, "for")
            elif record.act in ("kill", "suspend", "pause"):
                self._begin(record)

    def _begin(self, record: FaultRecord) -> None:
        actor, last = record.actor, self._last.get(record.actor)
        if actor in self._open and _length(self._open[actor][1]) == "down":
            return  # killed once more before it had begun anew
        since_us = record.t
        table: Table = {"kind": record.act, "actor": _literal(actor), "at": f"{since_us}us"}
        cut = "before" if last is not None and last.n in self._cut else None
        point = CRASHES.get(record.fault, cut)
        if record.act == "kill" and point is not None and last is not None:
            # Its time is that of the turn, which it ends; a turn in a thread lasted for a while.
            since_us = last.t
            del table["at"]
            table |= {"kind": "crash", "point": point, "nth": self._turns[actor]}
            self._turns[actor] -= 1
        table["name"] = f"{table['kind']} {len(self.tables) + 1}"
        self._open[actor] = since_us, table
        self.tables.append(table)

    def _end(self, record: Record, key: str) -> None:
        since_us, table = self._open.get(record.actor, (0, {}))
        if table and _length(table) == key:
            table[key] = f"{record.t - since_us}us"
            del self._open[record.actor]


def _length(table: Table) -> str:
    """Return the key of how long a strike lasts."""
    return "for" if table["kind"] in ("suspend", "pause") else "down"


# Whether it is the same


def run_again(job: CellJob, replication: int, data: Table) -> Section:
    """Run the scenario in the simulator, and return its log; LogError if it can't be run."""
    job = msgspec.structs.replace(job, data=msgspec.json.encode(data), label="")
    out = io.BytesIO()
    try:
        log_of(job, build(job), replication, out, PATIENCE_S)
    except ForeignActorError as error:
        cure = error.cure or ""
        if any(one.command for one in scenario_of(job).cast):
            cure = "the simulator runs no programs: pullcord replay LOG re-executes the others"
        raise LogError(job.path, str(error), cure) from error
    return RawSection("the scenario", 1, out.getvalue().splitlines(keepends=True)).section()


def compare(logged: Section, made: Section) -> tuple[str, int] | None:
    """Return at which actor and message, counted from 1, the order is another; None if nowhere.

    On the trio host what was under way at the end still arrives, so behind it nothing is compared.
    """
    ended_us = None if made.end is None else made.end.t
    theirs, ours = heard(logged.records), heard(made.records)
    for actor, messages in theirs.items():
        mine = ours.get(actor, [])
        for number, (t, *message) in enumerate(messages, 1):
            if number > len(mine) and ended_us is not None and t >= ended_us:
                break
            if number > len(mine) or mine[number - 1][1:] != tuple(message):
                return actor, number
    return None


def heard(records: Sequence[Record]) -> dict[str, list[tuple[int, str, Any]]]:
    """Return of each actor when it heard what from whom, in the order in which it came."""
    found: dict[str, list[tuple[int, str, Any]]] = {}
    for record in records:
        if isinstance(record, MessageRecord):
            envelope = record.envelope
            found.setdefault(record.actor, []).append((record.t, envelope.source, envelope.body))
    return found
