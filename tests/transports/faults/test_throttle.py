"""Throttle: bytes pass at the rate, all of them, in pieces."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from tests.contracts.byte_fault import ScenarioByteFaultContract, joined
from transports.faults.byte_fault import Pause, Piece
from transports.faults.throttle import PIECES_A_SECOND, Throttle
from transports.units import Size


class TestThrottle(ScenarioByteFaultContract):
    """The suite, and the rate."""

    kind = Throttle
    # Well below what is said: when it heals a backlog goes on at one instant.
    acting: ClassVar[dict[str, Any]] = {"rate": "15B"}
    fields: ClassVar[dict[str, Any]] = {"rate": "1KB"}

    def test_bytes_take_their_time(self) -> None:
        bench = self.bench()
        pieces, _ = bench.carry([b"x" * 1_500, b"y" * 500])
        assert bench.now_us == 2_000_000
        assert joined(pieces) == b"x" * 1_500 + b"y" * 500

    def test_they_trickle(self) -> None:
        bench = self.bench()
        pieces, _ = bench.carry([b"x" * 1_000])
        assert [len(piece.data) for piece in pieces] == [50] * PIECES_A_SECOND
        assert [piece.at_us for piece in pieces[:2]] == [50_000, 100_000]
        assert bench.fired == PIECES_A_SECOND

    def test_an_idle_line_saves_nothing_up(self) -> None:
        bench = self.bench()
        bench.carry([b"x" * 1_000])
        bench.now_us = 60_000_000
        assert bench.steps(b"y" * 10) == [Pause(60_010_000), Piece(b"y" * 10, 60_010_000)]

    def test_a_rate_below_a_piece_sends_single_bytes(self) -> None:
        bench = self.bench(rate="1B")
        assert bench.steps(b"ab")[:2] == [Pause(1_000_000), Piece(b"a", 1_000_000)]

    def test_a_rate_of_nothing_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 1B"):
            Throttle(rate=Size(0))
