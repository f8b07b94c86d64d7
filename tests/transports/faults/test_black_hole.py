"""Black hole: it takes everything and passes nothing, and may close in the end."""

from __future__ import annotations

from tests.contracts.byte_fault import ScenarioByteFaultContract, ends
from transports.faults.black_hole import BlackHole
from transports.faults.byte_fault import End, Pause


class TestBlackHole(ScenarioByteFaultContract):
    """The suite, and the silence."""

    kind = BlackHole
    keeps = False

    def test_nothing_passes(self) -> None:
        bench = self.bench()
        assert bench.carry([b"abc", b"def"]) == ([], None)
        assert bench.fired == 2

    def test_an_end_waits_until_it_heals(self) -> None:
        bench = self.bench()
        assert ends(bench.stage) == [Pause(None)]
        assert bench.fired == 1

    def test_it_closes_after_its_time(self) -> None:
        assert self.bench().stage.due_us is None
        bench = self.bench(close="3s")
        assert bench.stage.due_us == 3_000_000
        assert bench.stage.on_due() is End.CLOSE
        assert bench.fired == 1
