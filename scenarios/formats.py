"""What a program reads after a run: json, junit, csv, md, github."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from scenarios.choices import Format
from scenarios.problems import printable
from scenarios.render import (
    Figure,
    figures,
    plural,
    short_cells,
    table_lines,
    tables_of,
)
from scenarios.reproduce import again
from scenarios.results import Results, ScenarioResult, described, encoded

STATISTICS = ("count", "sum", "mean", "median", "p95", "p99", "min", "max")


def json_text(results: Results) -> str:
    """Return everything as JSON, the same as results.json."""
    return encoded(results).decode()


def csv_text(results: Results) -> str:
    """Return a line a metric and cell, with its statistics; empty where there is no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["scenario", "cell", "metric", *STATISTICS])
    for one in results.scenarios:
        for cell in one.cells:
            for metric, sample in cell.samples.items():
                stats = described(sample)
                amounts = [stats.get(name, "") for name in STATISTICS]
                writer.writerow([one.name, cell.cell.label, metric, *amounts])
    return out.getvalue()


def junit_text(results: Results) -> str:
    """Return JUnit XML: a suite a scenario, a case an expectation and cell.

    Inconclusive cases are skipped ones; a scenario without expectations has one case, that it ends.
    """
    suites = "".join(_suite(one) for one in results.scenarios)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n{suites}</testsuites>\n'


def _suite(one: ScenarioResult) -> str:
    cases = list(_cases(one)) or [("ends", "", "")]
    kinds = [kind for _, kind, _ in cases]
    lines = "".join(_case(one.name, *case) for case in cases)
    return (
        f'<testsuite name={_attribute(one.name)} tests="{len(cases)}" '
        f'failures="{kinds.count("failure")}" errors="{kinds.count("error")}" '
        f'skipped="{kinds.count("skipped")}">\n{lines}</testsuite>\n'
    )


def _case(suite: str, name: str, kind: str, text: str) -> str:
    head = f"  <testcase classname={_attribute(suite)} name={_attribute(name)}"
    if not kind:
        return f"{head}/>\n"
    first = text.splitlines()[0]
    inside = escape("\n".join(map(printable, text.splitlines())))
    return f"{head}><{kind} message={_attribute(first)}>{inside}</{kind}></testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(printable(text))  # XML has no way at all to write most control characters


def _cases(one: ScenarioResult) -> Iterator[tuple[str, str, str]]:
    kinds = {"pass": "", "fail": "failure", "inconclusive": "skipped"}
    for expect, judgement in one.judgements:
        cell = f" [{judgement.cell}]" if judgement.cell else ""
        text = f"{judgement.detail}\nreproduce: {again(one.plan, judgement.cell)}"
        yield f"{expect.expectation.text}{cell}", kinds[judgement.verdict], text
    for result, found in one.found:
        label = result.cell.label
        command = again(one.plan, label, found.replication)
        text = f"{found.words(result.replications)}\nreproduce: {command}"
        yield found.check + (f" [{label}]" if label else ""), "failure", text
    for label, reason in one.quiet.items():
        yield "faults fired" + (f" [{label}]" if label else ""), "skipped", reason
    for result, trouble in one.troubles:
        label = result.cell.label
        name = f"replication {trouble.replication}" + (f" [{label}]" if label else "")
        command = again(one.plan, label, trouble.replication)
        lines = [f"{trouble.kind}: {trouble.sentence}", trouble.trace, f"reproduce: {command}"]
        yield name, "error", "\n".join(filter(None, lines))


def md_text(results: Results) -> str:
    """Return Markdown: each scenario's tables, the published figures, and what did not pass."""
    parts = []
    for one in results.scenarios:
        summary = f"{_md(one.plan.top.summary)}\n" if one.plan.top.summary else ""
        parts.append("\n".join(filter(None, [f"## {one.name}\n", summary])))
        for table in tables_of(one) if one.complete else ():
            head, rows = table_lines(one, table)
            title = f"{_md(table.title)}\n\n" if table.title else ""
            parts.append(title + _md_table(head, [row.cells for row in rows]))
    found = [(one.name, figure) for one in results.scenarios for figure in figures(one)]
    if found:
        rows_of = [_md_row(name, figure) for name, figure in found]
        head = ["scenario", "figure", "cell", "published", "exact", "ours", "verdict"]
        parts.append(f"## Published figures\n\n{_md_table(head, rows_of)}")
    failures = [line for one in results.scenarios for line in _md_failures(one)]
    if failures:
        parts.append("## What did not pass\n\n" + "\n".join(failures) + "\n")
    return "\n".join(parts)


def _md_row(name: str, figure: Figure) -> tuple[str, ...]:
    exact = figure.exact or "-"
    return (name, figure.name, figure.cell, figure.published, exact, figure.ours, figure.verdict)


def _md_failures(one: ScenarioResult) -> Iterator[str]:
    for result, trouble in one.troubles:
        yield f"- **{trouble.kind}** {one.name}: {_md(trouble.sentence)}"
        yield f"  `{again(one.plan, result.cell.label, trouble.replication)}`"
    for result, found in one.found:
        words = f"{found.check}: {found.words(result.replications)}"
        yield f"- **violated** {one.name}: {_md(words)}"
        yield f"  `{again(one.plan, result.cell.label, found.replication)}`"
    for label, reason in one.quiet.items():
        where = f" [{label}]" if label else ""
        yield f"- **inconclusive** {one.name}{where}: {_md(reason)}"
    for expect, judgement in one.judgements:
        if judgement.verdict != "pass":
            cell = short_cells(one, judgement.cell)
            where = f" [{cell}]" if cell else ""
            words = f"{expect.expectation.text}{where}: {judgement.detail}"
            yield f"- **{judgement.verdict}** {one.name}: {_md(words)}"
            yield f"  `{again(one.plan, judgement.cell)}`"


def _md_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_md(cell) for cell in row)} |\n" for row in lines)


def _md(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return " ".join(printable(line) for line in safe.splitlines())


def github_text(results: Results) -> str:
    """Return GitHub's workflow commands: an annotation for all that did not pass."""
    lines = []
    for one in results.scenarios:
        file = _property(one.plan.path)
        for expect, judgement in one.judgements:
            if judgement.verdict != "pass":
                level = "error" if judgement.verdict == "fail" else "warning"
                cell = f" [{judgement.cell}]" if judgement.cell else ""
                text = f"{expect.expectation.text}{cell}: {judgement.verdict}: {judgement.detail}"
                command = again(one.plan, judgement.cell)
                lines.append(f"::{level} file={file}::{_data(f'{text}{NEXT}{command}')}")
        for cell_result, found in one.found:
            label = cell_result.cell.label
            text = f"{found.check} [{label}]: {found.words(cell_result.replications)}"
            command = again(one.plan, label, found.replication)
            lines.append(f"::error file={file}::{_data(f'{text}{NEXT}{command}')}")
        for label, reason in one.quiet.items():
            lines.append(f"::warning file={file}::{_data(f'[{label}] {reason}')}")
        for cell_result, trouble in one.troubles:
            label = cell_result.cell.label
            text = f"{trouble.kind} [{label}]: {trouble.sentence}"
            command = again(one.plan, label, trouble.replication)
            lines.append(f"::error file={file}::{_data(f'{text}{NEXT}{command}')}")
    done = f"{plural(results.replications, 'replication')}, exit {int(results.exit)}"
    return "\n".join([*lines, f"::notice::{_data(done)}", ""])


NEXT = "\nreproduce: "


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMATS: dict[Format, Callable[[Results], str]] = {
    "json": json_text,
    "junit": junit_text,
    "csv": csv_text,
    "md": md_text,
    "github": github_text,
}
