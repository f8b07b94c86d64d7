"""The benchmark of scripts measures what it says, at small sizes."""

import re

import pytest

# The engine is an extra.
pytest.importorskip("_quickjs", reason="quickjs-ng has no wheel for this machine")

from actors.graphs.script import ScriptVmPort
from bench import graph_runs, graphs


def test_the_table_has_every_row_beside_the_prototypes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    graphs.compare(rounds=1, share=0.01)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    for line in lines[2:]:
        numbers = re.findall(r" ([\d.e+-]+) (us|ms|MB|KB|s)\b", line)
        assert len(numbers) == (1 if "runs at once" in line else 2), line
        assert len({unit for _, unit in numbers}) == 1
        assert float(numbers[0][0]) >= 0


@pytest.mark.parametrize("source", [graphs.PARALLEL, graphs.ONE_BY_ONE])
def test_each_way_calls_as_many_agents_as_it_says(source: str) -> None:
    port = ScriptVmPort()
    vm = port.open(graphs.LIMITS)
    turn = vm.start(source, 7, graphs.SEED, graphs.STATE)
    calls = 0
    while turn.finished is None:
        calls += len(turn.requests)
        turn = vm.settle(graphs.answer(turn), graphs.STATE)
    assert (calls, turn.finished.value) == (7, 7)


@pytest.mark.parametrize(("runs", "agents"), [(1, 300), (20, 3)])
def test_so_many_runs_of_so_many_agents_are_simulated(runs: int, agents: int) -> None:
    assert graph_runs.simulated_s(runs, agents) > 0


@pytest.mark.parametrize("agents", [5, 0])
def test_a_run_is_cancelled_and_ends(agents: int) -> None:
    assert graph_runs.cancel_ms(agents) > 0
