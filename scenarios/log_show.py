"""`pullcord log show`: the records of a log as lines that a person reads, or as they are.

A line has the record's number, its time, its actor and what happened, cut to the terminal's width.
Nothing is lost by that: `--json` prints the lines of the file, after the header that they belong
to, so what is printed is a log again, cut behind its last record.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Final

import msgspec
from rich.cells import cell_len, set_cell_size

from logs.causes import Causes
from logs.read import HEADER, LogError, RawSection, Section, record_of
from logs.record import EndRecord, HeaderRecord, Record
from logs.runs import Runs
from logs.seek import Entry, follow, raw_section
from logs.words import Narrator, kind_of, seconds
from scenarios.grid import painted
from scenarios.log_where import Filter
from scenarios.problems import printable

ACTOR_LIMIT_COLUMNS: Final = 20  # a longer name pushes its own line aside, not all of them
NARROWEST_COLUMNS: Final = 20  # what happened is not cut below this
EFFECTS_LIMIT: Final = 20  # of what a record brought about, which may be all that follows
BOLD, DIM, ACTOR = "1", "2", "36"
STYLES: Final[dict[str, str]] = {
    "drop": "31",
    "late": "33",
    "unanswered": "33",
    "undone": "1;33",
    "fault": "1;35",
    "event": "32",
    "start": "1",
    "timer": "2",
    "send": "2",
}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown: which records, how many at most, and whether as the file has them."""

    where: Filter
    limit: int | None = None
    json: bool = False


class Lines:
    """Writes records as aligned lines; widths are set by `fit`, and grow where they must."""

    def __init__(self, out: IO[str], width_columns: int, *, colored: bool) -> None:
        self._out = out
        self._width = width_columns
        self._colored = colored
        self._columns = [4, 8, 6]

    def fit(self, records: Sequence[Record]) -> None:
        """Make the columns as wide as these records need."""
        if records:
            last = records[-1]
            names = dict.fromkeys(record.actor for record in records)
            longest = max(cell_len(printable(name)) for name in names)
            self._columns = [
                max(4, len(str(last.n))),
                max(6, len(seconds(last.t)) + 2),
                min(longest, ACTOR_LIMIT_COLUMNS),
            ]

    def line(self, record: Record, words: str, *, strong: bool = False) -> None:
        """Write a record's line."""
        number, time, actor = self._columns
        name = printable(record.actor)
        head = f"{record.n:>{number}}  {seconds(record.t):>{time}}"
        room = max(self._width - cell_len(head) - 4 - max(actor, cell_len(name)), NARROWEST_COLUMNS)
        style = BOLD if strong else STYLES.get(kind_of(record), "")
        self._write(
            f"{painted(head, BOLD if strong else DIM, self._colored)}  "
            f"{painted(name, ACTOR, self._colored)}{' ' * max(actor - cell_len(name), 0)}  "
            f"{painted(_cut(printable(words), room), style, self._colored)}"
        )

    def head(self, text: str) -> None:
        """Write a line that stands above others."""
        self._write(painted(_cut(printable(text), self._width), BOLD, self._colored))

    def text(self, text: str) -> None:
        """Write a line in no colour."""
        self._write(_cut(printable(text), self._width))

    def whole(self, text: str) -> None:
        """Write a line that is not cut: the terminal may break it."""
        self._write(printable(text))

    def plain(self, text: str) -> None:
        """Write a line about others."""
        self._write(painted(_cut(printable(text), self._width), DIM, self._colored))

    def _write(self, text: str) -> None:
        self._out.write(f"{text.rstrip()}\n")


def _cut(text: str, room: int) -> str:
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"


def title(header: HeaderRecord) -> str:
    """Return a section's head: where it comes from."""
    cell = f" [{header.cell}]" if header.cell else ""
    host = "" if header.driver == "sim" else f", {header.driver} over {header.transport}"
    return f"{header.scenario}{cell}, replication {header.replication}, seed {header.seed}{host}"


def show(entries: Sequence[Entry], choice: Choice, lines: Lines) -> int:
    """Show what is wanted of the sections; return how many records that was."""
    shown = 0
    for entry in entries:
        if choice.limit is not None and shown >= choice.limit:
            break
        raw = raw_section(entry)
        left = None if choice.limit is None else choice.limit - shown
        section = raw.section()
        wanted = list(islice(_wanted(section.records, choice.where), left))
        shown += len(wanted)
        if choice.json:
            _raw_lines(raw, [record.n for record in wanted])
        elif wanted:
            whole = len(wanted) == len(section.records)
            _section(section, wanted, lines, whole=whole)
    return shown


def _wanted(records: Sequence[Record], where: Filter) -> Iterator[Record]:
    runs = Runs(records) if where.needs_runs else None
    return (record for record in records if where.accepts(record, runs))


def _section(section: Section, wanted: Sequence[Record], lines: Lines, *, whole: bool) -> None:
    lines.fit(section.records)
    lines.head(title(section.header))
    narrator = Narrator()
    due = iter(wanted)
    record = next(due, None)
    for each in section.records:
        words = narrator.words(each)
        if each is record:
            lines.line(each, words)
            record = next(due, None)
            if record is None:
                break
    if whole:
        lines.plain(ending(section.end, torn=section.torn))


def ending(end: EndRecord | None, *, torn: bool = False) -> str:
    """Return how a section ends, in words."""
    if end is None:
        cut = ", and its last line was cut" if torn else ""
        return f"truncated: it has no closing record{cut}"
    return f"{end.outcome} at {seconds(end.t)}, {end.count:,} records"


def _raw_lines(raw: RawSection, numbers: Sequence[int]) -> None:
    """Print the lines of the numbered records as the file has them, behind their header."""
    if not numbers:
        return
    wanted = frozenset(numbers)
    out = sys.stdout
    out.write(_text(raw.lines[0]))
    for line in raw.lines[1:]:
        if not line.endswith(b"\n"):
            break
        record = record_of(line, raw.path)
        if isinstance(record, Record) and record.n in wanted:
            out.write(_text(line))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")


# Causes


def show_causes(entry: Entry, number: int, choice: Choice, lines: Lines) -> None:
    """Show a record, what led to it and what it brought about; LogError if there is no such one."""
    raw = raw_section(entry)
    section = raw.section()
    causes = Causes(section.records)
    chain = causes.chain(number)
    if not chain:
        last = section.records[-1].n if section.records else 0
        raise LogError(entry.path, f"there is no record {number}", f"they go from 1 to {last}")
    limit = EFFECTS_LIMIT if choice.limit is None else choice.limit
    effects, more = causes.effects(number, limit)
    if choice.json:
        _raw_lines(raw, [record.n for record in (*chain, *effects)])
        return
    narrator = Narrator()
    words = {record.n: narrator.words(record) for record in section.records}
    lines.fit(section.records)
    lines.head(title(section.header))
    for record in chain:
        lines.line(record, words[record.n], strong=record.n == number)
    lines.plain("what it brought about:" if effects else "it brought nothing about")
    for record in effects:
        lines.line(record, words[record.n])
    if more:
        lines.plain("and more: --limit shows it")


# A file that grows


class Following:
    """Shows a file's lines as they come."""

    def __init__(
        self,
        path: Path,
        choice: Choice,
        lines: Lines,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._choice = choice
        self._lines = lines
        self._wait = wait
        self._narrator = Narrator()
        self._runs = Runs()
        self._header = b""
        self._wanted = True
        self._headed = False

    def run(self, cell: str | None, replication: int | None) -> None:
        """Show what comes, until Ctrl-C or the limit; LogError, or OSError with the file's name."""
        if self._path.exists() and not self._path.is_file():
            what = "a folder" if self._path.is_dir() else "a pipe or a device"
            raise LogError(str(self._path), f"it is {what}", "one file can be followed: name it")
        shown = 0
        for number, line in enumerate(follow(self._path, self._wait), 1):
            record = record_of(line, f"{self._path}, line {number}")
            if number == 1 and not line.startswith(HEADER):
                raise LogError(
                    f"{self._path}, line 1", "this is no log", "a log begins with a header"
                )
            if isinstance(record, HeaderRecord):
                self._begin(record, line)
                self._wanted = (cell is None or cell in record.cell) and replication in (
                    None,
                    record.replication,
                )
            elif self._wanted and isinstance(record, Record):
                shown += self._record(record, line)
            elif self._headed and isinstance(record, EndRecord) and not self._choice.json:
                self._lines.plain(ending(record))
            sys.stdout.flush()
            if shown == self._choice.limit:
                return

    def _begin(self, header: HeaderRecord, line: bytes) -> None:
        self._narrator, self._runs = Narrator(), Runs()
        self._header, self._headed = line, False
        self._title = title(header)

    def _record(self, record: Record, line: bytes) -> int:
        words = self._narrator.words(record)
        self._runs.learn(record)
        if not self._choice.where.accepts(record, self._runs):
            return 0
        if self._choice.json:
            sys.stdout.write(("" if self._headed else _text(self._header)) + _text(line))
        else:
            if not self._headed:
                self._lines.head(self._title)
            self._lines.line(record, words)
        self._headed = True
        return 1
