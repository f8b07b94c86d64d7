"""What must be so after each cycle of the kill matrix, as complaints about what is not.

What was done is read from the marks, which the system does not write; what was promised from the
answers that agents had; what the owner is told from the audit.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from actors.accounts.messages import AuditEntry
from scenarios.log_check import check_log
from scenarios.log_sections import chosen
from tests.scenarios.service.calls import Wish

Marks = dict[str, list[str]]


def read_marks(path: Path) -> Marks:
    """Return the values of each mark, in the order in which they were left."""
    found: Marks = defaultdict(list)
    if path.exists():
        for line in path.read_text().splitlines():
            mark, value = line.split()
            found[mark].append(value)
    return found


def marks_of(wish: Wish, marks: Marks) -> list[list[str]]:
    """Return the values of a run's marks, step by step."""
    return [marks.get(f"{wish.mark}.{step}", []) for step in range(1, wish.steps + 1)]


def twice(wishes: Iterable[Wish], marks: Marks) -> Iterator[str]:
    """Complain of what was done more than once, whatever the run's end."""
    for wish in wishes:
        for step, values in enumerate(marks_of(wish, marks), 1):
            if len(values) > 1:
                yield f"{wish.ticket} ({wish.mark}) did step {step} {len(values)} times"


def ends(wishes: Iterable[Wish], marks: Marks, *, interrupts: bool) -> Iterator[str]:
    """Complain of runs that did not end as what happened to them allows."""
    for wish in wishes:
        yield from wish.complaints
        run, named = wish.run, f"{wish.ticket or 'no ticket'} ({wish.mark})"
        if run is None:
            last = wish.told[-1] if wish.told else "nothing"
            yield f"{named} has not ended: {last}"
        elif run.status == "completed":
            values = marks_of(wish, marks)
            if run.result != {"mark": wish.mark, "values": [each[0] for each in values if each]}:
                yield f"{named} completed with {run.result}, and its marks are {values}"
            elif not all(values):
                yield f"{named} completed without a mark"
        elif run.status == "cancelled":
            if wish.cancel_s is None:
                yield f"{named} is cancelled, and nobody asked for it"
        elif run.status != "interrupted" or not interrupts:
            yield f"{named} is {run.status}: {run.error}"


def audited(wishes: Iterable[Wish], marks: Marks, entries: Iterable[AuditEntry]) -> Iterator[str]:
    """Complain of runs whose acts are not in the audit, each as often as it was done."""
    acts: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        if entry.outcome == "ok":
            acts[entry.subject][entry.act] += entry.count
    for wish in wishes:
        if wish.run is None:
            continue
        found = acts[wish.ticket]
        starts = found.pop("run.start", 0)
        found.pop("run.cancel", None)
        wanted = Counter({"run.queue": 1, f"run.{wish.run.status}": 1})
        if found != wanted:
            yield f"{wish.ticket} is {wish.run.status}, and its audit has {dict(found)}"
        if starts > 1 or (starts == 0 and wish.run.status == "completed"):
            yield f"{wish.ticket} has started {starts} times by the audit"
        if starts == 0 and any(marks_of(wish, marks)):
            yield f"{wish.ticket} left marks, and the audit has no start of it"


def sound(databases: Iterable[Path]) -> Iterator[str]:
    """Complain of files that are damaged, or were found so and set aside."""
    for path in databases:
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
                told = database.execute("PRAGMA integrity_check").fetchone()[0]
        except sqlite3.Error as error:
            told = str(error)
        if told != "ok":
            yield f"{path}: {told}"
        if path.with_name(f"{path.name}.1").exists():
            yield f"{path} was set aside"


def logged(folders: Iterable[Path]) -> Iterator[str]:
    """Complain of logs in which something that must hold does not, as `pullcord log check` does."""
    for folder in folders:
        report = check_log(chosen(folder))
        if report.exit:
            yield f"{folder} does not pass its check: {report}"
