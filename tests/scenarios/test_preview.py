"""What a run would do, told from a few replications."""

import math
from pathlib import Path

import pytest

from scenarios.load import load_plan
from scenarios.preview import PILOT, preview
from scenarios.runner import Options
from scenarios.stats import Z_95, standard_error
from tests.scenarios.commandline import SMALL, plan_of, result_of, write_foreign

LARGE = SMALL.replace("replications = 40", "replications = 6400").replace(
    'that = "wait.count[5s] equals 80"', 'that = "wait.mean < 9s"'
)


def test_cells_replications_and_time(tmp_path: Path) -> None:
    found = preview(plan_of(tmp_path, LARGE), Options(jobs=2))
    assert [(cell.label, cell.replications) for cell in found.cells] == [
        ("relay.poll=5s", 6400),
        ("relay.poll=20s", 6400),
    ]
    total_s = sum(cell.seconds_each * 6400 for cell in found.cells)
    assert math.isclose(found.seconds, total_s / 2)
    assert 0.01 < total_s < 60
    assert found.pilot.cells[0].replications == PILOT


def test_actors_are_shown_with_the_keys_that_differ(tmp_path: Path) -> None:
    actors = dict(preview(plan_of(tmp_path), Options()).actors)
    assert actors["relay"] == "poll = 5s"
    assert actors["agent"] == "runs = 2, poll = every 30s"
    assert actors["engine"] == "duration = uniform(5s, 40s)"
    assert actors["server"] == ""


def test_intervals_shrink_by_the_root_of_the_sample(tmp_path: Path) -> None:
    found = preview(plan_of(tmp_path, LARGE), Options())
    widths = {(one.that, one.cell): one.half_width for one in found.widths}
    pilot = result_of(tmp_path, SMALL.replace("replications = 40", f"replications = {PILOT}"))
    error = standard_error(pilot.cells[0].samples["wait"], "mean")
    assert error is not None
    expected = Z_95 * error / 10
    assert widths["wait.mean < 9s", "relay.poll=5s"] == pytest.approx(expected)
    assert ("wait.mean < 9s", "relay.poll=20s") in widths


def test_a_sum_grows_and_a_maximum_is_as_it_is(tmp_path: Path) -> None:
    text = LARGE + "[[expect]]\nthat = 'wait.sum[5s] < 9h'\n[[expect]]\nthat = 'wait.sum < 9h'\n"
    found = preview(plan_of(tmp_path, text), Options())
    widths = {(one.that, one.cell): one.half_width for one in found.widths}
    pilot = result_of(tmp_path, SMALL.replace("replications = 40", f"replications = {PILOT}"))
    error = standard_error(pilot.cells[0].samples["wait"], "sum")
    assert error is not None
    assert widths["wait.sum[5s] < 9h", "relay.poll=5s"] == pytest.approx(Z_95 * error * 10)
    assert widths["wait.max <= 100s", "relay.poll=5s"] == 0


def test_only_chosen_cells_count(tmp_path: Path) -> None:
    found = preview(plan_of(tmp_path), Options(cell="20s"))
    assert [cell.label for cell in found.cells] == ["relay.poll=20s"]
    assert {one.cell for one in found.widths} == {"relay.poll=20s"}


def test_trouble_in_the_pilot_is_passed_on(tmp_path: Path) -> None:
    found = preview(load_plan(write_foreign(tmp_path, "1 / 0")), Options())
    assert found.widths == ()
    assert [trouble.kind for _, trouble in found.pilot.troubles] == ["failed"]
