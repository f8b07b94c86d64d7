"""Plans: their cells, what these share, overrides, digests; and how long loading takes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from scenarios.cell import SECTIONS
from scenarios.load import cell_data, column_parts, load_plan
from scenarios.problems import ScenarioError
from tests.scenarios.loading import load, problems, told

PUBLISHED = Path(__file__).resolve().parents[2] / "scenarios" / "published"

CALLS = '[metrics.calls]\ncount = "GetGraphRun"\n'
SWEEP = '[sweep.product]\n"agent.poll" = ["every 2s", "every 5s"]\n'


# Overrides


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("relay.poll=5", '--set relay.poll: "poll": 5 has no unit: write "5s" for seconds'),
        (
            "relay.pol=5s",
            '--set relay.pol: unknown key "pol" in [relay] / did you mean "poll"?',
        ),
        ("rely.poll=5s", '--set: "rely.poll" can\'t be set / did you mean "relay.poll"?'),
        (
            "agent.poll=never",
            (
                '--set: "agent.poll" is swept in this file '
                '/ choose a cell with --cell "agent.poll=VALUE", or change the sweep'
            ),
        ),
        ("run.replications=0", '--set run.replications: "replications" must be at least 1'),
        ("agent.session=x", '--set agent.session: there is no session "x" / there is demo'),
    ],
)
def test_an_override_is_its_own_place(tmp_path: Path, override: str, expected: str) -> None:
    assert told(tmp_path, SWEEP, override) == [expected]


def test_overrides_are_part_of_the_plan(tmp_path: Path) -> None:
    plan = load(tmp_path, '[relay]\npoll = "20s"\n', "relay.poll=5s", "run.replications=3")
    assert plan.run.replications == 3
    assert [one.config.poll_us for one in plan.scenarios[0].cast if one.kind == "relay"] == [
        5_000_000
    ]
    assert plan.overrides == {"relay.poll": "5s", "run.replications": 3}
    assert plan.digest != load(tmp_path, '[relay]\npoll = "20s"\n').digest


# Plans


def test_a_plan_of_one_cell(tmp_path: Path) -> None:
    plan = load(tmp_path, "")
    assert [cell.label for cell in plan.cells] == [""]
    assert plan.name == plan.top.name == "tried"
    assert plan.folder == tmp_path
    assert plan.foreign == ()


def test_json_is_as_good_as_toml(tmp_path: Path) -> None:
    path = tmp_path / "tried.json"
    path.write_text(
        '{"schema": 1, "name": "tried", "relay": {"poll": "5s"},\n'
        ' "sweep": {"product": {"agent.runs": [1, 2]}}}'
    )
    plan = load_plan(path)
    assert [cell.label for cell in plan.cells] == ["agent.runs=1", "agent.runs=2"]
    path.write_text('{"schema": 1, "name": "tried", "relay": {"pol": "5s"}}')
    with pytest.raises(ScenarioError) as error:
        load_plan(path)
    assert [(one.line, one.column) for one in error.value.problems] == [(1, 42)]


def test_cells_share_what_no_sweep_touches(tmp_path: Path) -> None:
    plan = load(tmp_path, SWEEP + CALLS + '[relay]\npoll = "5s"\n')
    first, second = plan.scenarios
    assert first.metrics is second.metrics
    assert first.run is second.run
    for one, other in zip(first.cast, second.cast, strict=True):
        assert (one.config is other.config) == (one.kind != "agent")
    data = [cell_data(plan.data, cell) for cell in plan.cells]
    assert data[0]["relay"] is data[1]["relay"] is plan.data["relay"]
    assert [one["agent"] for one in data] == [{"poll": "every 2s"}, {"poll": "every 5s"}]
    assert "agent" not in plan.data
    assert "sweep" not in data[0]


def test_the_file_is_not_changed_by_its_cells_and_overrides(tmp_path: Path) -> None:
    text = '[[agent]]\nname = "a"\npoll = "never"\n[sweep.product]\n"agent.runs" = [1, 2]\n'
    plan = load(tmp_path, text, "agent.poll=every 9s")
    assert plan.data["agent"] == [{"name": "a", "poll": "every 9s"}]
    assert cell_data(plan.data, plan.cells[1])["agent"][0]["runs"] == 2


def test_digest_depends_on_data_and_on_actors_of_ones_own(tmp_path: Path) -> None:
    actor = tmp_path / "own.py"
    actor.write_text("from pullcord import Relay\nclass Own(Relay): pass\n")
    text = '[relay]\nuse = "own.py:Own"\n'
    plan = load(tmp_path, text)
    assert plan.foreign == ("own.py:Own",)
    before = plan.digest
    assert load(tmp_path, f"# a comment\n{text}").digest == before
    actor.write_text("from pullcord import Relay\nclass Own(Relay):\n    seen = 1\n")
    assert load(tmp_path, text).digest != before


def test_every_section_is_decoded(tmp_path: Path) -> None:
    for section in SECTIONS:
        told_of = told(tmp_path, f"{section} = 5\n")
        assert len(told_of) == 1, section
        assert told_of[0].startswith("1 5: "), section


@pytest.mark.parametrize(
    ("column", "parts"),
    [
        ("late.p99.9", ("late", "p99.9")),
        ("late.mean", ("late", "mean")),
        ("late.p95", ("late", "p95")),
        ("late", ("", "late")),
        ("late.", ("late", "")),
    ],
)
def test_parts_of_a_column(column: str, parts: tuple[str, str]) -> None:
    assert column_parts(column) == parts


def test_loading_is_fast() -> None:
    """All published files take some 25 ms; ten times that would be felt at each command."""
    files = sorted(PUBLISHED.glob("*.toml"))
    for path in files:
        load_plan(path)
    begun = time.process_time()
    cells = sum(len(load_plan(path).cells) for path in files)
    assert cells > 20
    assert time.process_time() - begun < 0.25


def test_a_sweep_in_which_every_cell_is_wrong_is_told_soon(tmp_path: Path) -> None:
    lists = ", ".join(f'"{number}x"' for number in range(40))
    begun = time.process_time()
    found = problems(
        tmp_path, f'[sweep.product]\n"relay.poll" = [{lists}]\n"agent.start" = [{lists}]\n'
    )
    assert len(found) == 80
    assert time.process_time() - begun < 3
