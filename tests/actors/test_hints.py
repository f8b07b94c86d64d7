"""Hints: the next poll, the work before the run, what its Graph tends to take; bounded, fixed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.hints import (
    ENOUGH,
    LEAST_US,
    MISSED_POLLS,
    MOST_US,
    REMEMBERED,
    RUNNING_HINT_US,
    Hints,
    quantile,
)
from actors.stores.memory import MemoryStore
from tests.actors.harness import S
from tests.actors.service import Service

POLL_US = 20 * S
times = st.integers(0, 10**13)


def hints(*took_s: int, wait_limit_us: int = 0) -> Hints:
    one = Hints(MemoryStore(None), wait_limit_us)
    for each in took_s:
        one.remember("relay", "gs", each * S)
    return one


def test_the_next_poll_is_an_interval_after_the_last() -> None:
    one = hints()
    assert one.to_poll_us("relay", POLL_US, 7 * S) == POLL_US, "nobody heard of it yet"
    one.heard["relay"] = 7 * S
    assert one.to_poll_us("relay", POLL_US, 12 * S) == 15 * S
    assert one.to_poll_us("relay", POLL_US, 27 * S) == POLL_US
    assert one.to_poll_us("relay", POLL_US, 37 * S) == 10 * S, "one poll was missed"
    assert one.to_poll_us("relay", POLL_US, 67 * S) == MISSED_POLLS * POLL_US, "it is away"


def test_a_queued_run_s_hint_counts_what_comes_first_and_its_own_shortest() -> None:
    one = hints(*range(10, 30))
    assert one.took("relay", "gs") == tuple(each * S for each in range(10, 30))
    assert one.queued_us("relay", "gs", POLL_US, 0, 0) == POLL_US + 11 * S
    assert one.queued_us("relay", "gs", POLL_US, 2, 0) == POLL_US + 11 * S + 2 * 19 * S
    assert one.queued_us("relay", "other", POLL_US, 2, 0) == POLL_US


def test_a_running_one_s_hint_keeps_the_result_waiting_a_fortieth() -> None:
    assert hints().running_us("relay", "gs") == RUNNING_HINT_US
    took_s = [60] * ENOUGH
    assert hints(*took_s).running_us("relay", "gs") == 3 * S, "half of it is 60 s / 40"
    pause_us = hints(*took_s, wait_limit_us=20 * S).running_us("relay", "gs")
    late_us = pause_us**2 / (2 * (pause_us + 20 * S))
    assert abs(2 * late_us - 3 * S) < 10


def test_a_few_runs_tell_nothing_and_old_ones_are_forgotten() -> None:
    assert hints(*[60] * (ENOUGH - 1)).took("relay", "gs") == ()
    one = hints(*[600] * REMEMBERED, *[6] * REMEMBERED)
    assert one.took("relay", "gs") == (6 * S,) * REMEMBERED


@given(st.lists(st.integers(0, 10**7), max_size=30), times, times, st.integers(0, 10_000))
def test_every_hint_is_bounded(took_s: list[int], heard_us: int, now_us: int, ahead: int) -> None:
    one = hints(*took_s, wait_limit_us=20 * S)
    one.heard["relay"] = heard_us
    assert LEAST_US <= one.queued_us("relay", "gs", POLL_US, ahead, now_us) <= MOST_US
    assert LEAST_US <= one.running_us("relay", "gs") <= MOST_US


@given(st.lists(times, min_size=1, max_size=30).map(tuple), st.integers(0, 100))
def test_a_quantile_is_one_of_the_values(values: tuple[int, ...], percent: int) -> None:
    found = quantile(values, percent)
    assert found in values
    assert sum(each < found for each in values) <= percent * len(values) / 100


def test_a_server_hints_by_what_it_heard_and_saw() -> None:
    service = Service(hints=True)
    for number in range(ENOUGH):
        service.sync()
        run = service.run(f"key-{number:04}").command_id
        service.sync()
        assert service.start_run(run).go
        service.context.now_us += 40 * S
        service.complete(run)
    service.sync()
    service.context.now_us += 5 * S
    answer = service.run("key-last")
    assert answer.poll_after_us == 15 * S + 40 * S
    service.context.now_us += 90 * S
    assert service.get(answer.command_id) == answer, "fixed until the run changes"
    service.sync()
    service.start_run(answer.command_id)
    assert service.get(answer.command_id).poll_after_us == 2 * 40 * S // 40
    service.start()
    assert service.run("key-next").poll_after_us == 20 * S + 2 * 40 * S, (
        "a restart forgets the poll"
    )
