"""Slice: chunks come in small pieces, maybe with pauses."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given

from tests.contracts.byte_fault import ScenarioByteFaultContract, chunk_lists, joined
from transports.faults.byte_fault import Pause, Piece
from transports.faults.slice import Slice


class TestSlice(ScenarioByteFaultContract):
    """The suite, and the pieces."""

    kind = Slice
    acting: ClassVar[dict[str, Any]] = {"size": "3B", "pause": "100ms"}
    fields: ClassVar[dict[str, Any]] = {"size": "uniform(1B, 9B)", "pause": "uniform(0s, 1ms)"}

    def test_pieces_have_their_size_and_pauses_between(self) -> None:
        bench = self.bench(size="2B", pause="10ms")
        assert bench.steps(b"abcde", 5) == [
            Piece(b"ab", 5),
            Pause(10_005),
            Piece(b"cd", 10_005),
            Pause(20_005),
            Piece(b"e", 20_005),
        ]
        assert bench.fired == 1

    def test_a_chunk_of_one_piece_is_none_of_its_business(self) -> None:
        bench = self.bench(size="5B")
        assert bench.steps(b"abcde") == [Piece(b"abcde", 0)]
        assert bench.fired == 0

    def test_without_a_pause_there_is_none(self) -> None:
        bench = self.bench(size="2B", pause="0s")
        assert bench.steps(b"abc") == [Piece(b"ab", 0), Piece(b"c", 0)]

    def test_a_piece_of_no_size_has_a_byte(self) -> None:
        assert joined(self.bench(size="0B").carry([b"ab"])[0][:1]) == b"a"

    @given(chunks=chunk_lists)
    def test_no_piece_is_longer_than_its_size(self, chunks: list[bytes]) -> None:
        pieces, _ = self.bench().carry(chunks)
        assert all(1 <= len(piece.data) <= 9 for piece in pieces)
