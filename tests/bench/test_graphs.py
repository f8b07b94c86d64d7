"""The benchmark of scripts measures what it says, at small sizes."""

import re

import pytest

# The engine is an extra.
pytest.importorskip("_quickjs", reason="quickjs-ng has no wheel for this machine")

from actors.graphs.script import ScriptVmPort
from bench import graphs


def test_the_table_has_every_row_beside_the_prototypes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    graphs.compare(rounds=1, share=0.01)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    for line in lines[2:]:
        numbers = re.findall(r"([\d.e+]+) (us|ms|MB|KB)", line)
        assert len(numbers) == 2, line
        assert numbers[0][1] == numbers[1][1]
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
