"""Reset: an RST after so many bytes or so much time."""

from __future__ import annotations

from tests.contracts.byte_fault import UNIX, ScenarioByteFaultContract, joined
from transports.faults.byte_fault import End
from transports.faults.reset import Reset


class TestReset(ScenarioByteFaultContract):
    """The suite, and the RST."""

    kind = Reset

    def test_it_resets_at_the_limit(self) -> None:
        pieces, end = self.bench(bytes="5B").carry([b"abc", b"def"])
        assert (joined(pieces), end) == (b"abcde", End.RESET)

    def test_it_resets_at_its_time_without_bytes(self) -> None:
        bench = self.bench(after="2s")
        assert bench.stage.due_us == 2_000_000
        assert bench.stage.on_due() is End.RESET

    def test_it_does_the_same_over_unix_sockets(self) -> None:
        self.check(UNIX)
