"""Corrupt: single bits flip, at places that the seed decides."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.byte_fault import UNIX, ScenarioByteFaultContract, chunk_lists, joined
from transports.faults.corrupt import Corrupt


class TestCorrupt(ScenarioByteFaultContract):
    """The suite, and the flips."""

    kind = Corrupt
    acting: ClassVar[dict[str, Any]] = {"share": 0.02}
    faithful = False
    keeps = False

    @given(chunks=chunk_lists, share=st.sampled_from([0.01, 0.3, 1.0]))
    def test_only_single_bits_flip_and_each_is_counted(
        self, chunks: list[bytes], share: float
    ) -> None:
        bench = self.bench(share=share)
        pieces, _ = bench.carry(chunks)
        whole, arrived = b"".join(chunks), joined(pieces)
        assert len(arrived) == len(whole)
        flips = [a ^ b for a, b in zip(whole, arrived, strict=True) if a != b]
        assert all(flip.bit_count() == 1 for flip in flips)
        assert len(flips) == bench.fired
        if share == 1.0:
            assert len(flips) == len(whole)

    @given(data=st.binary(min_size=1, max_size=400), cut=st.integers(0, 400))
    def test_how_tcp_cuts_the_stream_changes_nothing(self, data: bytes, cut: int) -> None:
        halves = [half for half in (data[:cut], data[cut:]) if half]
        whole, _ = self.bench(share=0.1).carry([data])
        parts, _ = self.bench(share=0.1).carry(halves)
        assert joined(whole) == joined(parts)

    def test_the_share_is_kept(self) -> None:
        bench = self.bench(share=0.01)
        bench.carry([bytes(10_000)] * 10)
        assert 870 <= bench.fired <= 1_130  # four standard deviations of 31.5 around 1,000

    def test_every_bit_of_a_byte_may_flip(self) -> None:
        pieces, _ = self.bench(share=1.0).carry([bytes(1_000)])
        assert set(joined(pieces)) == {1, 2, 4, 8, 16, 32, 64, 128}

    def test_it_does_the_same_over_unix_sockets(self) -> None:
        self.check(UNIX)
