"""Stepping: where one gets, what one finds there, and that the way there makes no difference."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs.record import (
    EventRecord,
    FaultRecord,
    MessageRecord,
    SendRecord,
    StartRecord,
    TimerRecord,
)
from scenarios.checks.history import Violation
from scenarios.step_files import stepper_of
from scenarios.stepper import Due, Stepper, Turn
from tests.scenarios.stepping import data_of, section_of, stepper

WEEKEND = "chaos/weekend"


def changed(record_n: int, made: Stepper, **fields: Any) -> Stepper:
    """A stepper on the same log, in which a record has another field."""
    section = made.section
    records = [
        msgspec.structs.replace(record, **fields) if record.n == record_n else record
        for record in section.records
    ]
    return stepper_of(msgspec.structs.replace(section, records=records))


def without(made: Stepper, *numbers: int) -> Stepper:
    """A stepper on the same log, in which records are missing."""
    records = [record for record in made.records if record.n not in numbers]
    return stepper_of(msgspec.structs.replace(made.section, records=records))


# Where


def test_one_step_at_a_time_there_and_back() -> None:
    at = stepper()
    seen = [at.record.n]
    while at.forward():
        seen.append(at.record.n)
    assert seen == [record.n for record in at.records]
    assert not at.forward()
    back = [at.record.n]
    while at.back():
        back.append(at.record.n)
    assert back == seen[::-1]
    assert not at.back()
    assert at.record.n == 1


def test_to_a_number_or_a_time() -> None:
    at = stepper()
    assert at.to(7)
    assert at.record.n == 7
    assert not at.to(0)
    assert not at.to(len(at.records) + 1)
    assert at.record.n == 7, "it stays where it was"
    assert at.to_time(20_000_000)
    after = at.records[at.at + 1]
    assert at.record.t <= 20_000_000 < after.t
    assert not at.to_time(-1)
    assert at.to_time(1 << 60)
    assert at.record is at.records[-1]


def test_numbers_may_have_gaps() -> None:
    at = without(stepper(), 5)
    assert not at.to(5)
    assert at.to(6)
    assert at.back()
    assert at.record.n == 4


def found(at: Stepper, kind: str, name: str = "") -> list[int]:
    """The numbers of all records of a kind, forwards; and backwards they are the same."""
    numbers = []
    at.at = 0
    wanted = at.wanted(kind, name)
    while at.search(wanted):
        numbers.append(at.record.n)
    assert not at.search(wanted)
    at.at = len(at.records) - 1
    back = [at.record.n] if wanted(at.at) else []
    while at.search(wanted, back=True):
        back.append(at.record.n)
    assert numbers == [number for number in reversed(back) if number != at.records[0].n]
    return numbers


def test_the_next_of_a_kind() -> None:
    at = stepper(WEEKEND)
    records = at.records
    assert found(at, "fault") == [one.n for one in records if isinstance(one, FaultRecord)]
    events = [one for one in records if isinstance(one, EventRecord)]
    assert found(at, "event") == [one.n for one in events]
    assert found(at, "event", "run.*") == [one.n for one in events if one.event.startswith("run.")]
    assert found(at, "event", "nope") == []
    mine = [
        one.n
        for one in records[1:]
        if one.actor == "engine"
        or (isinstance(one, MessageRecord) and one.envelope.source == "engine")
    ]
    assert found(at, "engine") == mine
    assert found(at, "violation") == found(at, "divergence") == []
    with pytest.raises(ValueError, match="nobody"):
        at.wanted("nobody")


def test_a_change_is_a_turn_that_left_something_else_in_attributes_or_store() -> None:
    at = stepper()
    numbers = found(at, "change")
    for record in at.records[1:]:
        at.to(record.n)
        turn = at.turn()
        assert (record.n in numbers) == (turn is not None and bool(turn.attributes or turn.writes))
    relays = found(at, "change", "rel*")
    assert 1 < len(relays) < len(numbers)
    assert {at.causes.record(number).actor for number in relays} == {"relay"}  # type: ignore[union-attr]  # it was found


# What


def the_turn(at: Stepper, kind: type[Any], actor: str, nth: int = 0) -> Turn:
    """What an actor's nth record of a kind did."""
    numbers = [one.n for one in at.records if isinstance(one, kind) and one.actor == actor]
    assert at.to(numbers[nth])
    turn = at.turn()
    assert turn is not None
    return turn


def test_a_start_begins_everything() -> None:
    at = stepper()
    turn = the_turn(at, StartRecord, "relay")
    assert (turn.before.status, turn.after.status) == ("not started", "up")
    assert turn.before.state == {}
    assert {change.path for change in turn.attributes} >= {"config", "passing", "poll_us"}
    assert all(change.is_new for change in turn.attributes)
    assert [(one.act, one.due.name) for one in turn.timers] == [("set", "poll")]
    assert turn.is_change


def test_a_turn_says_all_that_it_did() -> None:
    at = stepper()
    turn = the_turn(at, MessageRecord, "server")
    [run] = [write for write in turn.writes if write.table == "runs"]
    assert (run.old, run.new.status) == (None, "queued")
    [sent] = turn.sent
    assert (sent.in_log, type(sent.envelope.body).__name__) == (True, "GraphRun")
    assert [event.event for event in turn.said] == ["run.queued"]
    assert turn.after.rows["runs"] == 1
    assert at.rows("server", "runs") == {run.key: run.new}
    assert at.rows("server", "none") is None
    poll = the_turn(at, TimerRecord, "relay")
    assert [(one.act, one.due.name) for one in poll.timers] == [("fired", "poll"), ("set", "poll")]
    assert [(one.act, one.due.name) for one in poll.questions] == [("set", "Sync to server")]
    answer = the_turn(at, MessageRecord, "relay")
    assert ("gone", "Sync to server") in [(one.act, one.due.name) for one in answer.questions]


def test_timers_and_questions_say_when_they_are_due() -> None:
    at = stepper()
    poll = the_turn(at, TimerRecord, "relay")
    now_us = at.record.t
    moment = at.moment("relay")
    assert moment is not None
    [question] = moment.questions.values()
    assert question == Due(name="Sync to server", due_us=now_us + 10_000_000, left_us=10_000_000)
    at.forward()
    assert at.record.t == now_us
    assert at.moment("relay").timers == poll.after.timers  # type: ignore[union-attr]  # it is there


def test_the_clock_of_a_sleeper_stands_still() -> None:
    at = stepper(WEEKEND)
    assert at.search(at.wanted("fault"))
    turn = at.turn()
    assert turn is not None
    assert (turn.before.status, turn.after.status) == ("up", "suspended")
    left = {name: due.left_us for name, due in turn.after.timers.items()}
    assert left
    assert all(due.due_us is None for due in turn.after.timers.values())
    at.to_time(at.record.t + 3_600_000_000)
    later = at.moment("relay")
    assert later is not None
    assert {name: due.left_us for name, due in later.timers.items()} == left
    fault = at.wanted("fault")
    while later.status != "up":
        assert at.search(fault)
        later = at.moment("relay")
        assert later is not None
    assert all(due.due_us is not None for due in later.timers.values())


def test_who_was_killed_is_down_and_its_store_stays() -> None:
    at = stepper("chaos/redeploy")
    kill = the_turn(at, FaultRecord, "server")
    assert (kill.before.status, kill.after.status) == ("up", "down")
    assert kill.after.rows == kill.before.rows
    assert not kill.after.timers
    assert not kill.is_change
    assert kill.timers == [] or {one.act for one in kill.timers} == {"gone"}


def test_what_is_no_turn_and_who_is_not_in_the_cell_have_none() -> None:
    at = stepper()
    event = next(one for one in at.records if isinstance(one, EventRecord))
    at.to(event.n)
    assert at.turn() is None
    strange = changed(1, at, actor="nobody")
    assert strange.turn() is None
    assert strange.moment("nobody") is None
    assert strange.difference_at(0) is None
    assert strange.wanted("nobody")(0)


NAMES = ("server", "relay", "engine", "agent")
STEPPER = stepper(WEEKEND)


@given(
    st.lists(
        st.tuples(st.integers(0, len(STEPPER.records) - 1), st.sampled_from(NAMES)), max_size=8
    )
)
@settings(max_examples=8, deadline=None)
def test_the_way_makes_no_difference(ways: list[tuple[int, str]]) -> None:
    fresh = stepper(WEEKEND)
    for index, name in sorted(ways):
        STEPPER.at = fresh.at = index
        assert STEPPER.moment(name) == fresh.moment(name)
        mine, other = STEPPER.turn(), fresh.turn()
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert msgspec.structs.astuple(mine) == msgspec.structs.astuple(other)
    for index, name in ways:  # in the drawn order the same object goes to and fro
        STEPPER.at = index
        assert STEPPER.moment(name) == stepper_at(index, name)


def stepper_at(index: int, name: str) -> Any:
    fresh = stepper(WEEKEND)
    fresh.at = index
    return fresh.moment(name)


# Under way


@pytest.mark.parametrize("options", [{}, {"driver": "trio"}], ids=["sim", "trio"])
def test_the_mailbox_has_what_was_sent_and_has_not_come(options: dict[str, Any]) -> None:
    at = stepper("chaos/slow_reordered", **options)
    ends = [one for one in at.records if isinstance(one, MessageRecord)]
    most = 0
    for record in at.records[::7]:
        at.to(record.n)
        for name in NAMES:
            mails = list(at.mailbox(name))
            expected = [
                one.envelope
                for one in ends
                if one.envelope.target == name and one.envelope.cause <= record.n < one.n
            ]
            assert [one.envelope for one in mails if isinstance(one.end, MessageRecord)] == expected
            most = max(most, len(mails))
    assert most > 1


def test_what_never_comes_is_under_way_to_the_end_if_the_log_has_it() -> None:
    at = stepper(driver="trio")
    sent = next(one for one in at.records if isinstance(one, SendRecord))
    [end] = [
        one.n
        for one in at.records
        if isinstance(one, MessageRecord)
        and (one.envelope.source, one.envelope.id) == (sent.envelope.source, sent.envelope.id)
    ]
    cut = without(at, *range(end, len(at.records) + 1))
    cut.to(sent.n)
    assert [one.end for one in cut.mailbox(sent.envelope.target)] == [None]
    cut.to(sent.envelope.cause - 1)
    assert list(cut.mailbox(sent.envelope.target)) == []


# What is wrong


def test_a_turn_that_differs_from_the_log_is_found_from_both_sides() -> None:
    at = stepper()
    event = next(one for one in at.records if isinstance(one, EventRecord))
    other = changed(event.n, at, event="run.other")
    assert found(other, "divergence") == [event.cause]
    difference = other.difference_at(event.cause - 1)
    assert difference is not None
    assert difference.why == "the turn did something else"


def test_violations_are_judged_once_and_found_where_they_are_proved() -> None:
    asked = []

    def judge(_stepper: Stepper) -> list[Violation]:
        asked.append(1)
        return [Violation("one", "a", (3, 5)), Violation("two", "b", (5,)), Violation("end", "c")]

    at = stepper()
    at._judge = judge
    last = at.records[-1].n
    assert found(at, "violation") == [3, 5, last]
    assert [one.check for one in at.violations[5]] == ["one", "two"]
    assert asked == [1]


def test_everybody_can_be_explored_beforehand() -> None:
    at = stepper()
    at.explore(10)
    at.to(10)
    assert [at.missing(name) for name in at.lanes] == [0] * 4
    at.to_time(1 << 60)
    assert at.missing("agent") > 0
    assert at.missing("nobody") == 0


def test_only_the_last_states_are_kept() -> None:
    at = stepper()
    while at.forward():
        at.turn()
    assert all(len(kept) <= 2 for kept in at._states.values())
    assert at._states


def test_sections_of_a_log_are_read_as_they_are() -> None:
    assert section_of(data_of("examples/first")).records[0].n == 1
