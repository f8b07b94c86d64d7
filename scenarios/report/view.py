"""What the page says of one scenario: everything that its template shows, as plain data."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec

from scenarios.cast import ForeignActorError
from scenarios.checks import CHECKS, load_check, sentence_of
from scenarios.judge import Judgement
from scenarios.load import Expect
from scenarios.render import ORDER, plural, short_label, table_lines, tables_of
from scenarios.report.ecdf import Panel, panels
from scenarios.report.interval import draw, shown_of
from scenarios.report.moments import Moment, focus_of, moments
from scenarios.report.scale import amount
from scenarios.report.story import Story, Teller
from scenarios.report.strip import FaultLine, fault_lines, strip
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
from scenarios.results import CellResult, ScenarioResult
from scenarios.shipped import shown
from transports.version import VERSION

SAMPLED: Final = 12  # replications that a fault strip tells of
SAMPLED_RECORDS: Final = 100_000  # after so many it has enough
STRIP_CELLS: Final = 3
LISTED: Final = 20  # names in a sentence; more are counted
Entry = TypeVar("Entry")


class Detail(msgspec.Struct, frozen=True):
    """How much is shown of a scenario at most.

    Panels a metric, swimlanes, rows of a swimlane, characters of a tip, and entries of each list:
    expectations, rows of a table, failures.
    """

    panels: int
    lanes: int
    rows: int
    tip_chars: int
    entries: int


class View:
    """What the template is given of one scenario; `plots` takes each drawing by its name.

    Lists are cut to what `detail` allows, and `more` says what each lacks.
    """

    def __init__(
        self,
        one: ScenarioResult,
        number: int,
        teller: Teller,
        detail: Detail,
        plots: dict[str, str],
    ) -> None:
        self.one = one
        self.id = f"s{number}"
        self.name = one.name
        self.summary = one.plan.top.summary
        self.command = whole_command(one, teller.options)
        self.text = one.plan.text
        self.sign, self.word, self.verdict = verdict_of(one.exit)
        self.sentence = sentence(one)
        self.more: dict[str, str] = {}
        self._plots = plots
        self._teller = teller
        self._detail = detail
        self.facts = list(self._facts())
        self.expects = [self._expect(*pair) for pair in self._told()]
        self.failures = self._few("failures", list(failures(one)))
        self.tables = list(self._tables())
        self.metrics = list(self._metrics())
        self.faults = list(self._faults())
        self.checks = list(self._checks())
        self.broken = [check for check in self.checks if check["violations"]]
        self.held = [check for check in self.checks if not check["violations"]]
        found = moments(one)
        self.lanes = [lane for each in found[: detail.lanes] if (lane := self._lane(each))]
        self.unshown = listing([self._naming(each) for each in found[detail.lanes :]])

    def _few(self, name: str, entries: list[Entry]) -> list[Entry]:
        """Return as many entries of a list as there is room for."""
        limit = self._detail.entries
        if len(entries) > limit:
            self.more[name] = f"{len(entries) - limit:,} more not shown"
        return entries[:limit]

    def _told(self) -> list[tuple[Expect, Judgement]]:
        """Return the judgements that are shown: if not all, those that did not pass come first."""
        pairs = self.one.judgements
        if len(pairs) > self._detail.entries:
            pairs = sorted(pairs, key=lambda pair: ORDER.index(pair[1].verdict))
        return self._few("expects", pairs)

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

    def _keep(self, name: str, svg: str) -> str:
        """File a drawing under a name of its own, and return it."""
        base = re.sub(r"[^A-Za-z0-9.=-]+", "_", name).strip("_")[:120]
        key, number = base, 1
        while key in self._plots:
            number += 1
            key = f"{base}_{number}"
        self._plots[key] = svg
        return svg

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
        for number, table in enumerate(tables_of(self.one) if self.one.complete else (), 1):
            head, rows = table_lines(self.one, table)
            names = len(head) - len(table.columns)
            yield {
                "title": table.title or "Statistics",
                "head": head,
                "names": names,
                "rows": [row.cells for row in self._few(f"table {number}", rows)],
                "more": self.more.get(f"table {number}", ""),
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
                "rest": "" if steady else listing(rest),
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
        if len(cells) > STRIP_CELLS:
            rest = listing([short_label(cell.cell) for cell in cells[STRIP_CELLS:]])
            self.more["faults"] = f"not shown: {rest}"
        for cell in cells[:STRIP_CELLS]:
            sampled = self._sampled(cell)
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
        if not any(cell.replications for cell in self.one.cells):
            return
        listed = [*CHECKS] if every else []
        if any(cast.kind == "relay" and cast.command for cast in scenario.cast):
            listed = [name for name in listed if name != "result_from_engine"]  # it can't be judged
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


def listing(names: list[str]) -> str:
    """Return names in one line, the first of many."""
    more = len(names) - LISTED
    return "; ".join(names[:LISTED] + ([f"and {more:,} more"] if more > 0 else []))
