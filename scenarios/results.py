"""Results: what the cells gave, judged."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cached_property
from hashlib import blake2b
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from scenarios.judge import Judgement, judge
from scenarios.load import Expect, Plan
from scenarios.reproduce import again
from scenarios.stats import Sample, value
from scenarios.work import Found, Rows, Trouble, packed, unpacked


class Exit(IntEnum):
    """Exit codes; the worst one wins, in the order of `WORST`."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    DIVERGED = 4
    BUG = 70
    INTERRUPTED = 130


WORST = (
    Exit.BUG,
    Exit.INTERRUPTED,
    Exit.USAGE,
    Exit.DIVERGED,
    Exit.FAILED,
    Exit.INCONCLUSIVE,
    Exit.OK,
)


def worst(codes: list[Exit]) -> Exit:
    """Return the exit code that wins."""
    return min(codes, key=WORST.index, default=Exit.OK)


class CellResult:
    """What one cell gave: its metrics' samples, its faults' firings, its trouble.

    A value takes 8 bytes, its replication's count of values 4 where they differ.
    """

    def __init__(self, plan: Plan, index: int, first: int = 0) -> None:
        self.cell = plan.cells[index]
        self.scenario = plan.scenarios[index]
        self.index = index
        self.first = first  # the first replication, 0 unless one alone was asked for
        self.discard()

    def discard(self) -> None:
        """Begin anew, without a row."""
        self.replications = 0
        self.trouble: Trouble | None = None
        self._values = {name: array("d") for name in self.scenario.metrics}
        self._counts: dict[str, array[int] | None] = dict.fromkeys(self.scenario.metrics)
        self._fired = {fault.name: array("I") for fault in self.scenario.faults}
        self._waiting: dict[int, Rows] = {}
        self.found: dict[str, Found] = {}  # the checks that did not hold

    def add(self, rows: Rows) -> None:
        """Add a range's rows; they are joined in the order of replications."""
        if rows.first < rows.last:
            self._waiting[rows.first] = rows
        while (following := self._waiting.pop(self.first + self.replications, None)) is not None:
            self._join(following)
        trouble = rows.trouble
        if trouble is not None and (
            self.trouble is None or trouble.replication < self.trouble.replication
        ):
            self.trouble = trouble

    def _join(self, rows: Rows) -> None:
        size = rows.last - rows.first
        for name, values in rows.values.items():
            packed_counts = rows.counts[name]
            kept = self._counts[name]
            if packed_counts is not None and kept is None:
                kept = self._counts[name] = array("I", repeat(1, self.replications))
            if kept is not None:
                kept.extend(
                    repeat(1, size) if packed_counts is None else unpacked("I", packed_counts)
                )
            self._values[name].extend(unpacked("d", values))
        for name, fired in rows.fired.items():
            self._fired[name].extend(unpacked("I", fired))
        for found in rows.found:
            known = self.found.get(found.check)
            self.found[found.check] = (
                found if known is None else replace(known, count=known.count + found.count)
            )
        self.replications += size

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """Each metric's sample; look at them when the cell is complete."""
        return {name: Sample(values, self._counts[name]) for name, values in self._values.items()}

    def rows(self, metric: str) -> Iterator[tuple[int, array[float]]]:
        """Return each replication with its rows of a metric."""
        values, counts, at = self._values[metric], self._counts[metric], 0
        for replication in range(self.replications):
            end = at + (1 if counts is None else counts[replication])
            yield self.first + replication, values[at:end]
            at = end

    def fired(self, fault: str) -> array[int]:
        """Return how often a fault fired in each replication."""
        return self._fired[fault]

    def digest(self) -> str:
        """Return a hash of every row, the same whatever the ranges were."""
        state = blake2b(self.cell.label.encode(), digest_size=16)
        for name in sorted(self._values):
            counts = self._counts[name]
            state.update(name.encode() + b"\0" + packed(self._values[name]))
            state.update(b"\0" if counts is None else b"\1" + packed(counts))
        return state.hexdigest()


class ScenarioResult:
    """One scenario's cells, and what became of its expectations."""

    def __init__(self, plan: Plan, cells: list[CellResult], *, judged: bool = True) -> None:
        self.plan = plan
        self.cells = cells
        self._judged = judged
        self.complete = False

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.plan.name

    @property
    def troubles(self) -> list[tuple[CellResult, Trouble]]:
        """Every replication that did not reach its end."""
        return [(cell, cell.trouble) for cell in self.cells if cell.trouble is not None]

    @property
    def found(self) -> list[tuple[CellResult, Found]]:
        """Every check that did not hold in some replication of a cell."""
        return [(cell, found) for cell in self.cells for found in cell.found.values()]

    @cached_property
    def judgements(self) -> list[tuple[Expect, Judgement]]:
        """Each expectation's verdict in each cell that it speaks of, among those that were run.

        None of a scenario that was in trouble, was interrupted, or of which one replication alone
        was wanted.
        """
        if not (self._judged and self.complete):
            return []
        return [
            (expect, self._doubted(judgement))
            for expect in self.plan.expects
            if all(
                self.lookup(one.metric, one.statistic, one.subscript)
                for one in expect.expectation.references
            )
            for judgement in judge(expect.expectation, self.lookup)
        ]

    def lookup(
        self, metric: str, statistic: str, subscript: str | None
    ) -> list[tuple[str, Sample]]:
        """Return the labels and samples of the cells that a reference means."""
        return [
            (result.cell.label, result.samples[metric])
            for result in self.cells
            if subscript is None or result.cell.matches(subscript)
        ]

    @cached_property
    def quiet(self) -> dict[str, str]:
        """The cells whose faults did not fire as they must, each with the reason.

        None of a scenario that is not judged: a run that was cut short shows nothing of its faults.
        """
        reasons: dict[str, str] = {}
        if not (self._judged and self.complete):
            return reasons
        for result in self.cells:
            for fault in result.scenario.faults:
                fired = result.fired(fault.name)
                if fault.probabilistic:
                    if sum(fired) < fault.min_fired:
                        reasons[result.cell.label] = f"fault {fault.name} fired {sum(fired)} times"
                elif fault.probability != 0 and not all(fired):
                    missing = sum(1 for count in fired if not count)
                    reasons[result.cell.label] = (
                        f"fault {fault.name} did not fire in {missing} of {len(fired)} replications"
                    )
        return reasons

    def _doubted(self, judgement: Judgement) -> Judgement:
        """Make a verdict inconclusive where a fault that should have fired did not."""
        for label in judgement.cell.split(" : "):
            if label in self.quiet:
                return msgspec.structs.replace(
                    judgement, verdict="inconclusive", detail=self.quiet[label]
                )
        return judgement

    def settle(self) -> None:
        """Judge and describe, while others are still running; both are kept."""
        if not self.troubles:
            _ = self.judgements, self.described

    @cached_property
    def described(self) -> dict[str, Any]:
        """The scenario as plain data, its part of results.json."""
        return _summary(self)

    @property
    def exit(self) -> Exit:
        """The scenario's exit code."""
        codes = [exit_of(trouble) for _, trouble in self.troubles]
        codes += [Exit.FAILED] * bool(self.found)
        for _, judgement in self.judgements:
            codes.append(_VERDICT_EXITS[judgement.verdict])
        if self.quiet:
            codes.append(Exit.INCONCLUSIVE)
        return worst(codes)

    @property
    def digest(self) -> str:
        """A hash of every row of every cell."""
        state = blake2b(digest_size=16)
        for cell in self.cells:
            state.update(cell.digest().encode())
        return state.hexdigest()


_VERDICT_EXITS = {
    "pass": Exit.OK,
    "fail": Exit.FAILED,
    "inconclusive": Exit.INCONCLUSIVE,
}


def exit_of(trouble: Trouble) -> Exit:
    """Return the exit code that a replication in trouble means."""
    if trouble.kind in ("no number", "no actor"):
        return Exit.USAGE
    if trouble.kind == "not deterministic":
        return Exit.USAGE if trouble.foreign else Exit.BUG
    if trouble.kind in ("failed", "stuck"):
        return Exit.FAILED if trouble.foreign else Exit.BUG
    return Exit.FAILED


class Results:
    """What `pullcord.run` returns: the scenarios' results, in the order of their files."""

    def __init__(self, scenarios: list[ScenarioResult], folder: Path | None) -> None:
        self.scenarios = scenarios
        self.folder = folder
        self.seconds: float | None = 0.0  # None of results that are looked at later
        self.interrupted: str | None = None  # what stopped the run before its end

    @property
    def exit(self) -> Exit:
        """The exit code that a command ends with; nothing is judged of an interrupted run."""
        if self.interrupted is not None:
            return Exit.INTERRUPTED
        return worst([scenario.exit for scenario in self.scenarios])

    @property
    def passed(self) -> bool:
        """Whether every expectation passed and every replication ended."""
        return self.exit is Exit.OK

    @property
    def replications(self) -> int:
        """How many replications were run."""
        return sum(cell.replications for one in self.scenarios for cell in one.cells)

    def __getitem__(self, name: str) -> ScenarioResult:
        for one in self.scenarios:
            if one.name == name:
                return one
        raise KeyError(name)


def summary(results: Results) -> Mapping[str, Any]:
    """Return the results as plain data, the form of results.json and of --format json."""
    return {
        "exit": int(results.exit),
        "replications": results.replications,
        "scenarios": [one.described for one in results.scenarios],
    }


def _summary(one: ScenarioResult) -> dict[str, Any]:
    return {
        "name": one.name,
        "path": one.plan.path,
        "seed": one.plan.run.seed,
        "digest": one.digest,
        "cells": [
            {
                "label": cell.cell.label,
                "values": dict(cell.cell.assignments),
                "replications": cell.replications,
                "metrics": {name: described(sample) for name, sample in cell.samples.items()},
            }
            for cell in one.cells
        ],
        "expectations": [
            {"that": expect.expectation.text, "note": expect.note, "quote": expect.quote}
            | msgspec.to_builtins(judgement)
            | _again(one, judgement.cell, wanted=judgement.verdict != "pass")
            for expect, judgement in one.judgements
        ],
        "violations": [
            {"cell": result.cell.label}
            | msgspec.to_builtins(found)
            | {"reproduce": again(one.plan, result.cell.label, found.replication)}
            for result, found in one.found
        ],
        "quiet": one.quiet,
        "troubles": [
            {"cell": result.cell.label}
            | msgspec.to_builtins(trouble)
            | {"reproduce": again(one.plan, result.cell.label, trouble.replication)}
            for result, trouble in one.troubles
        ],
    }


def _again(one: ScenarioResult, label: str, *, wanted: bool) -> dict[str, str]:
    return {"reproduce": again(one.plan, label)} if wanted else {}


def described(sample: Sample) -> dict[str, float | int]:
    """Return a sample's usual statistics; those that need a value only if it has one."""
    shown: dict[str, float | int] = {"count": len(sample), "sum": value(sample, "sum")}
    if len(sample):
        for statistic in ("mean", "median", "p95", "p99", "min", "max"):
            shown[statistic] = value(sample, statistic)
    return shown


def encoded(results: Results) -> bytes:
    """Return the results as JSON that a person can read too."""
    return msgspec.json.format(msgspec.json.encode(summary(results)), indent=1) + b"\n"
