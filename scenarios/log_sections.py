"""Which sections a command means: those of a log or a results folder, by cell and replication."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from logs.read import LogError, RawSection, Section, log_files
from logs.record import HeaderRecord
from logs.seek import Entry, entries_of, raw_section
from scenarios.problems import Problem, ScenarioError, listed, quote, suggest

SHOWN = "look at it: pullcord log show, log story, log check"
LISTED_LIMIT = 5  # of the cells that a log has; a sweep may have thousands

_until_exit = ExitStack()
atexit.register(_until_exit.close)


def chosen(log: Path, cell: str | None = None, replication: int | None = None) -> list[Entry]:
    """Return the sections of a log file or results folder, in order; LogError if there are none.

    A pipe is copied first, since sections are read by their place.
    `cell` is a cell's label, part of it, or its value; `replication` counts from 0.
    """
    if log.is_char_device():
        raise LogError(str(log), "it is a device", "give a log, a folder, or a pipe")
    if log.is_fifo():
        every = entries_of(_copied(log), str(log))
    else:
        every = [entry for path in log_files(log) for entry in entries_of(path)]
    if not every:
        raise LogError(
            str(log),
            "it is empty",
            "wait until something is written, or look with log show --follow",
        )
    return _of_replication(log, _of_cell(log, every, cell), replication)


def _copied(log: Path) -> Path:
    """Copy what can be read only once to a file that lasts as long as we do."""
    copy = Path(_until_exit.enter_context(TemporaryDirectory())) / "copy.jsonl"
    with log.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    return copy


def at_least(flag: str, given: int | None, least: int) -> None:
    """Raise ScenarioError for a flag's number that is too small; None is none."""
    if given is not None and given < least:
        refuse(flag, f"must be at least {least}, not {given}")


def refuse(flag: str, message: str, cure: str | None = None) -> NoReturn:
    """Raise ScenarioError: what is wrong with a flag, and the cure."""
    raise ScenarioError([Problem(path=flag, message=message, cure=cure)])


def clash(flag: str, does: str, given: Mapping[str, object]) -> None:
    """Raise ScenarioError if flags that mean nothing beside this one were given, that is not None.

    `does` says what the flag does, as in "shows all of it".
    """
    vain = [name for name, value in given.items() if value is not None]
    if vain:
        what = listed(vain, last="and")
        refuse(flag, f"{does}, so {what} can't be given too", f"leave {what} out")


def the_one(log: Path, cell: str | None, replication: int | None) -> Entry:
    """Return the one section that is meant; LogError with the choice if there are several."""
    found = chosen(log, cell, replication)
    if len(found) == 1:
        return found[0]
    cells = list(dict.fromkeys(entry.cell for entry in found))
    flags = ["--cell"] if len(cells) > 1 else []
    if replication is None:
        flags.append("--replication")
    cure = f"say which one: {listed(flags, last='and')}" if flags else "give its file"
    raise LogError(str(log), f"it has {len(found):,} sections, and this is about one", cure)


def header_of(entry: Entry) -> HeaderRecord:
    """Read the header of a section alone."""
    with Path(entry.file).open("rb") as file:
        file.seek(entry.offset_bytes)
        return RawSection(entry.path, entry.line, [file.readline()]).header()


def is_deployed(entries: Sequence[Entry]) -> bool:
    """Whether these are logs of processes that stay."""
    header = header_of(entries[0])
    return header.processes == "separate" and not header.resolved


def sections(entries: Sequence[Entry]) -> Iterator[Section]:
    """Read the sections one after another, one at a time in memory. LogError, or OSError."""
    return (raw_section(entry).section() for entry in entries)


def no_scenario(raw: RawSection | Section, purpose: str, cure: str) -> LogError:
    """Return why what needs a scenario can't be done with a section that has none."""
    header = raw.header() if isinstance(raw, RawSection) else raw.header
    place = f"{raw.path}, line {raw.line}"
    if header.driver == "trio" and header.processes == "separate":
        what = "it is the log of a deployed process, and no scenario"
        return LogError(place, f"{what}, so there is nothing to {purpose}", SHOWN)
    return LogError(place, f"its header has no scenario, so there is nothing to {purpose}", cure)


def _of_cell(log: Path, every: list[Entry], cell: str | None) -> list[Entry]:
    if cell is None:
        return every
    exact = [entry for entry in every if cell in (entry.cell, entry.cell.partition("=")[2])]
    found = exact or [entry for entry in every if cell in entry.cell]
    if found:
        return found
    labels = [label for label in dict.fromkeys(entry.cell for entry in every) if label]
    near = suggest(cell, labels) or suggest(cell, [label.partition("=")[2] for label in labels])
    if near is not None:
        cure = f"did you mean {quote(near)}?"
    elif not labels:
        cure = "its scenario has no cells: leave --cell out"
    else:
        more = "" if len(labels) <= LISTED_LIMIT else ", and more"
        cure = f"it has {', '.join(map(quote, labels[:LISTED_LIMIT]))}{more}"
    raise LogError(str(log), f"no cell is called {quote(cell)}", cure)


def _of_replication(log: Path, every: list[Entry], replication: int | None) -> list[Entry]:
    if replication is None:
        return every
    found = [entry for entry in every if entry.replication == replication]
    if found:
        return found
    numbers = sorted(entry.replication for entry in every)
    cure = f"it has {numbers[0]}" + (f" to {numbers[-1]}" if numbers[-1] > numbers[0] else "")
    raise LogError(str(log), f"it has no replication {replication}", cure)
