"""ECDFs: panels that share their axes, curves that rise to 1, thresholds that are named."""

from array import array
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scenarios.report.ecdf import HEIGHT, THRESHOLDS_LIMIT, panels, thresholds
from scenarios.results import CellResult, ScenarioResult
from scenarios.stats import Sample
from tests.scenarios.commandline import SMALL, result_of
from tests.scenarios.report.drawings import check, path_points, rising, texts, tree

MORE = """
[[expect]]
that = "wait.p95[20s] < 19.5s"
[[expect]]
that = "wait.sum > 0"
[[expect]]
that = "wait.median[5s] < 0.5 * wait.median[20s]"
[[expect]]
that = "wait.mean[20s] equals 10"
[[expect]]
that = "wait.mean[20s] agrees with 10.0"
"""


@pytest.fixture
def one(tmp_path: Path) -> ScenarioResult:
    return result_of(tmp_path, SMALL + MORE)


def curve(svg: str) -> list[tuple[float, float]]:
    return path_points(next(p.attrib["d"] for p in tree(svg).iter() if p.get("class") == "c"))


def put(cell: CellResult, metric: str, values: list[float]) -> None:
    cell.samples[metric] = Sample(array("d", values))


def test_a_panel_a_cell_with_one_axis(one: ScenarioResult) -> None:
    found = panels(one, "wait", 12)
    assert [panel.cell for panel in found] == ["relay.poll=5s", "relay.poll=20s"]
    axes = [[box.text for box in texts(panel.svg) if box.text.endswith(" s")] for panel in found]
    assert axes[0] == axes[1]
    assert len(axes[0]) >= 2
    for panel in found:
        check(panel.svg)


def test_a_curve_rises_from_nothing_to_all(one: ScenarioResult) -> None:
    for metric in ("wait", "late"):
        for panel in panels(one, metric, 12):
            xs, ys = zip(*curve(panel.svg), strict=True)
            assert rising(list(xs))
            assert rising([-y for y in ys])
            foot, top = ys[0], ys[-1]
            assert foot - top == HEIGHT - 30


def test_half_of_the_values_lie_below_the_median(one: ScenarioResult) -> None:
    put(one.cells[0], "wait", [float(n) for n in range(1, 101)])
    put(one.cells[1], "wait", [0.0, 100.0])
    points = curve(panels(one, "wait", 1)[0].svg)
    foot, top = points[0][1], points[-1][1]
    left, right = 40.0, 276.0
    middle = (left + right) / 2
    height = [y for x, y in points if x <= middle][-1]
    assert (foot - height) / (foot - top) == pytest.approx(0.5, abs=0.02)


def test_a_long_tail_does_not_flatten_the_rest(one: ScenarioResult) -> None:
    put(one.cells[0], "wait", [*(float(n % 10) for n in range(999)), 5000.0])
    put(one.cells[1], "wait", [1.0, 2.0])
    found = panels(one, "wait", 12)
    assert "max 83.33 min" in found[0].words
    assert "10 s" in {box.text for box in texts(found[0].svg)}


def test_only_so_many_panels(one: ScenarioResult) -> None:
    assert len(panels(one, "wait", 1)) == 1
    assert panels(one, "wait", 0) == []


def test_a_cell_without_a_value_has_no_panel(one: ScenarioResult) -> None:
    put(one.cells[0], "wait", [])
    assert [panel.cell for panel in panels(one, "wait", 12)] == ["relay.poll=20s"]


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_values_at_all_keep_to_the_box(one: ScenarioResult, values: list[float]) -> None:
    for cell in one.cells:
        put(cell, "wait", values)
    for metric in ("wait", "late"):
        for panel in panels(one, metric, 12):
            check(panel.svg)


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [-4.0, -4.0], [-2.0, 5.0], [1e-9, 1e9]])
def test_any_values_keep_to_the_box(one: ScenarioResult, values: list[float]) -> None:
    for cell in one.cells:
        put(cell, "wait", values)
    for panel in panels(one, "wait", 12):
        check(panel.svg)


def test_thresholds_are_those_of_the_cell(one: ScenarioResult) -> None:
    small, large = (thresholds(one, "wait", cell) for cell in one.cells)
    assert [each.text for each in small] == ["max <= 100s", "median < 0.5 * wait.median[20s]"]
    assert small[1].at == one.cells[1].samples["wait"].ordered[39] / 2
    assert [each.text for each in large] == ["max <= 100s", "p95 < 19.5s", "mean equals 10"]
    assert len(large) == THRESHOLDS_LIMIT
    assert thresholds(one, "late", one.cells[0]) == []


def test_a_threshold_is_a_line_with_its_words(one: ScenarioResult) -> None:
    for cell in one.cells:
        put(cell, "wait", [float(n) for n in range(21)])
    svg = panels(one, "wait", 12)[1].svg
    lines = [part for part in tree(svg).iter() if part.get("class") == "w"]
    assert len(lines) == 2
    assert "max <= 100s, beyond the axis" in [box.text for box in texts(svg)]
