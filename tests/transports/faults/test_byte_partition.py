"""Partition of bytes: everything waits for it to heal."""

from __future__ import annotations

from tests.contracts.byte_fault import ByteFaultContract, ends
from transports.faults.byte_fault import DOWN, UP, Pause, Piece
from transports.faults.byte_partition import BytePartition


class TestBytePartition(ByteFaultContract):
    """The suite, and the standstill."""

    kind = BytePartition

    def test_bytes_and_ends_wait_until_it_heals(self) -> None:
        bench = self.bench()
        assert bench.steps(b"abc", 5) == [Pause(None), Piece(b"abc", 5)]
        assert ends(bench.stage) == [Pause(None)]
        assert bench.fired == 2

    def test_the_service_is_not_reached_meanwhile(self) -> None:
        assert self.bench().stage.opens_late

    def test_it_cuts_both_ways_unless_both_is_off(self) -> None:
        one_way = {"from": "client"}
        assert self.fault(**one_way).directions("client", "server") == (UP, DOWN)
        assert self.fault(both=False, **one_way).directions("client", "server") == (UP,)
        assert self.fault(**{"from": "agent"}).directions("client", "server") == ()
