"""What `pullcord report` and `pullcord run --report` do: read results, write the page."""

from __future__ import annotations

from pathlib import Path

from scenarios.folder import unwritable, write_whole
from scenarios.render import Text
from scenarios.report.bars import bar_lines
from scenarios.report.page import render
from scenarios.report.reload import reload
from scenarios.report.story import Teller
from scenarios.report.svg import standalone
from scenarios.results import Results

PAGE = "report.html"


def write_report(target: Path, out: Path | None, svg: Path | None) -> Path:
    """Write the report of a results folder, and its drawings into `svg` if that is given.

    Returns where the page is: `out`, or report.html in the folder. FolderError if the results can't
    be read, or something can't be written.
    """
    loaded = reload(target)
    folder = loaded.results.folder
    assert folder is not None, "it was read from there"
    page = render(loaded.results, Teller(loaded.options, folder))
    place = folder / PAGE if out is None else out
    _write(place, page.html)
    for name, drawing in page.plots.items() if svg is not None else ():
        _write(Path(svg or "", f"{name}.svg"), standalone(drawing))
    return place


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise unwritable(path, error) from None


def show_text(target: Path, out: Text, characters: str) -> None:
    """Print a results folder's results, each metric's distribution in a line."""
    results = reload(target).results
    out.show(results)
    show_bars(results, out, characters)


def show_bars(results: Results, out: Text, characters: str) -> None:
    """Print each metric's distribution in a line a cell."""
    for one in results.scenarios:
        lines = list(bar_lines(one, characters))
        if lines:
            out.line()
            out.line(one.name)
        for line in lines:
            out.line(line)
