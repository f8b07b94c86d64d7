"""Which logs a run keeps, and in which files: none, those of what failed, or all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from logs.read import raw_sections
from scenarios.folder import Folder
from scenarios.judge import Judgement
from scenarios.load import Expect
from scenarios.results import CellResult, ScenarioResult
from scenarios.schedule import Key
from scenarios.stats import value
from scenarios.work import CellJob, log_one

EXTREMES = 3  # replications of a failed aggregate whose logs are kept
LABEL_LIMIT_CHARS = 80  # of a cell's label in a file name; file systems allow 255 bytes
COPY_BYTES = 1 << 24


class LogFiles:
    """The logs of one run's folder.

    A range's log is a part; the parts become a file a cell when everything is done, and are removed
    after that, so that an interrupted run can go on at any point.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._parts = folder.path / "parts"

    def part(self, key: Key, first: int) -> Path:
        """Return where the log of a range is kept."""
        self._parts.mkdir(exist_ok=True)
        return self._parts / f"{key[0]}-{key[1]}-{first}.jsonl"

    def path(self, scenario: ScenarioResult, index: int) -> Path:
        """Return a cell's log file."""
        label = scenario.plan.cells[index].label
        safe = "".join(c if c.isascii() and (c.isalnum() or c in ".=-") else "_" for c in label)
        name = f"{scenario.name}-{index + 1}-{safe[:LABEL_LIMIT_CHARS]}" if label else scenario.name
        return self._folder.path / "logs" / f"{name}.jsonl"

    def join(self, path: Path, key: Key, firsts: list[int]) -> None:
        """Join a cell's parts in the order of replications."""
        draft = self._draft(path)
        with draft.open("wb") as out:
            for first in sorted(firsts):
                with self.part(key, first).open("rb") as part:
                    _append(part, out)
        draft.replace(path)

    def pick(self, path: Path, key: Key, firsts: list[int], replications: list[int]) -> None:
        """Keep the logs of some replications out of a cell's parts."""
        draft = self._draft(path)
        with draft.open("wb") as out:
            for first in sorted(firsts):
                for raw in raw_sections(self.part(key, first)):
                    if raw.header().replication in replications:
                        out.writelines(raw.lines)
        draft.replace(path)

    def write(self, path: Path, job: CellJob, replications: list[int], patience_s: float) -> None:
        """Write the logs of some replications, which are made again from their seed."""
        draft = self._draft(path)
        with draft.open("wb") as out:
            for replication in replications:
                log_one(job, replication, out, patience_s)
        draft.replace(path)

    def _draft(self, path: Path) -> Path:
        path.parent.mkdir(exist_ok=True)
        return path.with_name(f".{path.name}")

    def clear(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self._parts, ignore_errors=True)


def _append(part: BinaryIO, out: BinaryIO) -> None:
    """Copy a file behind another, within the kernel where it can: a fifth of the CPU time."""
    out.flush()
    copy = getattr(os, "copy_file_range", None)  # Linux alone
    if copy is not None:
        with contextlib.suppress(OSError):  # not between these file systems: go on from there
            while copy(part.fileno(), out.fileno(), COPY_BYTES):
                pass
    shutil.copyfileobj(part, out, COPY_BYTES)


def failed(scenario: ScenarioResult) -> Mapping[str, list[int]]:
    """Return the replications whose logs are kept, by their cell's label.

    Those in trouble, the first that violates a check, and of each failed expectation the three that
    pull most to the wrong side.
    """
    wanted: dict[str, set[int]] = {}
    for cell, trouble in scenario.troubles:
        wanted.setdefault(cell.cell.label, set()).add(trouble.replication)
    for cell, found in scenario.found:
        wanted.setdefault(cell.cell.label, set()).add(found.replication)
    for expect, judgement in scenario.judgements:
        if judgement.verdict == "fail":
            for label, replications in wrong_side(scenario, expect, judgement):
                wanted.setdefault(label, set()).update(replications)
    return {label: sorted(replications) for label, replications in wanted.items()}


def wrong_side(
    scenario: ScenarioResult, expect: Expect, judgement: Judgement
) -> Iterator[tuple[str, list[int]]]:
    """Return the extremes on either side of an expectation, what is too high or too low.

    Each is a cell's label with the numbers of its replications.
    """
    expectation = expect.expectation
    left_label, _, right_label = judgement.cell.partition(" : ")
    left = next(cell for cell in scenario.cells if cell.cell.label == left_label)
    if expectation.form in ("<", "<="):
        high = True
    elif expectation.form in (">", ">="):
        high = False
    else:
        assert judgement.ours is not None, "what has no value is inconclusive"
        high = judgement.ours > expectation.numbers[0].value
    yield left_label, extremes(left, expectation.left.metric, expectation.left.statistic, high)
    if expectation.right is not None:
        label = right_label or left_label
        right = next(cell for cell in scenario.cells if cell.cell.label == label)
        reference = expectation.right
        yield label, extremes(right, reference.metric, reference.statistic, not high)


def extremes(cell: CellResult, metric: str, statistic: str, high: bool) -> list[int]:
    """Return the three replications that do most to make a statistic high, or low.

    For a sum their total counts, for a count their number of rows, for a standard deviation their
    distance from the mean, and for all else (mean, percentiles, min, max) their utmost row.
    """
    scores: list[tuple[float, int]] = []
    sample = cell.samples[metric]
    middle = value(sample, "mean") if statistic == "sd" and len(sample) else 0.0
    for replication, rows in cell.rows(metric):
        if statistic == "count":
            score = float(len(rows))
        elif statistic == "sum":
            score = sum(rows)
        elif not rows:
            continue
        elif statistic == "sd":
            score = max(abs(row - middle) for row in rows)
        else:
            score = max(rows) if high else min(rows)
        scores.append((-score if high else score, replication))
    return [replication for _, replication in sorted(scores)[:EXTREMES]]
