"""Which checks a scenario asks for, and their judgement on each of its replications."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from logs.keep import MemoryRecorder
from logs.record import Recorder
from logs.write import SectionWriter
from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, Check, Violation, history_of, judge, load_check
from scenarios.work import Found

if TYPE_CHECKING:
    from scenarios.build import CellRun

SENTENCES_LIMIT_CHARS = 400  # of a violation that travels between processes and into results


def checks_of(names: str | tuple[str, ...], folder: Path, *, faults: bool) -> dict[str, Check]:
    """Return the checks that [run] check asks for; ForeignActorError for one that there is not."""
    wanted = (names,) if isinstance(names, str) else names
    if "none" in wanted and len(wanted) > 1:
        raise ForeignActorError('"none" stands beside other checks', "leave one of them out")
    found: dict[str, Check] = {}
    for name in wanted:
        if name == "all" or (name == "auto" and faults):
            found |= CHECKS
        elif name in CHECKS:
            found[name] = CHECKS[name]
        elif name not in ("none", "auto"):
            found[name] = load_check(name, folder)
    return found


class KeepingWriter(SectionWriter):
    """A section's writer that keeps its records too, for the checks."""

    def __init__(self, out: BinaryIO | None) -> None:
        super().__init__(out)
        self.memory = MemoryRecorder()

    def _flush(self) -> None:
        self.memory.records += self.records
        super()._flush()


class Judging:
    """The checks at work in one cell; the first violation of each is kept, the others counted."""

    def __init__(self, cell: CellRun, checks: Mapping[str, Check]) -> None:
        self._cell = cell
        self._checks = checks
        self._found: dict[str, Found] = {}

    def recorder(self) -> Recorder:
        """Return what a replication's history is kept in, where no log is written."""
        self.memory = MemoryRecorder()
        return self.memory

    def writer(self, out: BinaryIO) -> KeepingWriter:
        """Return what keeps a replication's history and writes its log."""
        writer = KeepingWriter(out)
        self.memory = writer.memory
        return writer

    def judge(self, replication: int) -> list[Violation]:
        """Judge the replication that has just ended; CheckFailedError if a check can't."""
        history = history_of(
            self._cell,
            self.memory,
            healed_us=self._cell.healed_us,
            converge_us=self._cell.scenario.run.converge,
        )
        violations = judge(history, self._checks)
        for name in dict.fromkeys(violation.check for violation in violations):
            first = next(violation for violation in violations if violation.check == name)
            known = self._found.get(name)
            self._found[name] = (
                Found(
                    check=name,
                    replication=replication,
                    sentence=first.sentence[:SENTENCES_LIMIT_CHARS],
                    records=first.records,
                )
                if known is None
                else msgspec.structs.replace(known, count=known.count + 1)
            )
        return violations

    def take(self) -> tuple[Found, ...]:
        """Return what was found since the last time."""
        found, self._found = tuple(self._found.values()), {}
        return found
