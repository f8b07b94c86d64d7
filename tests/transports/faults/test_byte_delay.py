"""Delay of bytes: each chunk is held from when it came."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from tests.contracts.byte_fault import ByteFaultContract, ends
from transports.faults.byte_delay import ByteDelay
from transports.faults.byte_fault import Pause, Piece, Step


class TestByteDelay(ByteFaultContract):
    """The suite, and the time."""

    kind = ByteDelay
    fields: ClassVar[dict[str, Any]] = {"delay": "2s"}

    def test_a_chunk_is_held_from_when_it_came(self) -> None:
        bench = self.bench()
        bench.now_us = 1_900_000
        assert bench.steps(b"abc", 5) == [Pause(2_000_005), Piece(b"abc", 2_000_005)]
        assert bench.fired == 1

    def test_the_end_is_held_too(self) -> None:
        bench = self.bench()
        assert ends(bench.stage, 5) == [Pause(2_000_005)]
        assert bench.fired == 1

    def delays(self, correlation: float) -> list[Step]:
        bench = self.bench(delay="uniform(0s, 1s)", correlation=correlation)
        return [bench.steps(b"x", 0)[0] for _ in range(200)]

    def test_with_correlation_a_delay_comes_again(self) -> None:
        def repeats(correlation: float) -> int:
            drawn = self.delays(correlation)
            return sum(a == b for a, b in pairwise(drawn))

        assert repeats(0.0) == 0
        assert repeats(1.0) == 199
        assert 140 <= repeats(0.85) <= 190
