"""Beats: records in words, repetition shown once, the telling ones chosen."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors import messages
from logs.record import (
    DropRecord,
    EventRecord,
    FaultRecord,
    LateRecord,
    MessageRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from scenarios.report.beats import (
    AFTER,
    BEFORE,
    NEAR,
    REPEATS_LEAST,
    Beat,
    beats_of,
    causes_of,
    chosen,
    collapsed,
    runs_of,
    window,
)
from transports.envelope import Envelope

RUN = "11111111-2222-4333-8444-555555555555"
START = messages.Start(command_id=RUN, boot="b", delivery=1)


def envelope(body: Any, source: str = "relay", target: str = "server") -> Envelope[Any]:
    return Envelope(1, source, target, 0, 1, body)


def message(n: int, body: Any, cause: int = 0) -> MessageRecord:
    return MessageRecord(n, n * 1000, "server", cause, envelope(body))


def beat(n: int, label: str = "Sync", style: str = "message", text: str = "") -> Beat:
    return Beat(
        n=n, cause=0, t=n, sent_us=n, source="a", target="b", style=style, label=label,
        told="", text=text, routine=style == "message",
    )  # fmt: skip


def labels(*records: Any) -> list[str]:
    return [one.label for one in beats_of(records, [RUN])]


def test_each_kind_in_words() -> None:
    answer = {"type": "StartAnswer", "go": True, "reason": None}
    assert labels(message(1, START)) == ["Start run 1"]
    assert labels(message(1, answer)) == ["StartAnswer go"]
    assert labels(message(1, {**answer, "go": False, "reason": "unshared"})) == [
        "StartAnswer no go unshared"
    ]
    drop = DropRecord(1, 5, "relay", 0, "loss", envelope(START))
    late = LateRecord(1, 5, "server", 0, envelope(START))
    assert labels(drop, late) == ["Start run 1 lost: loss", "Start run 1 too late"]
    event = EventRecord(1, 5, "server", 0, "run.terminal", {"run": RUN, "status": "completed"})
    assert labels(event) == ["run.terminal run 1 completed"]
    assert labels(FaultRecord(1, 5, "relay", 0, "night", "kill")) == ["kill by night"]
    assert labels(StartRecord(1, 5, "relay", 0, 2)) == ["boot 2"]
    assert labels(UnansweredRecord(1, 5, "relay", 0, 7)) == ["no answer in time"]
    assert labels(UndoneRecord(1, 5, "relay", 0, "failed")) == ["undone: failed"]


def test_first_boots_and_timers_are_left_out() -> None:
    assert labels(StartRecord(1, 0, "relay", 0, 0), TimerRecord(2, 5, "relay", 1, "poll")) == []


def test_a_message_knows_when_it_was_sent() -> None:
    timer = TimerRecord(1, 400, "relay", 0, "poll")
    (one,) = beats_of([timer, message(2, START, cause=1)], [])
    assert (one.sent_us, one.t) == (400, 2000)


def test_runs_in_the_order_of_queueing() -> None:
    events = [EventRecord(n, 0, "server", 0, "run.queued", {"run": run})
              for n, run in enumerate(("b", "a", "b"), 1)]  # fmt: skip
    assert runs_of(events) == ["b", "a"]


def test_causes_go_through_what_is_not_shown() -> None:
    records = [message(1, START), TimerRecord(2, 5, "relay", 1, "x"), message(3, START, cause=2),
               message(4, START)]  # fmt: skip
    assert causes_of(records, frozenset({3})) == {1, 2}


def test_a_pattern_is_shown_once() -> None:
    pairs = [beat(n, "Ask" if n % 2 else "Answer") for n in range(1, 9)]
    found = collapsed([beat(0, "First"), *pairs, beat(9, "Last")], frozenset())
    assert [(one.label, one.times, one.until_us) for one in found] == [
        ("First", 1, 0), ("Ask", 4, 7), ("Answer", 4, 8), ("Last", 1, 0),
    ]  # fmt: skip


def test_the_longest_pattern_counts() -> None:
    names = "ABAC" * 3 + "D"
    found = collapsed([beat(n, name) for n, name in enumerate(names)], frozenset())
    assert [(one.label, one.times) for one in found] == [
        ("A", 3), ("B", 3), ("A", 3), ("C", 3), ("D", 1),
    ]  # fmt: skip


def test_faults_are_never_shown_once_for_all() -> None:
    found = collapsed([beat(n, "kill", style="fault") for n in range(5)], frozenset())
    assert len(found) == 5


def test_only_what_is_around_the_focus_is_looked_at() -> None:
    records = [TimerRecord(n, n, "relay", 0, "x") for n in range(1, BEFORE + AFTER + 102)]
    found = window(records, frozenset({BEFORE + 51}))
    assert (found[0].n, found[-1].n) == (51, BEFORE + 50 + AFTER)
    assert window(records, frozenset())[-1] is records[-1]
    assert window(records[:10], frozenset({3})) == records[:10]


def test_what_is_in_focus_is_no_part_of_a_pattern() -> None:
    found = collapsed([beat(n) for n in range(7)], frozenset({3}))
    assert [(one.n, one.times) for one in found] == [(0, 3), (3, 1), (4, 3)]


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(0, 40))
def test_nothing_is_lost_by_collapsing(names: list[str], focus: int) -> None:
    beats = [beat(n, name) for n, name in enumerate(names)]
    found = collapsed(beats, frozenset({focus}))
    assert sum(one.times for one in found) == len(beats)
    assert all(one.times == 1 or one.times >= REPEATS_LEAST for one in found)
    if focus < len(beats):
        assert [one.times for one in found if one.n == focus] == [1]


@given(st.lists(st.sampled_from(["message", "event", "fault"]), min_size=1, max_size=60),
       st.data())  # fmt: skip
def test_the_chosen_are_few_in_order_and_have_the_focus(styles: list[str], data: Any) -> None:
    beats = [beat(n, style=style) for n, style in enumerate(styles)]
    focus = data.draw(st.integers(0, len(beats) - 1))
    limit = data.draw(st.integers(1, 20))
    found = [one.n for one in chosen(beats, frozenset(), frozenset({focus}), "", limit)]
    assert focus in found
    assert found == sorted(found)
    assert len(found) <= limit


def test_what_concerns_the_run_comes_before_what_is_near() -> None:
    beats = [beat(0, style="event", text=RUN), *(beat(n) for n in range(1, 80))]
    found = [one.n for one in chosen(beats, frozenset({40}), frozenset({70}), RUN, 8)]
    assert found[0] == 0
    assert 70 in found
    assert 40 not in found, "a routine message far away leads nowhere"
    assert all(abs(n - 70) <= NEAR for n in found[1:])


def test_nothing_comes_before_what_is_in_focus() -> None:
    beats = [beat(0, style="event", text=RUN), beat(1, style="fault"), beat(2, text=RUN), beat(3)]
    for number in range(4):
        (only,) = chosen(beats, frozenset({0, 1, 2, 3}), frozenset({number}), RUN, 1)
        assert only.n == number


def test_nothing_of_nothing() -> None:
    assert chosen([], frozenset(), frozenset(), "", 5) == []
