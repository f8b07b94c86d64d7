"""What a log has much of."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import messages
from logs.stats import Tally
from logs.words import kind_of
from tests.logs.samples import Made, log_of, section

ASK = messages.GetGraphRun(command_id="r")


def test_the_counts_of_a_log_that_is_known() -> None:
    data = log_of("published/outbox")
    tally = Tally()
    tally.add(section(data), len(data))
    stats = tally.stats()
    kinds = Counter(kind_of(record) for record in section(data).records)
    assert stats.kinds == dict(kinds)
    assert stats.records == sum(kinds.values()) == 228
    assert (stats.sections, stats.truncated, stats.size_bytes) == (1, 0, len(data))
    assert stats.turns == kinds["start"] + kinds["message"] + kinds["timer"] + kinds["unanswered"]
    assert sum(stats.actors.values()) == stats.turns
    assert stats.turns_per_s == pytest.approx(stats.turns * 1e6 / stats.span_us)
    assert stats.dropped_by == {"drop-1": 1}
    complete = stats.messages["Complete"]
    assert (complete.delivered, complete.lost, complete.late) == (1, 1, 0)
    assert sum(one.delivered for one in stats.messages.values()) == kinds["message"]
    assert (stats.runs.queued, stats.runs.started, stats.runs.ended) == (1, 1, 1)
    assert (stats.runs.most_waiting, stats.runs.most_open) == (1, 1)
    assert stats.events["run.terminal"] == 1


def test_the_span_is_that_of_all_records_in_whatever_order() -> None:
    made = Made()
    for t in (5, 9, 2, 4):
        made.tell.timer(t, "a", 0, "x")
    tally = Tally()
    tally.add(made.section())
    assert tally.stats().span_us == 7


def test_sections_are_added_up() -> None:
    one, both = Tally(), Tally()
    one.add(section(log_of("published/outbox")), 10)
    for _ in range(2):
        both.add(section(log_of("published/outbox")), 10)
    assert both.stats().span_us == 2 * one.stats().span_us
    assert both.stats().size_bytes == 20
    assert both.stats().runs.queued == 2
    assert both.stats().runs.most_open == 1  # they are not open at the same time
    assert both.stats().turns_per_s == one.stats().turns_per_s


def test_a_latency_counts_from_the_turn_that_sent_or_from_the_sending_itself() -> None:
    made = Made()
    turn = made.tell.timer(1_000, "agent", 0, "poll")
    by_cause = made.envelope("agent", "server", ASK, turn)
    sent = made.envelope("agent", "server", messages.GO, turn)
    made.tell.send(1_500, sent)
    made.tell.message(3_000, by_cause)
    made.tell.message(3_000, sent)
    made.tell.message(4_000, made.envelope("agent", "server", messages.CONTINUE, 0))
    made.tell.message(4_000, made.envelope("agent", "server", messages.CONTINUE, 99))
    tally = Tally()
    tally.add(made.section())
    found = tally.stats().messages
    asked, told, unknown = (
        found[name].latency for name in ("GetGraphRun", "StartAnswer", "ControlAnswer")
    )
    assert asked is not None
    assert told is not None
    assert (asked.median_us, told.median_us) == (2_000, 1_500)
    assert unknown is None


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60))
def test_latencies_are_told_by_their_order(delays: list[int]) -> None:
    made = Made()
    for delay_us in delays:
        turn = made.tell.timer(0, "agent", 0, "poll")
        made.tell.message(delay_us, made.envelope("agent", "server", ASK, turn))
    tally = Tally()
    tally.add(made.section())
    found = tally.stats().messages["GetGraphRun"].latency
    assert found is not None
    assert (found.count, found.max_us) == (len(delays), max(delays))
    for share, value in ((0.5, found.median_us), (0.95, found.p95_us)):
        assert value in delays
        assert sum(one <= value for one in delays) >= share * len(delays)
        assert sum(one < value for one in delays) < share * len(delays)


def test_runs_wait_until_they_start_or_end() -> None:
    made = Made()
    for run, event in (
        ("a", "run.queued"), ("b", "run.queued"), ("c", "run.queued"), ("a", "run.started"),
        ("b", "run.terminal"), ("a", "run.terminal"), ("d", "run.queued"),
    ):  # fmt: skip
        made.tell.event(0, "server", 0, event, {"run": run})
    made.tell.event(0, "server", 0, "run.queued", {"run": [1]})
    tally = Tally()
    tally.add(made.section())
    runs = tally.stats().runs
    assert (runs.queued, runs.started, runs.ended) == (4, 1, 2)
    assert (runs.most_waiting, runs.most_open) == (3, 3)


def test_what_is_empty_or_cut_has_counts_too() -> None:
    tally = Tally()
    tally.add(section(Made().data(end=False)))
    stats = tally.stats()
    assert (stats.sections, stats.truncated, stats.records, stats.turns_per_s) == (1, 1, 0, 0.0)
