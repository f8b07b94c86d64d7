"""What the tests of loading stand on: from a scenario's text to a plan, or to what is told."""

from __future__ import annotations

from pathlib import Path

from scenarios.build import CellRun
from scenarios.load import Plan, load_plan
from scenarios.overrides import parse_override
from scenarios.problems import Problem, ScenarioError

HEAD = 'schema = 1\nname = "tried"\n'
HEAD_LINES = 2
FILE = "tried.toml"


def load(folder: Path, text: str, *sets: str, head: str = HEAD) -> Plan:
    """Return the plan of a scenario that has this text below its head."""
    path = folder / FILE
    path.write_text(head + text, encoding="utf-8")
    return load_plan(path, tuple(map(parse_override, sets)))


def problems(folder: Path, text: str, *sets: str, head: str = HEAD) -> list[Problem]:
    """Return what is wrong with it."""
    try:
        load(folder, text, *sets, head=head)
    except ScenarioError as error:
        return list(error.problems)
    return []


def told(folder: Path, text: str, *sets: str, head: str = HEAD) -> list[str]:
    """Return each problem as `the underlined text: message` and ` / cure`, in their order."""
    return [shown(one) for one in problems(folder, text, *sets, head=head)]


def shown(problem: Problem) -> str:
    """Return a problem in a line: what is underlined, the message, the cure."""
    line = problem.source_line or ""
    marked = line[problem.column - 1 : problem.column - 1 + problem.length_chars]
    place = f"{problem.line - HEAD_LINES} {marked}" if problem.line else problem.path
    return f"{place}: {problem.message}" + (f" / {problem.cure}" if problem.cure else "")


def build(folder: Path, text: str, cell: int = 0) -> CellRun:
    """Return a cell of a scenario, built."""
    plan = load(folder, text)
    return CellRun(plan.scenarios[cell], plan.run.seed, plan.cells[cell].label, plan.folder)


def rows(folder: Path, text: str, replication: int = 0) -> dict[str, list[float]]:
    """Return the metrics' rows of one replication."""
    cell = build(folder, text)
    cell.simulator.run(replication)
    return {name: metric.rows() for name, metric in cell.metrics.items()}
