"""Causes lead back to the beginning, and effects forward."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logs.causes import Causes
from logs.record import EventRecord, Record, TimerRecord
from tests.logs.samples import log_of, section


def test_the_chain_of_a_late_result_goes_back_through_the_relay_s_polls() -> None:
    records = section(log_of("published/outbox")).records
    [ended] = [r.n for r in records if isinstance(r, EventRecord) and r.event == "run.terminal"]
    chain = Causes(records).chain(ended)
    assert chain[0].cause == 0
    assert [after.cause for after in chain[1:]] == [before.n for before in chain[:-1]]
    assert [r.timer for r in chain if isinstance(r, TimerRecord)] == ["poll"] * 3
    assert chain[-1].n == ended


def timers(causes: list[int]) -> list[Record]:
    return [TimerRecord(n, n, "a", cause, "t") for n, cause in enumerate(causes, 1)]


CAUSES = st.integers(1, 40).flatmap(
    lambda size: st.tuples(*(st.integers(0, n) for n in range(size))).map(list)
)


@given(CAUSES)
def test_a_record_is_an_effect_of_exactly_those_that_stand_in_its_chain(causes: list[int]) -> None:
    records = timers(causes)
    found = Causes(records)
    for record in records:
        above = [one.n for one in found.chain(record.n)[:-1]]
        for other in records:
            effects, more = found.effects(other.n, len(records))
            assert not more
            assert [one.n for one in effects] == sorted({one.n for one in effects})
            assert (record in effects) == (other.n in above)


def test_effects_end_at_the_limit_and_say_so() -> None:
    found = Causes(timers([0, 1, 1, 1]))
    effects, more = found.effects(1, 2)
    assert ([one.n for one in effects], more) == ([2, 3], True)
    effects, more = found.effects(1, 3)
    assert ([one.n for one in effects], more) == ([2, 3, 4], False)


def test_a_log_that_makes_no_sense_has_an_end_too() -> None:
    found = Causes(timers([2, 1, 3]))
    assert [one.n for one in found.chain(2)] == [1, 2]
    assert [one.n for one in found.chain(3)] == [3]
    assert found.chain(9) == []
    assert found.effects(3, 9) == ([], False)


def test_numbers_that_were_left_out_are_looked_up() -> None:
    found = Causes([TimerRecord(3, 0, "a", 0, "t"), TimerRecord(7, 0, "a", 3, "t")])
    assert [one.n for one in found.chain(7)] == [3, 7]
