"""The page: what a report says of each scenario, from results to one HTML file.

A page that would be too large is made again with fewer panels, swimlanes and rows, and says what it
leaves out. The same results give the same bytes: nothing of this moment or this machine is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from jinja2 import Environment, StrictUndefined

from scenarios.problems import printable
from scenarios.report.moments import moments
from scenarios.report.story import Teller
from scenarios.report.svg import HERE
from scenarios.report.view import SAMPLED, Detail, View
from scenarios.report.words import verdict_of
from scenarios.results import Results
from transports.version import VERSION

SIZE_LIMIT_BYTES: Final = 300_000  # so that it goes into a mail, an issue, a chat
DETAILS: Final = (
    Detail(12, 6, 40, 240, 1000),
    Detail(6, 4, 28, 160, 1000),
    Detail(4, 2, 20, 100, 500),
    Detail(3, 1, 16, 60, 200),
    Detail(2, 1, 12, 40, 100),
    Detail(1, 1, 8, 40, 100),
    Detail(1, 0, 0, 0, 50),
    Detail(0, 0, 0, 0, 20),
)


class Page(msgspec.Struct, frozen=True):
    """A report: its HTML, and each of its drawings by a name that a file may have."""

    html: str
    plots: dict[str, str]


def environment() -> Environment:
    """Return what renders the template: everything is escaped, and an unknown name is an error."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True, keep_trailing_newline=True)  # fmt: skip
    made.filters["safe_text"] = printable_lines
    return made


def printable_lines(text: str) -> str:
    """Return a text of several lines without characters that a terminal or page would act on."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.splitlines())


def render(results: Results, teller: Teller) -> Page:
    """Return the report of results, with as much detail as the limit of its size allows."""
    wanted = [moment.place(one) for one in results.scenarios for moment in moments(one)]
    wanted += [
        (one.name, cell.cell.label, replication)
        for one in results.scenarios
        for cell in one.cells
        for replication in range(cell.first, cell.first + min(SAMPLED, cell.replications))
    ]
    teller.keep(frozenset(wanted))
    page = Page("", {})
    for detail in DETAILS:
        page = _render(results, teller, detail)
        if len(page.html.encode()) <= SIZE_LIMIT_BYTES:
            break
    return page


def _render(results: Results, teller: Teller, detail: Detail) -> Page:
    plots: dict[str, str] = {}
    views = [
        View(one, number, teller, detail, plots) for number, one in enumerate(results.scenarios, 1)
    ]
    sign, word, verdict = verdict_of(results.exit)
    template = (HERE / "page.html.j2").read_text(encoding="utf-8")
    styles = [(HERE / name).read_text(encoding="utf-8") for name in ("plot.css", "page.css")]
    html = (
        environment()
        .from_string(template)
        .render(
            views=views,
            sign=sign,
            word=word,
            verdict=verdict,
            title=_title(views),
            replications=f"{results.replications:,}",
            reduced=detail is not DETAILS[0],
            unlike=teller.unlike,
            sentences={
                check["name"]: check["sentence"]
                for view in views
                for check in view.held
                if check["sentence"]
            },
            style="\n".join(styles),
            version=VERSION,
        )
    )
    return Page(html, plots)


def _title(views: Sequence[View]) -> str:
    return views[0].name if len(views) == 1 else f"{len(views)} scenarios"
