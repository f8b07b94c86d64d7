"""Lists of a deployment: a table where a terminal has room for it, else a line a row.

What is piped is the same whatever the terminal: cells with two spaces between them, no head.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len

from scenarios.graph_progress import one_line
from scenarios.grid import GAP, Row, grid
from scenarios.terminal import colored, width_columns


def print_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows. An id is never broken: it is there to be copied."""
    cells = [tuple(one_line(cell) for cell in row) for row in rows]
    if rows and sys.stdout.isatty():
        room = width_columns(sys.stdout)
        natural = [max(map(cell_len, column)) for column in zip(head, *cells, strict=True)]
        if sum(natural) + len(GAP) * (len(head) - 1) <= room:
            table = grid(head, [Row(row) for row in cells], room, colored=colored(sys.stdout))
            sys.stdout.writelines(f"{line}\n" for line in table)
            return
    for row in cells:
        sys.stdout.write(GAP.join(cell for cell in row if cell) + "\n")
