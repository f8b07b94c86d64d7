"""What a run would do: cells, replications, estimated time, and how sharp each expectation is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from scenarios.executors import cores
from scenarios.expect import Reference
from scenarios.load import Plan
from scenarios.results import CellResult, ScenarioResult
from scenarios.runner import Options, Runner
from scenarios.spec import Cast
from scenarios.stats import Z_95, standard_error

PILOT = 64  # replications of each cell that are run to learn its speed and its spread


class CellPreview(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: how many replications, and the seconds that one takes."""

    label: str
    replications: int
    seconds_each: float

    @property
    def total_s(self) -> float:
        """Return the seconds that all of them take on one core."""
        return self.replications * self.seconds_each


class WidthPreview(msgspec.Struct, frozen=True, kw_only=True):
    """One expectation in one cell: half the width of its 95 % interval, None if unknown."""

    that: str
    cell: str
    half_width: float | None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What running a plan would do; `pilot` is what came of a few replications."""

    actors: tuple[tuple[str, str], ...]
    cells: tuple[CellPreview, ...]
    widths: tuple[WidthPreview, ...]
    seconds: float
    jobs: int
    pilot: ScenarioResult


def preview(plan: Plan, options: Options) -> Preview:
    """Run a few replications of each cell, and say what the whole would take and show."""
    alone = msgspec.structs.replace(options, pilot=PILOT, jobs=1)
    runner = Runner([plan], alone, None)
    results = runner.run()
    if results.interrupted is not None:
        raise KeyboardInterrupt(results.interrupted)
    pilot = results.scenarios[0]
    cells = tuple(
        CellPreview(
            label=result.cell.label,
            replications=result.scenario.run.replications,
            seconds_each=runner.schedule.cells[0, result.index].seconds_each,
        )
        for result in pilot.cells
    )
    jobs = options.jobs or cores()
    return Preview(
        actors=tuple((one.name, _keys(one)) for one in pilot.cells[0].scenario.cast),
        cells=cells,
        widths=tuple(_widths(plan, pilot)) if pilot.complete else (),
        seconds=sum(cell.total_s for cell in cells) / jobs,
        jobs=jobs,
        pilot=pilot,
    )


def _keys(one: Cast) -> str:
    """Return an actor's keys that differ from their defaults, as in the first cell."""
    words = [f"use = {one.use}"] if one.use else []
    if one.command:
        words.append(f"command = {' '.join(one.command)}")
    for field in msgspec.structs.fields(type(one.config)):
        value = getattr(one.config, field.name)
        made = field.default_factory is not msgspec.NODEFAULT
        default = field.default_factory() if made else field.default
        if value != default:
            words.append(f"{field.encode_name} = {_text(value)}")
    return ", ".join(words)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(getattr(value, "text", value))


def _widths(plan: Plan, pilot: ScenarioResult) -> list[WidthPreview]:
    return [
        WidthPreview(
            that=expect.expectation.text,
            cell=cell.cell.label,
            half_width=_half_width(cell, expect.expectation.left),
        )
        for expect in plan.expects
        for cell in _cells(pilot.cells, expect.expectation.left.subscript)
    ]


def _cells(cells: Sequence[CellResult], subscript: str | None) -> list[CellResult]:
    return [cell for cell in cells if subscript is None or cell.cell.matches(subscript)]


def _half_width(cell: CellResult, reference: Reference) -> float | None:
    """Return the pilot's half-width, shrunk by the root of how much larger the run is."""
    sample = cell.samples[reference.metric]
    if not len(sample):
        return None
    error = standard_error(sample, reference.statistic)
    if error is None:
        return None
    grown = math.sqrt(cell.scenario.run.replications / cell.replications)
    if reference.statistic in ("sum", "count"):
        return Z_95 * error * grown  # these grow with the sample, and their error with the root
    return Z_95 * error / grown
