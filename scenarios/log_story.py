"""`pullcord log story`: one run's story, or a line for each run that a log has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from logs.read import LogError
from logs.seek import Entry
from logs.story import Line, Summary, story, summaries
from logs.words import seconds, short
from scenarios.grid import Row, grid
from scenarios.log_sections import chosen, refuse, sections
from scenarios.log_show import Lines, title
from scenarios.log_where import is_run
from scenarios.problems import listed, printable, quote, suggest

NAMED_LIMIT: Final = 5  # of the runs that a beginning may mean


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A run's story, with where it was found."""

    section: str
    run: str
    lines: list[Line]


def tell(log: Path, run: str, cell: str | None, replication: int | None) -> tuple[str, Told]:
    """Return a section's head and the story of the run that a text means, in it.

    LogError if no run, or more than one, is meant; ScenarioError if run and log are swapped.
    """
    if not log.exists() and Path(run).exists():
        right = shlex.join(["pullcord", "log", "story", str(log), run])
        refuse("pullcord log story", f"the run comes first, and {run} is a file or folder", right)
    found: list[tuple[Entry, str]] = []
    known: dict[str, None] = {}
    entries = chosen(log, cell, replication)
    for entry, section in zip(entries, sections(entries), strict=True):
        for one in summaries(section.records):
            known.setdefault(one.run)
            if one.run == run or is_run(one.run, run):
                found.append((entry, one.run))
    exact = [one for one in found if one[1] == run]
    meant = list(dict.fromkeys(exact or found))
    if not meant:
        near = suggest(run, known)
        cure = f"did you mean {near}?" if near else "without a run the command lists them"
        raise LogError(str(log), f"no run is called {quote(run)}", cure)
    if len(meant) > 1:
        raise LogError(str(log), f"{quote(run)} may mean {len(meant):,} runs", _choice(meant))
    entry, whole = meant[0]
    section = next(sections([entry]))
    lines = story(section.records, whole)
    return title(section.header), Told(section=entry.words, run=whole, lines=lines)


def _choice(meant: Sequence[tuple[Entry, str]]) -> str:
    """Return how to say which of several runs is meant."""
    if len(dict.fromkeys(run for _, run in meant)) == 1:
        where = [entry.words for entry, _ in meant[:NAMED_LIMIT]]
        return f"say where, by --cell, --replication or its file: {'; '.join(where)}"
    names = [run for _, run in meant[:NAMED_LIMIT]]
    return f"write more of it: {listed([*names, *(['others'] if len(meant) > len(names) else [])])}"


def show_story(head: str, told: Told, out: Lines) -> None:
    """Write a story: the time, what happened, and the number of the record that tells it."""
    out.head(f"run {told.run}: {head}")
    if not told.lines:
        return
    wide = max(len(seconds(line.t)) for line in told.lines)
    digits = len(str(max(line.n for line in told.lines)))
    for line in told.lines:
        times = f" ({line.times} times, until {seconds(line.until_us)})" if line.times > 1 else ""
        out.text(f"{seconds(line.t):>{wide}}  {f'[{line.n}]':>{digits + 2}}  {line.text}{times}")


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a section."""

    section: str
    runs: list[Summary]


def runs_of(log: Path, cell: str | None, replication: int | None) -> Iterator[Listed]:
    """Return the runs of each section."""
    entries = chosen(log, cell, replication)
    for entry, section in zip(entries, sections(entries), strict=True):
        yield Listed(section=entry.words, runs=summaries(section.records))


def list_runs(found: Sequence[Listed], width_columns: int, *, colored: bool) -> Iterator[str]:
    """Return the lines of a table a section: a line a run."""
    head = ("run", "agent", "status", "queued", "started", "ended", "records")
    for index, one in enumerate(found):
        if index:
            yield ""
        yield printable(one.section)
        if not one.runs:
            yield "no run is named in it"
            continue
        rows = [
            Row(
                (
                    printable(short(run.run) if width_columns < 100 else run.run),
                    printable(run.agent),
                    printable(run.status),
                    *map(_time, (run.queued_us, run.started_us, run.ended_us)),
                    f"{run.records:,}",
                )
            )
            for run in one.runs
        ]
        yield from grid(head, rows, width_columns, colored=colored)


def _time(t_us: int | None) -> str:
    return "-" if t_us is None else seconds(t_us)
