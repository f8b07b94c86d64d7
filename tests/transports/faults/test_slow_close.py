"""Slow close: the end of the stream is late, and nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.contracts.byte_fault import ByteFaultContract, ends
from transports.faults.byte_fault import Pause, Piece
from transports.faults.slow_close import SlowClose


class TestSlowClose(ByteFaultContract):
    """The suite, and the delay of the end."""

    kind = SlowClose
    fields: ClassVar[dict[str, Any]] = {"delay": "2s"}

    def test_bytes_pass_at_once(self) -> None:
        bench = self.bench()
        assert bench.steps(b"abc", 5) == [Piece(b"abc", 5)]
        assert bench.fired == 0

    def test_the_end_is_late(self) -> None:
        bench = self.bench()
        assert ends(bench.stage, 5) == [Pause(2_000_005)]
        assert bench.fired == 1
