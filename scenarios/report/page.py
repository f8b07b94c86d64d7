"""The page: what a report says of each scenario, from results to one HTML file.

A page that would be too large is made again with fewer panels, swimlanes and rows, and says what it
leaves out. The same results give the same bytes: nothing of this moment or this machine is in it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, load_check, sentence_of
from scenarios.judge import Judgement
from scenarios.load import Expect
from scenarios.problems import printable
from scenarios.render import plural, short_label, table_lines, tables_of
from scenarios.report.ecdf import Panel, panels
from scenarios.report.interval import draw, shown_of
from scenarios.report.moments import Moment, focus_of, moments
from scenarios.report.scale import amount
from scenarios.report.story import Story, Teller
from scenarios.report.strip import FaultLine, fault_lines, strip
from scenarios.report.svg import HERE
from scenarios.report.swimlane import swimlane
from scenarios.report.words import (
    SIGNS,
    always,
    failures,
    meaning,
    named,
    sentence,
    spread,
    verdict_of,
    whole_command,
)
from scenarios.results import CellResult, Results, ScenarioResult
from scenarios.shipped import shown
from transports.version import VERSION

SIZE_LIMIT_BYTES: Final = 300_000  # so that it goes into a mail, an issue, a chat
SAMPLED: Final = 12  # replications that a fault strip tells of
SAMPLED_RECORDS: Final = 100_000  # after so many it has enough
STRIP_CELLS: Final = 3


class Detail(msgspec.Struct, frozen=True):
    """How much is drawn: panels a metric, swimlanes a scenario, rows a swimlane, words a tip."""

    panels: int
    lanes: int
    rows: int
    tip_chars: int


DETAILS: Final = (
    Detail(12, 6, 40, 240),
    Detail(6, 4, 28, 160),
    Detail(4, 2, 20, 100),
    Detail(3, 1, 16, 60),
    Detail(2, 1, 12, 40),
    Detail(1, 1, 8, 40),
    Detail(1, 0, 0, 0),
    Detail(0, 0, 0, 0),
)


class Page(msgspec.Struct, frozen=True):
    """A report: its HTML, and each of its drawings by a name that a file may have."""

    html: str
    plots: dict[str, str]


class View:
    """What the template is given of one scenario; `plots` takes each drawing by its name."""

    def __init__(self, one: ScenarioResult, number: int, teller: Teller, detail: Detail) -> None:
        self.one = one
        self.id = f"s{number}"
        self.name = one.name
        self.summary = one.plan.top.summary
        self.command = whole_command(one, teller.options)
        self.text = one.plan.text
        self.sign, self.word, self.verdict = verdict_of(one.exit)
        self.sentence = sentence(one)
        self.plots: dict[str, str] = {}
        self._teller = teller
        self._detail = detail
        self.facts = list(self._facts())
        self.expects = [self._expect(*pair) for pair in one.judgements]
        self.failures = list(failures(one))
        self.tables = list(self._tables())
        self.metrics = list(self._metrics())
        self.faults = list(self._faults())
        self.checks = list(self._checks())
        self.broken = [check for check in self.checks if check["violations"]]
        self.held = [check for check in self.checks if not check["violations"]]
        found = moments(one)
        self.lanes = [lane for each in found[: detail.lanes] if (lane := self._lane(each))]
        self.unshown = [self._naming(each) for each in found[detail.lanes :]]

    def _facts(self) -> Iterator[tuple[str, str]]:
        plan = self.one.plan
        yield "scenario file", shown(plan.path)
        yield "seed", str(plan.run.seed)
        runs = sum(cell.replications for cell in self.one.cells)
        yield "replications", f"{runs:,} in {plural(len(self.one.cells), 'cell')}"
        yield "ran on", " ".join(plan.host) or "the simulator, under a virtual clock"
        yield "scenario's digest", plan.digest
        yield "results' digest", self.one.digest
        yield "pullcord", VERSION

    def _keep(self, name: str, svg: str) -> Markup:
        """File a drawing, and return it as markup: `scenarios.report.svg` has escaped it."""
        base = re.sub(r"[^A-Za-z0-9.=-]+", "_", name).strip("_")[:120]
        key, number = base, 1
        while key in self.plots:
            number += 1
            key = f"{base}_{number}"
        self.plots[key] = svg
        return Markup(svg)  # noqa: S704  its words are escaped where it is drawn

    def _expect(self, expect: Expect, judgement: Judgement) -> dict[str, Any]:
        drawn = shown_of(self.one, expect, judgement)
        timed = drawn is not None and drawn.timed
        text = expect.expectation.text
        name = named(self.one, expect, judgement)
        verdict = judgement.verdict
        plot = None
        if drawn is not None and drawn.tells:
            svg = draw(drawn, name, verdict)
            plot = self._keep(f"{self.name} expect {name}", svg)
        return {
            "text": text,
            "cell": name.removeprefix(text).strip(" []"),
            "verdict": verdict,
            "sign": SIGNS[verdict],
            "ours": amount(judgement.ours, timed),
            "interval": spread(judgement, timed),
            "of": "interval of the difference" if expect.expectation.right else "interval",
            "detail": judgement.detail,
            "note": expect.note,
            "quote": expect.quote,
            "plot": plot,
        }

    def _tables(self) -> Iterator[dict[str, Any]]:
        for table in tables_of(self.one) if self.one.complete else ():
            head, rows = table_lines(self.one, table)
            names = len(head) - len(table.columns)
            yield {
                "title": table.title or "Statistics",
                "head": head,
                "names": names,
                "rows": [row.cells for row in rows],
            }

    def _metrics(self) -> Iterator[dict[str, Any]]:
        for name, table in self.one.plan.scenarios[0].metrics.items():
            steady = always(self.one, name)
            found = [] if steady else panels(self.one, name, self._detail.panels)
            having = [cell for cell in self.one.cells if len(cell.samples[name])]
            rest = [short_label(cell.cell) or "its only cell" for cell in having[len(found) :]]
            yield {
                "name": name,
                "meaning": meaning(table),
                "panels": [self._panel(panel) for panel in found],
                "rest": [] if steady else rest,
                "steady": steady if having else "there is no value",
            }

    def _panel(self, panel: Panel) -> dict[str, Any]:
        return {
            "cell": panel.cell,
            "svg": self._keep(panel.name, panel.svg),
            "words": panel.words,
        }

    def _faults(self) -> Iterator[dict[str, Any]]:
        cells = [cell for cell in self.one.cells if cell.scenario.faults and cell.replications]
        for cell in cells if self._detail.panels else cells[:1]:
            sampled = self._sampled(cell) if cell in cells[:STRIP_CELLS] else []
            lines: list[FaultLine] = fault_lines(cell, sampled)
            label = cell.cell.label
            svg = None
            if sampled and self._detail.panels:
                svg = self._keep(f"{self.name} faults {label}", strip(self.name, lines, sampled))
            yield {"cell": label, "svg": svg, "lines": lines, "sampled": len(sampled)}

    def _sampled(self, cell: CellResult) -> list[Story]:
        """Return the first replications of a cell, as many as a strip tells of."""
        found: list[Story] = []
        records = 0
        for replication in range(cell.first, cell.first + min(SAMPLED, cell.replications)):
            story = self._teller.tell(self.one.plan, cell, replication)
            if story is not None:
                found.append(story)
                records += len(story.records)
            if records > SAMPLED_RECORDS:
                break
        return found

    def _checks(self) -> Iterator[dict[str, Any]]:
        """Yield each check that was judged, in the words of its sentence, and what was found."""
        scenario = self.one.plan.scenarios[0]
        wanted = scenario.run.check
        names = (wanted,) if isinstance(wanted, str) else wanted
        every = "all" in names or ("auto" in names and any(map(_has_faults, self.one.cells)))
        listed = [*CHECKS] if every else []
        listed += [name for name in names if name not in ("all", "auto", "none", *listed)]
        violated: dict[str, list[str]] = {}
        for cell, found in self.one.found:
            where = f"[{short_label(cell.cell)}] " if cell.cell.label else ""
            words = f"{where}replication {found.replication}: {found.words(cell.replications)}"
            violated.setdefault(found.check, []).append(words)
        own = {name.rpartition(":")[2]: name for name in listed if name not in CHECKS}
        told = {own.get(name, name): words for name, words in violated.items()}
        unknown = not told.keys() <= {*CHECKS, *own.values()}
        for name in dict.fromkeys([*told, *listed]):
            # A violation under a name of its own may be any of the user's checks.
            if name in told or name in CHECKS or not unknown:
                yield {
                    "name": name,
                    "sentence": self._sentence(name),
                    "violations": told.get(name, []),
                }

    def _sentence(self, name: str) -> str:
        """Return what a check says holds, "" of one that is not there any more."""
        with contextlib.suppress(ForeignActorError):
            known = CHECKS.get(name)
            if known is not None or ":" in name:
                return sentence_of(known or load_check(name, self.one.plan.folder))
        return ""

    def _lane(self, moment: Moment) -> dict[str, Any] | None:
        story = self._teller.tell(self.one.plan, moment.cell, moment.replication)
        if story is None:
            return None
        focus, run = focus_of(moment, story.records)
        kinds = {cast.name: cast.kind for cast in moment.cell.scenario.cast}
        naming = self._naming(moment)
        rows, chars = self._detail.rows, self._detail.tip_chars
        svg = swimlane(f"{self.name}: {naming}", story, focus, run, (rows, chars), kinds)
        if svg is None:
            return None
        return {
            "heading": moment.heading,
            "sentence": moment.sentence,
            "where": naming,
            "command": moment.command,
            "outcome": story.outcome,
            "svg": self._keep(f"{self.name} swimlane {naming}", svg),
        }

    @staticmethod
    def _naming(moment: Moment) -> str:
        cell = short_label(moment.cell.cell)
        return f"replication {moment.replication}" + (f" of {cell}" if cell else "")


def _has_faults(cell: CellResult) -> bool:
    return bool(cell.scenario.faults)


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
    views = [View(one, number, teller, detail) for number, one in enumerate(results.scenarios, 1)]
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
            style=Markup("\n".join(styles)),  # noqa: S704  our own files
            version=VERSION,
        )
    )
    plots = {name: svg for view in views for name, svg in view.plots.items()}
    return Page(html, plots)


def _title(views: Sequence[View]) -> str:
    return views[0].name if len(views) == 1 else f"{len(views)} scenarios"
