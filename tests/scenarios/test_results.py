"""What the cells gave: joined in order whatever the ranges were, judged, described."""

import random
import re
from array import array
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.load import Plan
from scenarios.results import (
    CellResult,
    Exit,
    Results,
    ScenarioResult,
    described,
    encoded,
    exit_of,
    worst,
)
from scenarios.runner import Options, Runner
from scenarios.stats import Sample
from scenarios.work import Rows, Trouble, packed
from tests.scenarios.commandline import SMALL, plan_of, result_of

FAULTY = (
    SMALL
    + """
[[fault]]
kind = "drop"
name = "lossy"
message = "Sync"
nth = 1
"""
)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("plan"))


def rows_of(table: list[list[float]], first: int, last: int) -> Rows:
    """The rows of a range of replications; counts are left out where each has one row."""
    part = table[first:last]
    counts = [len(rows) for rows in part]
    return Rows(
        first=first,
        last=last,
        values={
            "wait": packed(array("d", [value for rows in part for value in rows])),
            "late": packed(array("d", range(first, last))),
        },
        counts={
            "wait": None if set(counts) <= {1} else packed(array("I", counts)),
            "late": None,
        },
        fired={},
        seconds=0.0,
    )


@given(
    table=st.lists(st.lists(st.floats(0, 9), max_size=3), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 11)),
    seed=st.integers(0, 99),
)
def test_rows_are_joined_in_order_whatever_the_ranges_were(
    plan: Plan, table: list[list[float]], cuts: set[int], seed: int
) -> None:
    whole = CellResult(plan, 0)
    whole.add(rows_of(table, 0, len(table)))
    edges = sorted({0, len(table), *(cut for cut in cuts if cut < len(table))})
    ranges = list(pairwise(edges))
    random.Random(seed).shuffle(ranges)
    joined = CellResult(plan, 0)
    for first, last in ranges:
        joined.add(rows_of(table, first, last))
    assert joined.digest() == whole.digest()
    assert [list(rows) for _, rows in joined.rows("wait")] == table
    assert joined.samples["wait"].replications == len(table)
    assert list(joined.samples["late"].values) == list(range(len(table)))


def test_digests_tell_values_counts_and_names_apart(plan: Plan) -> None:
    tables: list[list[list[float]]] = [
        [[1.0], [2.0]], [[1.0, 2.0], []], [[], [1.0, 2.0]], [[2.0], [1.0]]
    ]  # fmt: skip
    digests = set()
    for index in (0, 1):
        for table in tables:
            cell = CellResult(plan, index)
            cell.add(rows_of(table, 0, 2))
            digests.add(cell.digest())
    assert len(digests) == 8


def test_a_replication_alone_keeps_its_number(plan: Plan) -> None:
    cell = CellResult(plan, 0, first=7)
    cell.add(msgspec.structs.replace(rows_of([[3.0]], 0, 1), first=7, last=8))
    assert [number for number, _ in cell.rows("wait")] == [7]


def trouble(replication: int, kind: str = "failed", foreign: bool = True) -> Trouble:
    return Trouble(replication=replication, kind=kind, sentence="s", foreign=foreign)


def test_the_first_trouble_is_told(plan: Plan) -> None:
    cell = CellResult(plan, 0)
    for number in (5, 3, 9):
        cell.add(
            msgspec.structs.replace(
                rows_of([], 0, 0), first=number, last=number, trouble=trouble(number)
            )
        )
    assert cell.trouble == trouble(3)
    cell.discard()
    assert cell.replications == 0
    assert ScenarioResult(plan, [cell]).troubles == []


@pytest.mark.parametrize(
    ("kind", "foreign", "code"),
    [
        ("failed", True, Exit.FAILED),
        ("failed", False, Exit.BUG),
        ("stuck", True, Exit.FAILED),
        ("stuck", False, Exit.BUG),
        ("not deterministic", True, Exit.USAGE),
        ("not deterministic", False, Exit.BUG),
        ("no number", False, Exit.USAGE),
        ("no actor", True, Exit.USAGE),
        ("limit reached", False, Exit.FAILED),
        ("would sleep for ever", False, Exit.FAILED),
    ],
)
def test_exit_codes_of_trouble(kind: str, foreign: bool, code: Exit) -> None:
    assert exit_of(trouble(0, kind, foreign)) is code


def test_the_worst_exit_code_wins() -> None:
    order = [Exit.BUG, Exit.INTERRUPTED, Exit.USAGE, Exit.DIVERGED, Exit.FAILED]
    order += [Exit.INCONCLUSIVE, Exit.OK]
    assert [int(code) for code in order] == [70, 130, 2, 4, 1, 3, 0]
    for index, code in enumerate(order):
        assert worst(order[index:][::-1]) is code
    assert worst([]) is Exit.OK


def test_results_are_judged_and_described(tmp_path: Path) -> None:
    one = result_of(tmp_path)
    assert [judgement.verdict for _, judgement in one.judgements] == ["pass"] * 3
    results = Results([one], None)
    assert results.passed
    assert results.replications == 80
    assert results["small"] is one
    data = msgspec.json.decode(encoded(results))
    assert list(data) == ["exit", "replications", "scenarios"]
    cells = data["scenarios"][0]["cells"]
    assert [cell["label"] for cell in cells] == ["relay.poll=5s", "relay.poll=20s"]
    assert cells[0]["values"] == {"relay.poll": "5s"}
    assert cells[0]["metrics"]["wait"]["count"] == 80
    assert data["scenarios"][0]["digest"] == one.digest
    assert len(data["scenarios"][0]["expectations"]) == 3
    results.interrupted = "interrupted"
    assert results.exit is Exit.INTERRUPTED


def test_expectations_of_cells_that_were_not_run_are_left_out(tmp_path: Path) -> None:
    one = result_of(tmp_path, cell="20s")
    assert [judgement.cell for _, judgement in one.judgements] == ["relay.poll=20s"]
    assert one.exit is Exit.OK


def test_one_replication_of_many_is_not_judged(tmp_path: Path) -> None:
    assert result_of(tmp_path, replication=3).judgements == []
    single = SMALL.replace("replications = 40", "replications = 1")
    assert result_of(tmp_path, single, replication=0).judgements


def test_a_fault_that_does_not_fire_makes_its_cell_inconclusive(tmp_path: Path) -> None:
    fired = result_of(tmp_path, FAULTY)
    assert fired.quiet == {}
    assert fired.exit is Exit.OK
    never = result_of(tmp_path, FAULTY.replace("nth = 1", "nth = 10000"))
    assert never.quiet == {
        f"relay.poll={poll}": "fault lossy did not fire in 40 of 40 replications"
        for poll in ("5s", "20s")
    }
    assert {judgement.verdict for _, judgement in never.judgements} == {"inconclusive"}
    assert never.exit is Exit.INCONCLUSIVE


def test_a_fault_that_does_not_fire_is_told_without_an_expectation_too(tmp_path: Path) -> None:
    text = FAULTY.replace("nth = 1", "nth = 10000")
    bare = re.sub(r"(?ms)^\[\[expect\]\]\n.*?(?=^\[|\Z)", "", text)
    assert "[[expect]]" not in bare
    never = result_of(tmp_path, bare)
    assert (never.judgements, never.exit) == ([], Exit.INCONCLUSIVE)


def test_a_run_that_was_cut_short_shows_nothing_of_its_faults(tmp_path: Path) -> None:
    text = FAULTY.replace("nth = 1", "nth = 10000")
    assert result_of(tmp_path, text, replication=0).quiet == {}
    cut = result_of(tmp_path, text)
    assert cut.quiet, "a whole run shows it"
    cut.complete = False
    del cut.quiet  # as if it had not been asked for yet
    assert cut.quiet == {}


def test_the_quiet_cell_is_named_also_when_it_is_the_only_one_run(tmp_path: Path) -> None:
    swept = SMALL.replace('"relay.poll" = ["5s", "20s"]', '"fault.lossy.nth" = [1, 10000]')
    text = swept.replace("[relay.poll]", "").replace('rows = "relay.poll"', "")
    text = text.replace('that = "wait.count[5s] equals 80"', 'that = "wait.count equals 80"')
    text += FAULTY.removeprefix(SMALL)
    assert result_of(tmp_path, text, cell="1").quiet == {}
    assert list(result_of(tmp_path, text, cell="10000").quiet) == ["fault.lossy.nth=10000"]


def test_a_probabilistic_fault_fires_at_least_so_often(tmp_path: Path) -> None:
    text = FAULTY.replace("nth = 1", "probability = 0.001\nmin_fired = 100000")
    assert "fired" in next(iter(result_of(tmp_path, text).quiet.values()))


def test_the_digest_of_a_scenario_depends_on_every_cell(plan: Plan) -> None:
    digests = set()
    for first, second in ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0)):
        cells = [CellResult(plan, index) for index in (0, 1)]
        for cell, amount in zip(cells, (first, second), strict=True):
            cell.add(rows_of([[amount]], 0, 1))
        digests.add(ScenarioResult(plan, cells).digest)
    assert len(digests) == 3


def test_a_sample_without_values_has_no_mean() -> None:
    assert described(Sample([], [0, 0])) == {"count": 0, "sum": 0}


def test_a_scenario_in_trouble_is_not_judged(tmp_path: Path) -> None:
    text = SMALL.replace("[run]", '[run]\nlimit = "3s"')
    runner = Runner([plan_of(tmp_path, text)], Options(jobs=1), None)
    one = runner.run().scenarios[0]
    assert not one.complete
    assert one.judgements == []
    assert [found.replication for _, found in one.troubles] == [0]
    assert one.cells[1].replications == 0
