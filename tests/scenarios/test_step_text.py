"""What the stepper shows: every kind of thing in words, and each mark by its sign."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from logs.record import (
    EventRecord,
    MessageRecord,
    SendRecord,
    TimerRecord,
    UnansweredRecord,
    UndoneRecord,
)
from scenarios.checks.history import Violation
from scenarios.step_files import stepper_of
from scenarios.step_lines import search
from scenarios.step_text import (
    SIGNS,
    Line,
    Words,
    cause_in_short,
    causes,
    changed,
    mailbox,
    state,
    store,
    table,
    timers,
    where,
)
from scenarios.stepper import Moment, Stepper
from tests.scenarios.stepping import stepper


def at(place: int | str, name: str = "examples/first", **options: Any) -> Stepper:
    """A stepper at a record's number, or at the next of a kind."""
    made = stepper(name, **options)
    if isinstance(place, int):
        assert made.to(place)
    else:
        kind, _, what = place.partition(" ")
        search(made, kind, what, back=False)
    return made


def polling() -> Stepper:
    """A stepper where the relay's first timer fires."""
    made = stepper()
    assert made.search(lambda at: isinstance(made.records[at], TimerRecord))
    assert made.record.actor == "relay"
    return made


def of(made: Stepper, actor: str = "") -> Moment:
    moment = made.moment(actor or made.record.actor)
    assert moment is not None
    return moment


def texts(lines: Any) -> list[str]:
    """The lines' texts; each marked one has its sign."""
    found = list(lines)
    for line in found:
        assert isinstance(line, Line)
        if line.mark in SIGNS:
            assert line.text.startswith(f"{SIGNS[line.mark]} ")
        elif line.mark != "head":
            assert line.text.startswith("  ")
    return [line.text for line in found]


def change(made: Stepper) -> list[str]:
    return texts(changed(made.turn(), made, Words(made)))


def has(lines: list[str], *beginnings: str) -> bool:
    """Whether some line begins with each."""
    return all(any(line.startswith(one) for line in lines) for one in beginnings)


def test_a_turn_says_what_it_did() -> None:
    made = at(5)
    assert change(made)[0] == Words(made).line(made.record)
    assert has(
        change(made),
        "+ answers.",
        "* sweep_at_us = ",
        "+ store runs/",
        "+ timer sweep is set, due at ",
        "  sends server → agent  GraphRun(",
        "  says run.queued  run=",
    )
    assert has(
        change(polling()),
        "* passing = true  (was false)",
        "  timer poll fires",
        "+ timer poll is set, due at",
        "+ question Sync to server is open, due at ",
        "  sends relay → server  Sync(",
    )


def test_what_is_deleted_is_gone() -> None:
    made = stepper("published/outbox")
    found: list[str] = []
    while made.search(made.wanted("change", "relay")):
        found += change(made)
    assert has(found, "+ store outbox/", "- store outbox/", "- question Complete to server is over")
    assert any(", which was Posting(" in line for line in found)


def test_a_record_that_is_no_turn_says_whose_part_it_is() -> None:
    made = at("event run.queued")
    assert change(made)[1].startswith(f"  part of turn {made.record.cause}: agent → server")
    late = stepper("chaos/lost_result")
    assert late.search(lambda at: type(late.records[at]).__name__ == "LateRecord")
    assert change(late)[1] == "  nobody is told: its question was over"


def test_a_turn_that_changes_nothing_says_so() -> None:
    made = stepper("chaos/killed_after_go")
    made.to(16)
    assert change(made)[1:] == ["  nothing changed"]


def test_state_marks_what_changed_in_this_turn_and_nothing_else() -> None:
    made = polling()
    mine = texts(state(made, of(made), made.turn()))
    assert has(mine, "* passing", "  commands")
    assert mine[0].startswith("relay is up, boot 0, after ")
    assert any(line.endswith("(was false)") for line in mine)
    other = texts(state(made, of(made, "server"), made.turn()))
    assert not any(line.startswith(("* ", "+ ")) for line in other)
    began = texts(state(at(1), of(at(1)), at(1).turn()))
    assert has(began, "+ answers")
    assert texts(state(at(1), of(at(1), "relay"), at(1).turn()))[1:] == [
        "  its attributes begin with its start"
    ]


def test_who_is_down_shows_what_it_knew() -> None:
    made = at("fault", "chaos/killed_after_go")
    assert change(made)[1] == "* relay is down  (was up)"
    shown = texts(state(made, of(made), made.turn()))
    assert shown[0].startswith("relay is down, boot 0")
    assert "what it knew when it was killed" in shown[1]


def test_a_clock_that_goes_wrong_is_told() -> None:
    made = at("fault", "chaos/day_ahead")
    found = []
    while True:
        found += change(made) + texts(state(made, of(made), None))
        if not made.search(made.wanted("fault")):
            break
    assert any(re.fullmatch("  its wall clock is 86400s ahead", line) for line in found)
    assert "  its wall clock is right again" in found
    slow = at("fault", "chaos/slow_clocks")
    assert "  its clocks go at 0.5 of the right rate" in change(slow)
    assert "* timer poll is set, due at 25.108s, in 25.108s" in change(slow)
    assert slow.to(653)
    assert change(slow)[-1] == "  its clocks go at the right rate again"


def test_the_mailbox_says_what_becomes_of_each() -> None:
    made = at("fault", "chaos/killed_after_go")
    assert texts(mailbox(made, "relay")) == [
        "1 under way to relay",
        "  from server → relay  StartAnswer(go=true)  sent in 12, lost in 15 at 7.456s by down",
    ]
    assert made.to(10)
    assert texts(mailbox(made, "relay"))[1].endswith("sent in 9, delivered in 11 at 6.656s")
    late = stepper("chaos/lost_result")
    assert late.to(65)
    assert any("too late in 66 at 32.554s" in line for line in texts(mailbox(late, "agent")))
    trio = stepper(driver="trio")
    sent = next(one for one in trio.records if isinstance(one, SendRecord))
    cut = stepper_of(msgspec.structs.replace(trio.section, records=trio.records[: sent.n]))
    assert cut.to(sent.n)
    assert texts(mailbox(cut, sent.envelope.target))[1].endswith(
        "still under way when the log ends"
    )


def test_timers_and_questions_stand_in_their_order() -> None:
    made = polling()
    shown = texts(timers(of(made)))
    assert shown[0] == "1 timer, 1 open question"
    assert re.match("  question [0-9]+ Sync to server, due at ", shown[1])
    assert shown[2].startswith("  timer poll, due at ")
    asleep = at("fault", "chaos/weekend")
    assert texts(timers(of(asleep)))[1:] == [
        "  its clock stands still",
        "  timer control, due 0s after it goes on, then every 3s",
        "  timer poll, due 4.098s after it goes on",
    ]


def test_rows_that_this_turn_wrote_are_marked() -> None:
    made = at(5)
    assert has(texts(store(of(made))), "the store of server has ", "  runs: 1 row")
    assert has(texts(table(made, of(made), "runs", made.turn())), "+ ")
    made.to(6)
    assert not has(texts(table(made, of(made), "runs", made.turn())), "+ ")
    gone = stepper("published/outbox")
    deleted = gone.wanted("change", "relay")
    while not has(shown := texts(table(gone, of(gone, "relay"), "outbox", gone.turn())), "- "):
        assert gone.search(deleted)
    assert shown[0] == "outbox of relay: 0 rows"


def test_a_long_table_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.step_text.ROWS_LIMIT", 1)
    made = stepper("chaos/lost_result")
    made.to_time(1 << 60)
    shown = texts(table(made, of(made, "server"), "runs", None))
    assert len(shown) == 3
    assert shown[2].endswith(" more")


def test_causes_lead_back_to_a_start() -> None:
    made = at("event run.terminal")
    words = Words(made)
    shown = texts(causes(made, words))
    assert shown[-1] == f"  {words.line(made.record)}"
    assert "starts, boot 0" in shown[1]
    assert cause_in_short(made, words).startswith(f"because of {made.record.cause} server: ")
    assert cause_in_short(at(1), words) == ""


def test_of_a_long_chain_of_causes_the_end_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.step_text.CAUSES_LIMIT", 3)
    made = at("event run.terminal")
    shown = texts(causes(made, Words(made)))
    assert re.fullmatch("[0-9]+ records led here, the last 3 are", shown[0])
    assert len(shown) == 4
    assert shown[-1] == f"  {Words(made).line(made.record)}"


def test_a_time_out_knows_its_question_wherever_one_comes_from() -> None:
    made = stepper("chaos/lost_result")
    made.search(lambda at: isinstance(made.records[at], UnansweredRecord))
    assert Words(made).of(made.record).startswith("time-out: no answer to ")
    assert "message" not in Words(made).of(made.record)


# What is wrong


def told(made: Stepper) -> list[str]:
    return texts(where(made, Words(made)))[1:]


def other(made: Stepper, number: int, **fields: Any) -> Stepper:
    records = [
        msgspec.structs.replace(one, **fields) if one.n == number else one for one in made.records
    ]
    return stepper_of(msgspec.structs.replace(made.section, records=records))


def test_nothing_is_wrong_with_a_good_log() -> None:
    made = stepper()
    assert told(made) == []
    while made.forward():
        assert told(made) == []


def test_what_is_undone_says_why() -> None:
    made = stepper("chaos/crashing_commits")
    undone = next(one for one in made.records if isinstance(one, UndoneRecord))
    made.to(undone.cause)
    assert told(made) == [f"! undone in {undone.n}: the actor was killed before its commit"]


def test_a_turn_that_differs_shows_both_versions() -> None:
    made = stepper()
    event = next(one for one in made.records if isinstance(one, EventRecord))
    made = other(made, event.n, event="run.other")
    made.to(event.cause)
    shown = told(made)
    assert shown[0] == "! the re-execution differs: the turn did something else"
    assert has(shown, "!   log: says run.other {run: ", "!   re-execution: says run.queued {run: ")
    made.to(event.cause + 4)
    made.moment("server")
    assert any(
        "differs from the log since" in one for one in texts(state(made, of(made, "server"), None))
    )
    lost = stepper()
    gone = [one for one in lost.records if one.n != event.n]
    lost = stepper_of(msgspec.structs.replace(lost.section, records=gone))
    lost.to(event.cause)
    assert has(told(lost), "!   re-execution: says run.queued", "!   log: sends GraphRun to agent")


def test_a_violation_and_a_stranger_are_told() -> None:
    made = stepper()
    made._judge = lambda _made: [Violation("no_harm", "harm was done", (1,))]
    assert told(made) == ["! violates no_harm: harm was done"]
    strange = other(stepper(), 1, actor="nobody")
    assert told(strange)[0] == "  nobody is not re-executed: a program, or no actor of this cell"
    assert change(strange)[2:] == ["  nothing is known of what it did"]


def test_one_that_cant_be_copied_says_so() -> None:
    made = polling()
    made.lanes["relay"].uncopyable = "its attribute turns holds a generator"
    assert "its attribute turns holds a generator" in texts(state(made, of(made), None))[1]


def test_what_the_log_does_not_have_is_sent_all_the_same() -> None:
    made = stepper()
    answer = next(one for one in made.records if isinstance(one, MessageRecord) and one.n > 5)
    gone = [one for one in made.records if one.n < answer.n]
    cut = stepper_of(msgspec.structs.replace(made.section, records=gone))
    cut.to(answer.cause)
    assert any(one.endswith("(nothing of it is in the log)") for one in change(cut))


def test_every_record_of_every_log_can_be_shown() -> None:
    views: list[Callable[[Stepper, Moment], Any]] = [
        lambda made, moment: state(made, moment, made.turn()),
        lambda made, moment: mailbox(made, moment.actor),
        lambda _made, moment: timers(moment),
        lambda _made, moment: store(moment),
        lambda made, moment: [
            line for name in moment.rows for line in table(made, moment, name, made.turn())
        ],
    ]
    for name in ("chaos/redeploy", "chaos/crashing_commits", "published/consent"):
        made = stepper(name)
        words = Words(made)
        for record in made.records[::9]:
            made.to(record.n)
            texts(changed(made.turn(), made, words))
            texts(causes(made, words))
            for view in views:
                texts(view(made, of(made)))
