"""Replaying the logs of deployed processes, one start after another.

The files that a process wrote from its start to its end are one log: numbers go on from one to the
next. It begins with the file that has the stores; without that nothing behind it can be replayed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from actors.accounts.server import AccountedServer
from actors.actor import Actor, Place
from actors.desktop.engine import DesktopEngine
from actors.desktop.relay import DesktopRelay
from actors.graphs.synthetic import SyntheticModel
from actors.recorded import STORE_LEFT_OUT, RecordedProcess, SteppedProcess
from logs.read import LogError, Section
from logs.record import EventRecord, HeaderRecord
from logs.seek import Entry, raw_section
from scenarios.decode import Decoder
from scenarios.graph_backends import EXTRA
from scenarios.graph_check import scripts_can_run
from scenarios.graph_engines import vm_port
from scenarios.log_sections import SHOWN, header_of
from scenarios.problems import quote
from scenarios.replay import Divergence, Replayed, Window, check_actor, step_through
from scenarios.service.recorded import SHARED, RecordedActor
from scenarios.source import Source

WITHOUT: Final = "it was written without --record, so it has neither the stores nor the messages"
SPREAD: Final = "other servers may have written to its database meanwhile, and no log has that"
ROTATED: Final = "the file in which its process began is not here any more, and that had its stores"
TOO_LARGE: Final = "its stores held more than a log may begin with: half of log_files x log_size"
KINDS: Final[Mapping[str, tuple[Any, Any]]] = {
    kind.__name__: (kind, config)
    for kind, config in (
        (AccountedServer, AccountedServer.Config),
        (DesktopRelay, DesktopRelay.Config),
        (DesktopEngine, DesktopEngine.Config),
        (SyntheticModel, DesktopEngine.Config),
    )
}
# Whose answers come from outside: what they said is an input of others, and they are not run.
OUTSIDE: Final = frozenset({"LiveModel", "ScriptedModel", "ToolRunner"})

P = TypeVar("P", RecordedProcess, SteppedProcess)


class NotRun:
    """Stands where an actor was that is not run again."""

    handlers: Mapping[type[Any], Any] = {}

    def on_start(self, context: Any) -> None:
        """Begin nothing."""

    def on_timer(self, context: Any, timer: str) -> None:
        """Nothing: it sets none."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """All that one process wrote, as one section; `why` says why it can't be run again, if so.

    `files` are the places of its files: the index of each one's first record, its path, its line.
    `lost` says where records are missing, if any are: what stands behind is left out.
    """

    section: Section
    files: list[tuple[int, str, int]]
    why: str = ""
    lost: str = ""

    @property
    def words(self) -> str:
        """It in words: the process and the file in which it begins."""
        return f"{self.section.header.scenario}, started in {Path(self.section.path).name}"

    def place(self, at: int) -> tuple[str, int]:
        """Return the file and line of a record, by its index among all."""
        first, path, line = self.files[bisect_right(self.files, at, key=lambda one: one[0]) - 1]
        return path, line + 1 + at - first


def starts_of(entries: Sequence[Entry]) -> Iterator[Start]:
    """Yield what each process wrote, one at a time in memory."""
    heads = [(entry, header_of(entry)) for entry in entries]
    for _, group in groupby(heads, key=lambda one: (one[1].scenario, one[1].seed)):
        yield _joined([entry for entry, _ in group])


def _joined(entries: list[Entry]) -> Start:
    first = raw_section(entries[0]).section()
    files = [(0, first.path, first.line)]
    why = _why_not(first)
    if why:
        return Start(section=first, files=files, why=why)
    records, last, lost = list(first.records), first, ""
    for entry in entries[1:]:
        section = raw_section(entry).section()
        if not section.records:
            break
        began = section.records[0]
        if began.n != records[-1].n + 1 or _field(began, "lost"):
            lost = f"records are lost before {section.path}, so what follows can't be run again"
            break
        files.append((len(records), section.path, section.line))
        records += section.records
        last = section
    end = None if lost else last.end
    if any(isinstance(one, EventRecord) and one.event == STORE_LEFT_OUT for one in records):
        why = TOO_LARGE
    whole = msgspec.structs.replace(first, records=records, end=end, torn=last.torn)
    return Start(section=whole, files=files, why=why, lost=lost)


def _field(record: Any, name: str) -> Any:
    return record.fields.get(name) if isinstance(record, EventRecord) else None


def _why_not(first: Section) -> str:
    """Return why what a process wrote can't be run again, "" if it can."""
    header, records = first.header, first.records
    if not header.actors:
        return WITHOUT
    actors = actors_of(header)
    if actors is None:
        return f"its header is not one of this version: pullcord {header.pullcord} wrote it"
    if any(one.store in SHARED for one in actors.values()):
        return SPREAD
    unknown = [one.kind for one in actors.values() if one.kind not in (KINDS.keys() | OUTSIDE)]
    if unknown:
        return f"there is no {unknown[0]} in this version: pullcord {header.pullcord} wrote it"
    if not records or records[0].n != 1 or not isinstance(_field(records[0], "epoch_us"), int):
        return ROTATED
    return ""


def actors_of(header: HeaderRecord) -> dict[str, RecordedActor] | None:
    """Return what a header says of its process's actors; None if it can't be understood."""
    try:
        return msgspec.convert(header.actors, dict[str, RecordedActor])
    except msgspec.ValidationError:
        return None


def process_of(start: Start, kind: type[P]) -> P:
    """Return the replay host of a process; LogError if its settings are none of this version."""
    header = start.section.header
    actors = actors_of(header)
    if header.scenario == "desktop" and not scripts_can_run():
        raise LogError(start.section.path, "Graphs need a JavaScript engine", EXTRA)
    assert actors is not None, "it was looked at before"
    host = kind(header.seed, header.scenario, _field(start.section.records[0], "epoch_us"))
    outside: set[str] = set()
    for name, one in actors.items():
        if one.kind in OUTSIDE:
            outside.add(name)
        host.house(name, _actor(start, name, one))
        if one.kind == DesktopEngine.__name__:
            host.run_scripts(name, vm_port())
    host.edges = frozenset(outside)
    return host


def _actor(start: Start, name: str, one: RecordedActor) -> Actor:
    if one.kind in OUTSIDE:
        return NotRun()
    kind, config = KINDS[one.kind]
    decoder = Decoder(Source(start.section.path, "", {}))
    settings = decoder.struct((name,), one.config, config)
    for problem in decoder.problems:
        what = f"the settings of {name} in its header can't be used: {problem.message}"
        by = f"replay it with pullcord {start.section.header.pullcord}, which wrote it"
        raise LogError(f"{start.section.path}, line {start.section.line}", what, by)
    made: Actor = kind(settings, Place(name=name))
    return made


def replay_starts(entries: Sequence[Entry], window: Window) -> Replayed:
    """Run what processes did again, up to the first divergence. LogError if none of it can be."""
    done = Replayed(what="start")
    for start in starts_of(entries):
        if start.why:
            done.left_out.append(f"{start.section.path}: {start.why}")
            continue
        host = process_of(start, RecordedProcess)
        if window.actor in host.edges:
            what = f"{quote(str(window.actor))} had its answers from outside, and is not run again"
            raise LogError("--actor", what, "leave it out: all others are compared")
        check_actor(window.actor, host)
        done.sections += 1
        done.records += window.count(start.section)
        done.truncated += start.section.end is None
        if start.lost:
            done.left_out.append(start.lost)
        found = step_through(start.section, host, window)
        if found is not None:
            done.divergence = _in_its_file(start, found)
            break
    if not done.sections:
        place, _, what = done.left_out[0].partition(": ")
        raise LogError(place, what, SHOWN)
    return done


def _in_its_file(start: Start, found: Divergence) -> Divergence:
    path, line = start.place(found.line - start.section.line - 1)
    return msgspec.structs.replace(found, section=start.words, path=path, line=line)


def the_start(entries: Sequence[Entry], number: int | None) -> Start:
    """Return the one process that is meant: `number` is that of the file in which it began.

    LogError with the choice if there are several, or it can't be run again.
    """
    found = [
        start for start in starts_of(entries) if number in (None, start.section.header.replication)
    ]
    good = [start for start in found if not start.why]
    if not found:
        raise LogError("--replication", f"no process began in file {number}", "leave it out")
    if not good:
        raise LogError(found[0].section.path, found[0].why, SHOWN)
    if len(good) > 1:
        numbers = ", ".join(str(start.section.header.replication) for start in good)
        what = f"it has the logs of {len(good)} processes, and this is about one"
        cure = f"say in which file it began: --replication {numbers.replace(', ', ' or ')}"
        raise LogError(str(Path(entries[0].path).parent), what, cure)
    return good[0]
