"""What a report says in sentences: verdicts, what failed, what a metric means."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from scenarios.judge import Judgement
from scenarios.load import Expect
from scenarios.render import ORDER, plural, short_cells, short_label
from scenarios.report.interval import ends, is_timed
from scenarios.report.scale import amount
from scenarios.reproduce import again
from scenarios.results import Exit, ScenarioResult
from scenarios.runner import Options
from scenarios.spec import MetricTable

VERDICTS: Final = {
    Exit.OK: ("pass", "Passed"),
    Exit.FAILED: ("fail", "Failed"),
    Exit.INCONCLUSIVE: ("inconclusive", "Inconclusive"),
    Exit.USAGE: ("fail", "Could not be judged"),
    Exit.BUG: ("fail", "Stopped by a bug in pullcord"),
}
SIGNS: Final = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def whole_command(one: ScenarioResult, options: Options) -> str:
    """Return the command that runs all of a scenario's results again."""
    whole = len(one.cells) == len(one.plan.cells)
    if whole or len(one.cells) != 1:
        text = again(one.plan)
    else:
        text = again(one.plan, one.cells[0].cell.label)
    if not whole and len(one.cells) > 1 and options.contains is not None:
        text += f" -k {shlex.quote(options.contains)}"
    elif not whole and len(one.cells) > 1 and options.cell is not None:
        text += f" --cell {shlex.quote(options.cell)}"
    return text if options.replication is None else f"{text} --replication {options.replication}"


def named(one: ScenarioResult, expect: Expect, judgement: Judgement) -> str:
    """Return an expectation's text, and its cell if that doesn't name it."""
    cell = short_cells(one, judgement.cell)
    spoken = expect.expectation.left.subscript is not None or not cell
    return expect.expectation.text if spoken else f"{expect.expectation.text} [{cell}]"


def spread(judgement: Judgement, timed: bool) -> str:
    """Return the interval that decided, "" if there is none or it is one value."""
    found = ends(judgement)
    if found is None:
        return ""
    return f"{amount(found[0], timed)} to {amount(found[1], timed)}"


def always(one: ScenarioResult, metric: str) -> str:
    """Return what is said of a metric that has one value alone in every cell, "" of others."""
    samples = [cell.samples[metric] for cell in one.cells if len(cell.samples[metric])]
    values = list(dict.fromkeys(sample.values[0] for sample in samples))
    if len(values) != 1 or not all(sample.constant for sample in samples):
        return ""
    count = sum(map(len, samples))
    text = amount(values[0], is_timed(one, metric))
    return f"always {text}, {plural(count, 'value')}"


def verdict_of(code: Exit) -> tuple[str, str, str]:
    """Return an exit code's sign, its word, and the class that colours it."""
    verdict, word = VERDICTS[code]
    return SIGNS[verdict], word, verdict


def sentence(one: ScenarioResult) -> str:
    """Return what became of a scenario, in numbers."""
    parts = []
    if one.troubles:
        parts.append(f"{plural(len(one.troubles), 'replication')} did not reach the end")
    if one.found:
        names = len(dict.fromkeys(found.check for _, found in one.found))
        parts.append(f"{plural(names, 'check')} violated")
    verdicts = [judgement.verdict for _, judgement in one.judgements]
    if verdicts:
        words = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive"}
        counts = [
            f"{verdicts.count(verdict):,} {words[verdict]}"
            for verdict in ORDER
            if verdicts.count(verdict)
        ]
        parts.append(f"{', '.join(counts)} of {plural(len(verdicts), 'expectation')}")
    if one.quiet:
        parts.append(f"faults did not fire as they must in {plural(len(one.quiet), 'cell')}")
    text = "; ".join(parts) or "nothing failed, and no expectation was judged"
    return f"{text[0].upper()}{text[1:]}."


def failures(one: ScenarioResult) -> Iterator[dict[str, str]]:
    """Yield what did not pass, each with the command that shows it again."""
    for cell, trouble in one.troubles:
        label = cell.cell.label
        where = f"{short_label(cell.cell)}, " if label else ""
        yield {
            "kind": trouble.kind,
            "verdict": "fail",
            "text": f"{where}replication {trouble.replication}: {trouble.sentence}",
            "trace": trouble.trace,
            "command": again(one.plan, label, trouble.replication),
        }
    for cell, found in one.found:
        label = cell.cell.label
        where = f"{short_label(cell.cell)}, " if label else ""
        words = f"{where}replication {found.replication}: {found.words(cell.replications)}"
        yield {
            "kind": f"violated {found.check}",
            "verdict": "fail",
            "text": words,
            "trace": "",
            "command": again(one.plan, label, found.replication),
        }
    pairs = [pair for pair in one.judgements if pair[1].verdict != "pass"]
    for expect, judgement in sorted(pairs, key=lambda pair: ORDER.index(pair[1].verdict)):
        yield {
            "kind": judgement.verdict,
            "verdict": judgement.verdict,
            "text": f"{named(one, expect, judgement)}: {judgement.detail}",
            "trace": "",
            "command": again(one.plan, judgement.cell),
        }
    for label, reason in one.quiet.items():
        where = f"[{label}] " if label else ""
        yield {
            "kind": "inconclusive",
            "verdict": "inconclusive",
            "text": f"{where}{reason}",
            "trace": "",
            "command": again(one.plan, label),
        }


def meaning(table: MetricTable) -> str:
    """Return what a metric measures, and what one of its rows is."""
    each = "run" if table.per == "run" else "replication"
    if table.count is not None:
        return f"how often {table.count} came, a row a {each}"
    if table.value is not None:
        return f"{table.value}, a row each time"
    took = f"seconds from {table.source} to {table.target}, a row a {each}"
    return f"{took}, the last one" if table.take == "last" else took
