"""A metric in one line: bars that any terminal shows, within 80 columns."""

from array import array
from pathlib import Path

import pytest
from rich.cells import cell_len

from scenarios.report.bars import BINS, BLOCKS, PLAIN, bar_lines, levels
from scenarios.results import ScenarioResult
from scenarios.stats import Sample
from tests.scenarios.commandline import SMALL, result_of


@pytest.fixture
def one(tmp_path: Path) -> ScenarioResult:
    return result_of(tmp_path)


def bar(text: str) -> str:
    """The bar of a line: behind the name and the lower end."""
    return text[4 + 26 + 9 + 1 :][:BINS]


@pytest.mark.parametrize(
    ("encoding", "characters"),
    [("utf-8", BLOCKS), ("ascii", PLAIN), ("latin-1", PLAIN), (None, PLAIN), ("nonsense", PLAIN)],
)
def test_ascii_where_there_are_no_blocks(encoding: str | None, characters: str) -> None:
    assert levels(encoding) == characters


def test_levels_rise_from_nothing() -> None:
    assert len(BLOCKS) == len(PLAIN)
    assert BLOCKS[0] == PLAIN[0] == " "
    assert PLAIN.isascii()


def test_a_line_a_cell_within_80_columns(one: ScenarioResult) -> None:
    lines = list(bar_lines(one, BLOCKS))
    assert [line.split()[0] for line in lines] == [
        "wait", "5s", "20s", "late", "5s", "20s",
    ]  # fmt: skip
    assert max(map(cell_len, lines)) < 80


def test_a_bar_shows_where_values_are(one: ScenarioResult) -> None:
    one.cells[0].samples["wait"] = Sample(array("d", [0.0] * 99 + [30.0]))
    one.cells[1].samples["wait"] = Sample(array("d", [15.0]))
    _, first, second, *_ = bar_lines(one, BLOCKS)
    assert bar(first) == "█" + " " * (BINS - 2) + "▁", "even one value shows"
    assert bar(second) == " " * 15 + "█" + " " * 14


def test_one_value_alone_is_in_the_middle(one: ScenarioResult) -> None:
    for cell in one.cells:
        cell.samples["wait"] = Sample(array("d", [3.0, 3.0]))
    line = list(bar_lines(one, PLAIN))[1]
    assert bar(line) == " " * 15 + "@" + " " * 14


def test_a_metric_without_values_has_no_line(one: ScenarioResult) -> None:
    for cell in one.cells:
        cell.samples["wait"] = Sample(array("d"), [0])
    assert next(iter(bar_lines(one, PLAIN))).strip() == "late"


def test_long_names_are_cut(tmp_path: Path) -> None:
    swept = '"agent.poll" = ["backoff 2222ms x2 max 30303ms", "every 30s"]'
    text = SMALL.replace('"relay.poll" = ["5s", "20s"]', swept).replace('rows = "relay.poll"', "")
    text = text[: text.index("[[expect]]")]
    lines = list(bar_lines(result_of(tmp_path, text, replications=2), PLAIN))
    assert max(map(cell_len, lines)) < 80
    assert any("... " in line for line in lines)
