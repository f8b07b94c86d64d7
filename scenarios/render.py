"""What a person reads after a run: tables, verdicts, and the command that shows a failure again."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final

import msgspec

from scenarios.expect import Expectation
from scenarios.grid import Row, grid, painted
from scenarios.judge import Judgement, Verdict
from scenarios.load import Expect, column_parts
from scenarios.problems import printable
from scenarios.reproduce import again
from scenarios.results import Results, ScenarioResult
from scenarios.spec import TableTable
from scenarios.stats import Sample, value
from scenarios.sweep import Cell, value_text

if TYPE_CHECKING:
    from scenarios.preview import Preview

BOLD, DIM = "1", "2"
STYLES: Final[dict[Verdict, str]] = {"pass": "32", "fail": "1;31", "inconclusive": "33"}
ORDER: Final[tuple[Verdict, ...]] = ("fail", "inconclusive", "pass")
QUOTE_LIMIT_COLUMNS: Final = 10  # a longer quotation stands below its figure
SUMMARY_HEAD: Final = ("figure", "cell", "published", "exact", "ours", "verdict")


def number(amount: float | None) -> str:
    """Return a number in four significant digits, whole numbers whole."""
    if amount is None:
        return "-"
    if amount == int(amount) and abs(amount) < 1e15:
        return f"{int(amount)}"
    return f"{amount:.4g}" if abs(amount) < 10_000 else f"{amount:.0f}"


def statistic(sample: Sample, name: str) -> str:
    """Return a statistic of a sample as tables show it; a dash without a value."""
    if not len(sample) and name not in ("count", "sum"):
        return "-"
    return number(value(sample, name))


def seconds(amount: float) -> str:
    """Return a length of real time, roughly."""
    if amount >= 5400:
        return f"{amount / 3600:.1f} h"
    if amount >= 120:
        return f"{amount / 60:.0f} min"
    return f"{amount:.2g} s" if amount < 10 else f"{amount:.0f} s"


def plural(count: int, noun: str) -> str:
    """Return `1 cell`, `2,000 cells`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table_lines(one: ScenarioResult, table: TableTable) -> tuple[list[str], list[Row]]:
    """Return a table's head and its rows, one a cell."""
    keys = [table.rows] if isinstance(table.rows, str) else list(table.rows)
    unnamed = not keys and len(one.cells) > 1
    rows = []
    for cell in one.cells:
        values = dict(cell.cell.assignments)
        names = [short_label(cell.cell)] if unnamed else [value_text(values[key]) for key in keys]
        parts = map(column_parts, table.columns)
        figures = [statistic(cell.samples[metric], name) for metric, name in parts]
        rows.append(Row((*names, *figures)))
    return [*(["cell"] if unnamed else keys), *table.columns], rows


def tables_of(one: ScenarioResult) -> tuple[TableTable, ...]:
    """Return a file's tables; one with every metric if it has none."""
    if one.plan.tables:
        return one.plan.tables
    names = one.plan.scenarios[0].metrics
    columns = tuple(f"{name}.{stat}" for name in names for stat in ("mean", "p95"))
    return (TableTable(columns=columns),) if columns else ()


# The published account


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the published account: what was said of it, and the worst verdict on it."""

    name: str
    cell: str
    published: str
    exact: str
    ours: str
    verdict: Verdict


def figures(one: ScenarioResult) -> list[Figure]:
    """Return a scenario's published figures, each of its expectations in one line."""
    found: dict[tuple[str, str], Figure] = {}
    for expect, judgement in one.judgements:
        expectation = expect.expectation
        name = f"{expectation.left.metric}.{expectation.left.statistic}"
        before = found.get((name, judgement.cell))
        found[name, judgement.cell] = Figure(
            name=name,
            cell=short_cells(one, judgement.cell),
            published=_published(expect) or (before.published if before else ""),
            exact=_exact(expectation) or (before.exact if before else ""),
            ours=number(judgement.ours),
            verdict=worse(judgement.verdict, before.verdict if before else "pass"),
        )
    return [figure for figure in found.values() if figure.published]


def _published(expect: Expect) -> str:
    if expect.quote or expect.expectation.form != "agrees with":
        return expect.quote
    return expect.expectation.numbers[0].text


def _exact(expectation: Expectation) -> str:
    return expectation.numbers[0].text if expectation.form == "equals" else ""


def worse(one: Verdict, other: Verdict) -> Verdict:
    """Return the worse of two verdicts."""
    return min(one, other, key=ORDER.index)


def short_label(cell: Cell) -> str:
    """Return a cell's values; those that say nothing by themselves with the end of their key."""
    words = []
    for key, value_of in cell.assignments:
        text = value_text(value_of)
        speaks = isinstance(value_of, str) and any(char.isalpha() for char in text)
        words.append(text if speaks else f"{key.rpartition('.')[2]}={text}")
    return ", ".join(words)


def short_cells(one: ScenarioResult, label: str) -> str:
    """Return a judgement's cell, or its two, in short."""
    short = {cell.cell.label: short_label(cell.cell) for cell in one.cells}
    return " : ".join(short.get(part, part) for part in label.split(" : "))


class Text:
    """Prints results on a stream, for people."""

    def __init__(
        self,
        stream: IO[str],
        width_columns: int = 80,
        *,
        colored: bool = False,
        verbose: bool = False,
        quiet: bool = False,
    ) -> None:
        self._stream = stream
        self._width = width_columns
        self._colored = colored
        self._verbose = verbose
        self._quiet = quiet

    def line(self, *parts: tuple[str, str] | str) -> None:
        """Print a line of parts, some of them (text, SGR parameter)."""
        for part in parts:
            text, sgr = (part, "") if isinstance(part, str) else part
            self._stream.write(painted(printable(text), sgr, self._colored))
        self._stream.write("\n")

    def wrapped(self, text: str) -> None:
        """Print text in as many lines as it takes; it is never cut at a no-break space."""
        for line in textwrap.wrap(printable(text), self._width, subsequent_indent="  "):
            self.line(line.replace("\xa0", " "))

    def grid(self, head: Sequence[str], rows: list[Row]) -> None:
        """Print a table."""
        safe = [
            Row(tuple(map(printable, row.cells)), row.paint, printable(row.note)) for row in rows
        ]
        for line in grid(head, safe, self._width, colored=self._colored):
            self._stream.write(f"{line}\n")

    def show(self, results: Results) -> None:
        """Print everything."""
        if not self._quiet:
            for one in results.scenarios:
                self.scenario(one)
            self.account(results)
        self.failures(results)
        self.close(results)

    def scenario(self, one: ScenarioResult) -> None:
        """Print one scenario's name and tables."""
        summary = one.plan.top.summary
        self.line((one.name, BOLD), f"  {summary}" if summary else "")
        if one.complete:
            for table in tables_of(one):
                if table.title:
                    self.line(f"  {table.title}")
                self.grid(*table_lines(one, table))
        if self._verbose:
            for expect, judgement in one.judgements:
                self.judgement(one, expect, judgement)
        self.line()

    def judgement(self, one: ScenarioResult, expect: Expect, judgement: Judgement) -> None:
        """Print a verdict with its reason."""
        text = expect.expectation.text
        label = short_cells(one, judgement.cell)
        # An expectation that names its cell needs no second name of it.
        cell = f" [{label}]" if label and expect.expectation.left.subscript is None else ""
        verdict = judgement.verdict
        self.line("  ", (verdict, STYLES[verdict]), f" {text}{cell}: {judgement.detail}")

    def account(self, results: Results) -> None:
        """Print the published account's figures beside ours."""
        rows = []
        for one in results.scenarios:
            found = figures(one)
            if found:
                blank = ("",) * (len(SUMMARY_HEAD) - 1)
                rows.append(Row((one.name, *blank), {0: BOLD}))
            rows += [_summary_row(figure) for figure in found]
        if rows:
            self.grid(SUMMARY_HEAD, rows)
            self.line()

    def failures(self, results: Results) -> None:
        """Print what failed, each with the line that shows it again."""
        bad = 0
        for one in results.scenarios:
            for cell, trouble in one.troubles:
                bad += 1
                where = f" [{cell.cell.label}]" if cell.cell.label else ""
                at = f"replication {trouble.replication}"
                self.line((trouble.kind, STYLES["fail"]), f" {one.name}{where}, {at}:")
                self.line(f"  {trouble.sentence}")
                for line in trouble.trace.splitlines():
                    self.line((f"  {line}", DIM))
                self.again(again(one.plan, cell.cell.label, trouble.replication))
            for cell, found in one.found:
                bad += 1
                where = f" [{cell.cell.label}]" if cell.cell.label else ""
                at = f"replication {found.replication}"
                self.line(("violated", STYLES["fail"]), f" {found.check} {one.name}{where}, {at}:")
                self.line(f"  {found.words(cell.replications)}")
                self.again(again(one.plan, cell.cell.label, found.replication))
            for cell_label, reason in one.quiet.items():
                bad += 1
                where = f" [{cell_label}]" if cell_label else ""
                self.line(("inconclusive", STYLES["inconclusive"]), f" {one.name}{where}: {reason}")
            pairs = [pair for pair in one.judgements if pair[1].verdict != "pass"]
            for expect, judgement in sorted(pairs, key=lambda pair: ORDER.index(pair[1].verdict)):
                bad += 1
                self.line((one.name, BOLD))
                self.judgement(one, expect, judgement)
                self.again(again(one.plan, judgement.cell))
        if bad:
            self.line()

    def again(self, command: str) -> None:
        """Print a command in one line, however long, so that it can be copied."""
        self.line(f"  reproduce: {command}")

    def close(self, results: Results) -> None:
        """Print the last lines: the verdict, what was run, where it is kept."""
        verdicts = [j.verdict for one in results.scenarios for _, j in one.judgements]
        words: dict[Verdict, str] = {
            "pass": "passed",
            "fail": "failed",
            "inconclusive": "inconclusive",
        }
        counts = [
            f"{verdicts.count(verdict)} {word}"
            for verdict, word in words.items()
            if verdict == "pass" or verdict in verdicts
        ]
        what = [f"{', '.join(counts)} of {plural(len(verdicts), 'expectation')}"]
        if not verdicts:
            what = ["no expectation judged"]
        violated = sum(len(one.found) for one in results.scenarios)
        if violated:
            what.insert(0, f"{plural(violated, 'check')} violated")
        troubles = sum(len(one.troubles) for one in results.scenarios)
        if troubles:
            what.insert(0, f"{plural(troubles, 'scenario')} in trouble")
        cells = plural(sum(len(one.cells) for one in results.scenarios), "cell")
        runs = plural(results.replications, "replication")
        took = f", {results.seconds:.2f} s" if results.seconds is not None else ""
        self.line(f"{'; '.join(what)}; {runs} in {cells}{took}")
        if results.folder is not None:
            self.line(f"results in {results.folder}")

    def preview(self, one: Preview) -> None:
        """Print what a run would do."""
        for actor, keys in one.actors:
            self.line(f"  {actor}", (f"  {keys}" if keys else "", DIM))
        rows = [
            Row((cell.label or "the only cell", f"{cell.replications}", seconds(cell.total_s)))
            for cell in one.cells
        ]
        self.grid(["cell", "replications", "CPU time"], rows)
        if one.widths:
            self.line()
            widths = [Row((w.that, w.cell, number(w.half_width))) for w in one.widths]
            self.grid(["expectation", "cell", "95 % half-width"], widths)
        processes = "1 process" if one.jobs == 1 else f"{one.jobs} processes"
        self.line(f"about {seconds(one.seconds)} on {processes}")
        self.line()


def _summary_row(figure: Figure) -> Row:
    short = len(figure.published) <= QUOTE_LIMIT_COLUMNS
    return Row(
        (
            f"  {figure.name}",
            figure.cell,
            figure.published if short else "",
            figure.exact or "-",
            figure.ours,
            figure.verdict,
        ),
        {5: STYLES[figure.verdict]},
        "" if short else f"published: {figure.published}",
    )
