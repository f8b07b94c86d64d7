"""Moments: which replications a report shows as swimlanes, and where it looks.

Those that failed: what violated a check, what did not reach its end, and of each failed expectation
the replication that pulls most to the wrong side. Where nothing failed, the slowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from actors.messages import TERMINAL
from logs.record import DropRecord, EventRecord, FaultRecord, MessageRecord, Record
from scenarios.load import Expect
from scenarios.log_files import extremes, wrong_side
from scenarios.report.beats import runs_of
from scenarios.report.scale import amount
from scenarios.report.story import Place
from scenarios.reproduce import again
from scenarios.results import CellResult, ScenarioResult
from scenarios.spec import MetricTable


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A replication that is shown: why, what proves it, and the command that shows it again.

    `records` are the numbers of the records to look at; without any, `metric` tells where.
    """

    cell: CellResult
    replication: int
    heading: str
    sentence: str
    command: str
    records: tuple[int, ...] = ()
    metric: str = ""
    troubled: bool = False  # what did not reach its end is looked at there

    def place(self, one: ScenarioResult) -> Place:
        """Return what names the replication."""
        return one.name, self.cell.cell.label, self.replication


def moments(one: ScenarioResult) -> list[Moment]:
    """Return what is shown of a scenario, the most serious first, nothing of it twice."""
    found = [*_violations(one), *_troubles(one), *_expectations(one)]
    if not found:
        found = [*_slowest(one)]
    once: dict[tuple[int, int], list[Moment]] = {}
    for each in found:
        same = once.setdefault((each.cell.index, each.replication), [])
        # Two violations of one replication have two proofs; all else would look the same again.
        if not same or (each.records and each.records not in [one.records for one in same]):
            same.append(each)
    return [each for each in found if any(each is one for same in once.values() for one in same)]


def _moment(
    one: ScenarioResult,
    cell: CellResult,
    replication: int,
    heading: str,
    sentence: str,
    records: tuple[int, ...] = (),
    metric: str = "",
) -> Moment:
    return Moment(
        cell=cell,
        replication=replication,
        heading=heading,
        sentence=sentence,
        command=again(one.plan, cell.cell.label, replication),
        records=records,
        metric=metric,
    )


def _violations(one: ScenarioResult) -> Iterator[Moment]:
    for cell, found in one.found:
        words = f"{found.check}: {found.words(cell.replications)}"
        yield _moment(one, cell, found.replication, "A violation", words, found.records)


def _troubles(one: ScenarioResult) -> Iterator[Moment]:
    for cell, trouble in one.troubles:
        words = f"{trouble.kind}: {trouble.sentence}"
        moment = _moment(one, cell, trouble.replication, "A replication in trouble", words)
        yield msgspec.structs.replace(moment, troubled=True)


def _expectations(one: ScenarioResult) -> Iterator[Moment]:
    for expect, judgement in one.judgements:
        if judgement.verdict != "fail":
            continue
        for number, (label, replications) in enumerate(wrong_side(one, expect, judgement)):
            if replications:
                cell = next(cell for cell in one.cells if cell.cell.label == label)
                words = f"of all it pulls most to the wrong side of: {expect.expectation.text}"
                metric = _metric(expect, number)
                yield _moment(
                    one, cell, replications[0], "A failed expectation", words, metric=metric
                )


def _metric(expect: Expect, number: int) -> str:
    return expect.expectation.references[number].metric


def _slowest(one: ScenarioResult) -> Iterator[Moment]:
    """Yield the replication with the largest value of the first metric that is a time and varies.

    Without one, the first replication.
    """
    metrics = one.plan.scenarios[0].metrics
    best: tuple[float, CellResult] | None = None
    for name in [name for name, table in metrics.items() if table.source is not None]:
        samples = [(cell.samples[name], cell) for cell in one.cells if len(cell.samples[name])]
        if all(sample.constant for sample, _ in samples):
            continue
        for sample, cell in samples:
            if best is None or sample.ordered[-1] > best[0]:
                best = sample.ordered[-1], cell
        if best is not None:
            top, cell = best
            replication = extremes(cell, name, "max", high=True)[0]
            words = f"{name} is {amount(top, timed=True)}, the largest of all"
            yield _moment(one, cell, replication, "The slowest replication", words, metric=name)
            return
    for cell in one.cells:
        if cell.replications:
            words = "Nothing failed, and no time was measured that varies."
            yield _moment(one, cell, cell.first, "The first replication", words)
            return


def focus_of(moment: Moment, records: Sequence[Record]) -> tuple[tuple[int, ...], str]:
    """Return the records that a moment is about, and the id of the run, "" if it is about none."""
    runs = runs_of(records)
    if moment.records:
        proof = [record for record in records if record.n in moment.records]
        text = b"".join(map(msgspec.json.encode, proof)).decode()
        return moment.records, next((run for run in runs if run in text), "")
    table = moment.cell.scenario.metrics.get(moment.metric)
    if table is not None:
        found = _utmost(records, table)
        if found is not None:
            return found
    run = runs[0] if len(runs) == 1 else ""
    acts = [record.n for record in records if isinstance(record, FaultRecord | DropRecord)]
    if acts and not moment.troubled:
        return (acts[0],), run
    return tuple(record.n for record in records[-1:]), run


def _utmost(records: Sequence[Record], table: MetricTable) -> tuple[tuple[int, ...], str] | None:
    """Return the record that ends a run's longest time of a metric, and that run."""
    if table.source is None or table.target is None:
        return None
    begun: dict[str, int] = {}
    best: tuple[int, int, str] | None = None
    ended: dict[str, None] = {}
    for record in records:
        for run in _having(record, table.source):
            begun.setdefault(run, record.t)
        for run in _having(record, table.target):
            if run in begun and run not in ended:
                ended[run] = None
                span = record.t - begun[run]
                if best is None or span > best[0]:
                    best = span, record.n, run
    return None if best is None else ((best[1],), best[2])


def _having(record: Record, matcher: str) -> Iterator[str]:
    """Yield the id of the run that has a matcher's event, or its message, with this record.

    Filters of a matcher are passed over: a record next to the one meant shows it too.
    """
    name = matcher.partition("[")[0]
    if isinstance(record, EventRecord):
        if record.event == name and "run" in record.fields:
            yield str(record.fields["run"])
    elif isinstance(record, MessageRecord):
        body = record.envelope.body
        fields = body if isinstance(body, dict) else msgspec.to_builtins(body)
        kind = fields.get("type")
        terminal = fields.get("status") in TERMINAL
        seen = kind == "GraphRun" and (name == "agent.ticket" or terminal)
        if kind == name or (name in ("agent.noticed", "agent.ticket") and seen):
            run = fields.get("command_id")
            if run:
                yield str(run)
