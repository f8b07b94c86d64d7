"""The shipped examples hold what they say, and show how to write an actor."""

import ast
from pathlib import Path

import pytest

from scenarios.build import CellRun
from scenarios.contract import check_actor
from scenarios.judge import judge
from scenarios.load import load_plan
from scenarios.metrics import Column
from scenarios.run import run
from scenarios.shipped import shipped
from scenarios.stats import Sample
from scenarios.work import check_determinism

EXAMPLES = {name: path for name, path in shipped().items() if name.startswith("examples/")}
FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "examples"


def test_there_are_examples() -> None:
    assert {"examples/first", "examples/eager_relay"} <= set(EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_holds(path: Path) -> None:
    """Its cells run one after another here, without the runner."""
    plan = load_plan(path)
    samples: dict[tuple[str, str], Sample] = {}
    for cell, scenario in zip(plan.cells, plan.scenarios, strict=True):
        cell_run = CellRun(scenario, scenario.run.seed, cell.label, plan.folder)
        columns = {name: Column() for name in scenario.metrics}
        for replication in range(scenario.run.replications):
            cell_run.simulator.run(replication)
            cell_run.collect(columns, replication)
        for name, column in columns.items():
            samples[name, cell.label] = Sample(column.values, column.counts)

    def lookup(metric: str, _statistic: str, subscript: str | None) -> list[tuple[str, Sample]]:
        cells = [one for one in plan.cells if subscript is None or one.matches(subscript)]
        return [(one.label, samples[metric, one.label]) for one in cells]

    verdicts = {
        (one.expectation, one.verdict)
        for expect in plan.expects
        for one in judge(expect.expectation, lookup)
    }
    assert {verdict for _, verdict in verdicts} == {"pass"}, verdicts


def test_the_eager_relay_is_deterministic() -> None:
    plan = load_plan(EXAMPLES["examples/eager_relay"])
    cell, scenario = plan.cells[1], plan.scenarios[1]
    check_determinism(CellRun(scenario, 1, cell.label, plan.folder), 0)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_users_code_imports_the_facade_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.module in {"__future__", "typing", "pullcord"}
        elif isinstance(node, ast.Import):
            assert [alias.name for alias in node.names] == ["msgspec"]


def test_the_first_scenario_is_short_enough_to_explain() -> None:
    text = EXAMPLES["examples/first"].read_text(encoding="utf-8")
    assert len(text.splitlines()) < 20


def test_the_actor_of_the_page_runs_and_keeps_its_promises(tmp_path: Path) -> None:
    page = (FOLDER.parents[1] / "docs" / "own-actor.md").read_text(encoding="utf-8")
    actor, scenario = (
        page.partition(f"```{language}\n")[2].partition("```")[0] for language in ("python", "toml")
    )
    assert len([line for line in actor.splitlines() if line]) <= 10
    (tmp_path / "my_relay.py").write_text(actor)
    (tmp_path / "own.toml").write_text(scenario)
    built_in, own = run(tmp_path / "own.toml", jobs=1).scenarios[0].cells
    assert own.samples["wait"].mean() > built_in.samples["wait"].mean()
    check_actor("my_relay.py:PatientRelay", "relay", {"poll": "20s"}, folder=tmp_path)


def test_the_page_on_scenario_files_has_the_first_one() -> None:
    page = (FOLDER.parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert EXAMPLES["examples/first"].read_text(encoding="utf-8") in page
