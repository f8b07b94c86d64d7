"""A metric's distribution in one line of a terminal: a bar a bin, in blocks or in ASCII."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len, set_cell_size

from scenarios.problems import printable
from scenarios.render import short_label
from scenarios.report.interval import is_timed
from scenarios.report.scale import amount
from scenarios.results import CellResult, ScenarioResult

BLOCKS: Final = " ▁▂▃▄▅▆▇█"
PLAIN: Final = " .:-=+*#@"
BINS: Final = 30
FIGURE_COLUMNS: Final = 9
NAME_COLUMNS: Final = 26  # all of it together takes under 80 columns


def levels(encoding: str | None) -> str:
    """Return the characters of rising bars that an encoding has."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS


def bar_lines(one: ScenarioResult, characters: str) -> Iterator[str]:
    """Yield a line a metric and cell that has values; the cells of a metric share their range."""
    for metric in one.plan.scenarios[0].metrics:
        cells = [cell for cell in one.cells if len(cell.samples[metric])]
        if not cells:
            continue
        low = min(cell.samples[metric].ordered[0] for cell in cells)
        high = max(cell.samples[metric].ordered[-1] for cell in cells)
        timed = is_timed(one, metric)
        yield f"  {printable(metric)}"
        for cell in cells:
            name = set_cell_size(_name(cell), NAME_COLUMNS)
            ends = amount(low, timed).rjust(FIGURE_COLUMNS), amount(high, timed)
            yield f"    {name}{ends[0]} {_bar(cell, metric, low, high, characters)} {ends[1]}"


def _name(cell: CellResult) -> str:
    name = printable(short_label(cell.cell))
    if cell_len(name) <= NAME_COLUMNS - 1:
        return name
    return f"{set_cell_size(name, NAME_COLUMNS - 4)}..."


def _bar(cell: CellResult, metric: str, low: float, high: float, characters: str) -> str:
    """Return a bar a bin; a bin with anything in it shows, however little it is."""
    counts = [0] * BINS
    width = (high - low) / BINS
    for value in cell.samples[metric].values:
        place = int((value - low) / width) if width else BINS // 2
        counts[min(place, BINS - 1)] += 1
    most = max(counts)
    top = len(characters) - 1
    return "".join(characters[-(-count * top // most)] for count in counts)
