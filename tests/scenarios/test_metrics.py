"""Metrics of worlds whose outcome is known to the second."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.build import CellRun
from scenarios.metrics import Column
from tests.scenarios.loading import build, load, rows

# Queued at 0, started at 5, ended at 30; asked for at 7, 14, 21, 28, 35, noticed at 35.
WORLD = """
[relay]
phase = "5s"
[engine]
duration = "25s"
tokens = 1200
[agent]
poll = "every 7s"
"""


def metric(folder: Path, keys: str, more: str = "", world: str = WORLD) -> list[float]:
    """Return the rows of one metric; `more` is added to the agent's table or begins others."""
    return rows(folder, f"{world}{more}\n[metrics.m]\n{keys}\n")["m"]


REPLICATION = '\nper = "replication"'


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ('count = "GetGraphRun"', [5]),
        ('count = "GraphRun"', [6]),
        ('count = "GraphRun[status=running]"', [4]),
        ('count = "GraphRun[status=completed]"', [1]),
        ('count = "GraphRun[status=failed]"', [0]),
        ('count = "run.queued"', [1]),
        ('count = "run.terminal"', [1]),
        ('count = "run.terminal[status=failed]"', [0]),
        ('count = "run.late"', [0]),
        ('count = "agent.ticket"', [1]),
        ('count = "agent.noticed"', [1]),
        ('count = "agent.noticed[status=failed]"', [0]),
        (f'count = "GetGraphRun"{REPLICATION}', [5]),
        (f'count = "Sync"{REPLICATION}', [1]),
        (f'count = "run.terminal[status=failed]"{REPLICATION}', [0]),
        (f'count = "agent.noticed"{REPLICATION}', [1]),
        ('value = "run.terminal.tokens"', [1200]),
        ('value = "run.terminal.truncated"', [0]),
        ('value = "run.terminal[status=failed].tokens"', []),
        ('value = "GraphRun.total_tokens"', [0, 0, 0, 0, 0, 1200]),
        ('value = "GraphRun.poll_after_us"', []),
        ('from = "run.queued"\nto = "run.started"', [5]),
        ('from = "run.terminal"\nto = "agent.noticed"', [5]),
        ('from = "agent.ticket"\nto = "agent.noticed[status=completed]"', [35]),
        ('from = "agent.ticket"\nto = "agent.noticed[status=failed]"', []),
        ('from = "GetGraphRun"\nto = "GetGraphRun"', [0]),
        ('from = "GraphRun[status=completed]"\nto = "agent.noticed"', [0]),
        ('from = "agent.ticket"\nto = "GraphRun"', [0]),
        ('from = "run.terminal"\nto = "run.terminal"', [0]),
        ('from = "run.terminal"\nto = "run.started"', []),
        ('from = "GetGraphRun"\nto = "run.terminal"', [23]),
        (f'from = "start"\nto = "GetGraphRun"{REPLICATION}', [7]),
        (f'from = "start"\nto = "GetGraphRun"{REPLICATION}\ntake = "last"', [35]),
        (f'from = "GetGraphRun"\nto = "GetGraphRun"{REPLICATION}\ntake = "last"', [28]),
        (f'from = "run.started"\nto = "GetGraphRun"{REPLICATION}', [2]),
        (f'from = "start"\nto = "run.late"{REPLICATION}', []),
        (f'from = "run.late"\nto = "run.terminal"{REPLICATION}', []),
    ],
)
def test_a_metric_of_one_run(tmp_path: Path, keys: str, expected: list[float]) -> None:
    assert metric(tmp_path, keys) == expected


def test_rows_are_the_same_in_every_replication(tmp_path: Path) -> None:
    """What one replication saw is gone in the next."""
    keys = (
        'count = "GetGraphRun"',
        'from = "run.queued"\nto = "agent.noticed"',
        f'count = "Sync"{REPLICATION}',
        f'from = "start"\nto = "run.terminal"{REPLICATION}',
        'value = "run.terminal.tokens"',
        'count = "agent.ticket"',
    )
    tables = "".join(f"[metrics.m{number}]\n{text}\n" for number, text in enumerate(keys))
    cell = build(tmp_path, WORLD + tables)
    seen = []
    for replication in range(3):
        cell.simulator.run(replication)
        seen.append({name: one.rows() for name, one in cell.metrics.items()})
    assert seen[0] == seen[1] == seen[2]
    assert list(seen[0].values()) == [[5], [35], [1], [30], [1200], [1]]


def test_a_row_is_a_run_in_the_order_of_queueing(tmp_path: Path) -> None:
    more = 'runs = 3\nevery = "10s"\n'
    assert metric(tmp_path, 'count = "GetGraphRun"', more) == [5, 9, 11]
    assert metric(tmp_path, 'from = "run.queued"\nto = "engine.started"', more) == [5, 35, 50]
    assert metric(tmp_path, f'count = "GetGraphRun"{REPLICATION}', more) == [25]
    first = f'from = "run.queued"\nto = "run.terminal"{REPLICATION}'
    assert metric(tmp_path, first, more) == [30]
    assert metric(tmp_path, f'{first}\ntake = "last"', more) == [95]


def test_dropped_messages_are_counted_since_somebody_sent_them(tmp_path: Path) -> None:
    """The third call of 7, 14, 21 and 31 s is lost, and repeated when its time is out."""
    fault = '[[fault]]\nkind = "drop"\nmessage = "{}"\nnth = {}\n'
    more = fault.format("GetGraphRun", 3)
    assert metric(tmp_path, 'count = "GetGraphRun"', more) == [4]
    assert metric(tmp_path, f'count = "GetGraphRun"{REPLICATION}', more) == [4]
    more = fault.format("GraphRun", 2)
    assert metric(tmp_path, 'count = "GraphRun[status=running]"', more) == [3]
    assert metric(tmp_path, f'count = "GraphRun[status=running]"{REPLICATION}', more) == [3]
    everything = '[[fault]]\nkind = "drop"\nmessage = "FleetFinished"\nnth = 1\n'
    sent = metric(tmp_path, f'count = "FleetFinished"{REPLICATION}', everything)
    assert sent == [metric(tmp_path, f'count = "FleetFinished"{REPLICATION}')[0] + 1]


def test_a_run_that_never_matched_has_a_row_of_zero(tmp_path: Path) -> None:
    more = 'runs = 2\n[run]\nuntil = "1s"\n'
    assert metric(tmp_path, 'count = "run.terminal"', more) == [0, 0]
    assert metric(tmp_path, 'count = "GetGraphRun"', more) == [0, 0]
    assert metric(tmp_path, 'from = "run.queued"\nto = "run.terminal"', more) == []


def test_events_of_agents_happen_once_a_run_whoever_asks(tmp_path: Path) -> None:
    world = WORLD.replace("[agent]", "[agent]\ncount = 3")
    assert metric(tmp_path, 'count = "agent.ticket"', world=world) == [1, 1, 1]
    assert metric(tmp_path, f'count = "agent.noticed"{REPLICATION}', world=world) == [3]
    assert metric(tmp_path, 'from = "run.terminal"\nto = "agent.noticed"', world=world) == [5, 1, 4]


def test_several_relays(tmp_path: Path) -> None:
    world = WORLD.replace("[relay]", "[relay]\ncount = 2")
    more = "runs = 2"
    assert metric(tmp_path, 'count = "GetGraphRun"', more, world) == [5, 5]
    assert metric(tmp_path, f'count = "Sync"{REPLICATION}', more, world) == [2]
    assert metric(tmp_path, f'count = "run.queued"{REPLICATION}', more, world) == [2]


def test_a_guessed_run_is_nobodys(tmp_path: Path) -> None:
    """An agent that a ticket leaked to asks for it, and for one that nobody has."""
    more = 'leak_to = "agent-2"\n[[agent]]\nruns = 0\n'
    world = WORLD.replace("[agent]", "[[agent]]")
    assert metric(tmp_path, 'count = "GetGraphRun"', more, world) == [6]
    assert metric(tmp_path, f'count = "GetGraphRun"{REPLICATION}', more, world) == [7]
    assert metric(tmp_path, 'count = "GraphRun"', more, world) == [6]


def test_several_metrics_see_the_same(tmp_path: Path) -> None:
    tables = "".join(
        f"[metrics.{name}]\n{keys}\n"
        for name, keys in [
            ("a", 'from = "agent.ticket"\nto = "agent.noticed"'),
            ("b", 'count = "agent.noticed"'),
            ("c", 'count = "GraphRun"'),
            ("d", f'count = "GraphRun"{REPLICATION}'),
            ("e", 'count = "run.queued"'),
        ]
    )
    found = rows(tmp_path, WORLD + tables)
    assert found == {"a": [35], "b": [1], "c": [6], "d": [6], "e": [1]}


# Columns


def test_a_column_of_one_row_a_replication_needs_no_counts() -> None:
    column = Column()
    for replication in range(3):
        column.add([float(replication)], replication)
    assert list(column.values) == [0, 1, 2]
    assert column.counts is None


def test_a_column_of_other_rows_counts_them() -> None:
    column = Column()
    for before, values in enumerate([[1.0], [2.0], [], [3.0, 4.0], [5.0]]):
        column.add(values, before)
    assert list(column.values) == [1, 2, 3, 4, 5]
    assert column.counts is not None
    assert list(column.counts) == [1, 1, 0, 2, 1]


def test_collect_adds_all_metrics_rows(tmp_path: Path) -> None:
    plan = load(
        tmp_path, WORLD + '[metrics.a]\ncount = "GetGraphRun"\n[metrics.b]\ncount="run.late"'
    )
    cell = CellRun(plan.scenarios[0], 1, "", plan.folder)
    columns = {name: Column() for name in cell.metrics}
    for replication in range(2):
        cell.simulator.run(replication)
        cell.collect(columns, replication)
    assert {name: list(one.values) for name, one in columns.items()} == {"a": [5, 5], "b": [0, 0]}
