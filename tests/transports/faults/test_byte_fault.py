"""Byte faults: where they stand, which connections they act on, and the ending ones' limits."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.streams import HashedStream
from tests.contracts.byte_fault import KEY, Bench, ByteFaultContract, joined
from transports.faults.byte_fault import (
    DOWN,
    UP,
    ByteFault,
    End,
    Ending,
    EndingFault,
    Piece,
    Site,
    Stage,
)
from transports.units import Duration, Size


class Nothing(ByteFault, frozen=True, kw_only=True, tag_field="kind", tag="nothing"):
    """The smallest byte fault there is, a pattern for new ones."""

    in_flight: ClassVar[str] = "passes"

    def stage(self, site: Site) -> Stage:
        return Stage(site)


class TestNothing(ByteFaultContract):
    """The suite on a fault that does nothing."""

    kind = Nothing

    def test_by_itself_a_stage_changes_nothing(self) -> None:
        bench = self.bench()
        assert bench.steps(b"abc", 7) == [Piece(b"abc", 7)]
        assert list(bench.stage.on_end(7)) == []
        assert (bench.stage.due_us, bench.fired) == (None, 0)


def chosen(fault: ByteFault, count: int = 6) -> list[int]:
    """Which of the first connections it acts on."""
    return [
        seen for seen in range(1, count + 1) if fault.picks(seen, HashedStream(KEY, f"pick/{seen}"))
    ]


def test_without_a_rule_it_acts_on_every_connection() -> None:
    assert chosen(Nothing()) == [1, 2, 3, 4, 5, 6]


def test_nth_and_every_count_connections() -> None:
    assert chosen(Nothing(nth=3)) == [3]
    assert chosen(Nothing(every=2)) == [2, 4, 6]


def test_probability_is_the_share_of_connections() -> None:
    assert chosen(Nothing(probability=0.0)) == []
    assert chosen(Nothing(probability=1.0)) == [1, 2, 3, 4, 5, 6]
    assert 220 <= len(chosen(Nothing(probability=0.25), 1_000)) <= 280


def test_two_rules_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="one of nth, every and probability"):
        Nothing(nth=1, every=2)


def test_from_and_to_become_directions() -> None:
    assert Nothing().directions("client", "server") == (UP, DOWN)
    assert Nothing(source="client").directions("client", "server") == (UP,)
    assert Nothing(target="client").directions("client", "server") == (DOWN,)
    assert Nothing(source="relay-*", target="server").directions("relay-1", "server") == (UP,)
    assert Nothing(source="agent").directions("relay-1", "server") == ()


def ending(end: End = End.CLOSE, limit: int | None = None, after_us: int | None = None) -> Bench:
    """An ending fault at work."""

    class Over(EndingFault, frozen=True, kw_only=True):
        def stage(self, site: Site) -> Stage:
            return Ending(site, self, end)

    return Bench(
        Over(
            limit=None if limit is None else Size(limit),
            after=None if after_us is None else Duration(after_us),
        )
    )


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=20), max_size=10),
    limit=st.integers(1, 100),
)
def test_exactly_the_bytes_up_to_the_limit_pass(chunks: list[bytes], limit: int) -> None:
    bench = ending(End.RESET, limit)
    pieces, end = bench.carry(chunks)
    whole = b"".join(chunks)
    assert joined(pieces) == whole[:limit]
    assert end is (End.RESET if len(whole) >= limit else None)
    assert bench.fired == (len(whole) >= limit)


def test_without_a_limit_or_a_time_it_is_due_at_once() -> None:
    assert ending().stage.due_us == 0
    assert ending(limit=0).stage.due_us == 0
    assert ending(limit=5).stage.due_us is None
    assert ending(limit=5, after_us=9).stage.due_us == 9


def test_a_time_ends_it_and_bytes_alone_do_not() -> None:
    bench = ending(End.HALF_CLOSE, after_us=9)
    assert bench.steps(b"x" * 1_000) == [Piece(b"x" * 1_000, 0)]
    assert bench.stage.on_due() is End.HALF_CLOSE
    assert bench.fired == 1


def test_time_and_limit_together_fire_once() -> None:
    bench = ending(limit=1, after_us=9)
    assert bench.steps(b"ab") == [Piece(b"a", 0), End.CLOSE]
    bench.stage.on_due()
    assert bench.fired == 1
