"""Close after: both ways are closed after so many bytes or so much time."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.contracts.byte_fault import ScenarioByteFaultContract, joined
from transports.faults.byte_fault import End
from transports.faults.close_after import CloseAfter


class TestCloseAfter(ScenarioByteFaultContract):
    """The suite, and the close."""

    kind = CloseAfter
    acting: ClassVar[dict[str, Any]] = {"bytes": "40B"}
    fields: ClassVar[dict[str, Any]] = {"bytes": "100B"}

    def test_it_closes_at_the_limit(self) -> None:
        pieces, end = self.bench(bytes="5B").carry([b"abc", b"def"])
        assert (joined(pieces), end) == (b"abcde", End.CLOSE)

    def test_it_closes_at_its_time(self) -> None:
        bench = self.bench(after="2s")
        assert bench.stage.due_us == 2_000_000
        assert bench.stage.on_due() is End.CLOSE
