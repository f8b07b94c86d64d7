"""Truncate: a chunk is cut short, and the connection is closed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.byte_fault import ScenarioByteFaultContract, joined
from transports.faults.byte_fault import End
from transports.faults.truncate import Truncate


class TestTruncate(ScenarioByteFaultContract):
    """The suite, and the cut."""

    kind = Truncate

    def test_the_chunk_that_is_meant_is_cut(self) -> None:
        bench = self.bench(chunk=2, keep="2B")
        pieces, end = bench.carry([b"first", b"second", b"third"])
        assert (joined(pieces), end, bench.fired) == (b"firstse", End.CLOSE, 1)

    def test_it_never_passes_whole(self) -> None:
        pieces, end = self.bench(keep="99B").carry([b"abc"])
        assert (joined(pieces), end) == (b"ab", End.CLOSE)

    @given(data=st.binary(min_size=1, max_size=50), seed=st.integers(0, 50))
    def test_without_keep_any_number_short_of_all_passes(self, data: bytes, seed: int) -> None:
        pieces, end = self.bench(seed).carry([data])
        assert len(joined(pieces)) < len(data)
        assert end is End.CLOSE

    def test_the_number_is_drawn(self) -> None:
        kept = {len(joined(self.bench(seed).carry([b"abcd"])[0])) for seed in range(60)}
        assert kept == {0, 1, 2, 3}
