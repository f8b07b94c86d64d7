"""Which replications a report shows, and where it looks."""

from pathlib import Path

import pytest

from logs.record import DropRecord, EventRecord, FaultRecord, Record, TimerRecord
from scenarios.report.moments import Moment, focus_of, moments
from scenarios.report.story import Teller
from scenarios.results import ScenarioResult
from scenarios.runner import NO_OPTIONS
from tests.scenarios.commandline import SMALL, USING, result_of, write_foreign
from tests.scenarios.report.test_strip import FAULTS

FAILING = """
[[expect]]
that = "wait.mean[20s] < 0.01s"
[[expect]]
that = "wait.max[20s] < 0.02s"
[[expect]]
that = "wait.mean[20s] < 0.5 * wait.mean[5s]"
"""


def records_of(one: ScenarioResult, moment: Moment) -> list[Record]:
    story = Teller(NO_OPTIONS, None).tell(one.plan, moment.cell, moment.replication)
    assert story is not None
    return story.records


def test_a_failed_expectation_has_the_one_that_pulls_most(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL + FAILING)
    found = moments(one)
    assert [each.heading for each in found] == ["A failed expectation"] * 2
    worst, other = found
    sample = one.cells[1].samples["wait"]
    rows = dict(one.cells[1].rows("wait"))
    assert worst.cell is one.cells[1]
    assert max(rows[worst.replication]) == sample.ordered[-1]
    assert other.cell is one.cells[0], "the side that it is compared with"
    assert f"--replication {worst.replication}" in worst.command
    assert worst.place(one) == ("small", "relay.poll=20s", worst.replication)


def test_of_a_time_the_run_with_the_largest_is_looked_at(tmp_path: Path) -> None:
    one = result_of(tmp_path, SMALL + FAILING)
    worst = moments(one)[0]
    records = records_of(one, worst)
    (number,), run = focus_of(worst, records)
    end = next(record for record in records if record.n == number)
    assert isinstance(end, EventRecord)
    assert (end.event, end.fields["run"]) == ("run.started", run)
    begin = next(
        record for record in records
        if isinstance(record, EventRecord) and record.event == "run.queued"
        and record.fields["run"] == run
    )  # fmt: skip
    assert (end.t - begin.t) / 1e6 == one.cells[1].samples["wait"].ordered[-1]


def test_where_nothing_failed_it_is_the_slowest(tmp_path: Path) -> None:
    one = result_of(tmp_path)
    (only,) = moments(one)
    top = max(cell.samples["wait"].ordered[-1] for cell in one.cells)
    assert only.heading == "The slowest replication"
    assert top in dict(only.cell.rows("wait"))[only.replication]


def test_without_a_time_it_is_the_first(tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("[metrics.wait]")] + '[metrics.n]\ncount = "run.queued"\n'
    (only,) = moments(result_of(tmp_path, text))
    assert (only.heading, only.replication) == ("The first replication", 0)


def test_a_violation_comes_with_its_proof(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from scenarios.checks import Violation\n\n\ndef never(history):\n"
        "    'Never.'\n    yield Violation(check='never', sentence='it was', records=(9,))\n"
    )
    text = SMALL.replace("replications = 40", 'replications = 4\ncheck = "mine.py:never"')
    one = result_of(tmp_path, text[: text.index("[[expect]]")])
    found = moments(one)
    assert [each.heading for each in found] == ["A violation"] * 2
    assert found[0].records == (9,)
    assert found[0].sentence.startswith("never: it was [records 9]")
    records = records_of(one, found[0])
    focus, run = focus_of(found[0], records)
    assert focus == (9,)
    proof = next(record for record in records if record.n == 9)
    assert not run or run in str(proof)


def test_one_replication_is_shown_once_unless_its_proofs_differ(tmp_path: Path) -> None:
    lines = ["from pullcord import Violation", "def mine(history):", '    "It is."']
    for name, number in (("one", 5), ("two", 7), ("three", 7)):
        lines.append(f"    yield Violation(check={name!r}, sentence='x', records=({number},))")
    (tmp_path / "mine.py").write_text("\n".join(lines))
    text = SMALL.replace("replications = 40", 'replications = 1\ncheck = "mine.py:mine"')
    text = text[: text.index("[sweep.product]")] + text[text.index("[metrics.wait]") :]
    text = text[: text.index("[[table]]")] + '[[expect]]\nthat = "wait.max < 0.001s"\n'
    found = moments(result_of(tmp_path, text))
    assert [each.records for each in found] == [(5,), (7,)]


def test_what_did_not_end_is_looked_at_at_its_end(tmp_path: Path) -> None:
    write_foreign(tmp_path, "raise RuntimeError('no')")
    one = result_of(tmp_path, USING)
    (only,) = moments(one)
    assert only.heading == "A replication in trouble"
    assert "no" in only.sentence
    records = records_of(one, only)
    assert focus_of(only, records)[0] == (records[-1].n,)


def test_without_anything_else_a_fault_is_looked_at(tmp_path: Path) -> None:
    text = SMALL[: SMALL.index("[metrics.wait]")] + '[metrics.n]\ncount = "run.queued"\n' + FAULTS
    one = result_of(tmp_path, text)
    (only,) = moments(one)
    records = records_of(one, only)
    (number,), _ = focus_of(only, records)
    assert isinstance(records[number - 1], FaultRecord | DropRecord)


@pytest.mark.parametrize("records", [[], [TimerRecord(1, 0, "relay", 0, "poll")]])
def test_even_an_empty_replication_has_a_place(tmp_path: Path, records: list[Record]) -> None:
    (only,) = moments(result_of(tmp_path))
    assert focus_of(only, records) == (tuple(record.n for record in records), "")
