"""A run that has a terminal status keeps it."""

from __future__ import annotations

from pathlib import Path

from actors.messages import GraphRun
from scenarios.checks.history import Violation
from scenarios.checks.terminal_never_changes import status_of, terminal_never_changes
from tests.scenarios.checks.broken import OTHERS, played
from tests.scenarios.checks.tale import Tale
from tests.scenarios.checks.test_nothing_queued_lost import row, stores

NAME = "terminal_never_changes"
OVERDUE = """
run_deadline = "30s"
[engine]
duration = "60s"
[run]
until = "300s"
[[agent]]
poll = "every 5s"
"""


def told(tale: Tale, status: str, by: int) -> int:
    return tale.say("server", "claude", GraphRun(command_id="r1", status=status), by=by)


def test_a_server_that_takes_the_last_end_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "FickleServer", OVERDUE, file=OTHERS)
    (found,) = terminal_never_changes(history)
    ended, told_last = (history.turn(number) for number in found.records)
    assert ended is history.events("run.terminal")[0]
    assert told_last in history.sent(GraphRun)
    (run,) = history.stories
    assert found.sentence == f"run {run} was interrupted and then cancelled"


def test_an_answer_with_another_status_is_found() -> None:
    tale = Tale()
    ended = tale.end("completed")
    told(tale, "completed", ended)
    later = told(tale, "cancelled", tale.recorder.timer(0, "server", 0, "x"))
    assert tale.judge(terminal_never_changes) == [
        Violation(NAME, "run r1 was completed and then cancelled", (ended, later))
    ]


def test_answers_alone_prove_it_and_a_lost_one_proves_as_much() -> None:
    tale = Tale()
    first = told(tale, "failed", 1)
    second = told(tale, "running", 2)
    assert tale.judge(terminal_never_changes) == [
        Violation(NAME, "run r1 was failed and then running", (first, second))
    ]


def test_a_second_end_and_a_start_after_the_end_are_found() -> None:
    tale = Tale()
    first = tale.end("expired")
    second = tale.end("completed")
    assert tale.judge(terminal_never_changes) == [
        Violation(NAME, "run r1 was expired and then completed", (first, second))
    ]
    tale = Tale()
    first = tale.end("expired")
    second = tale.event("run.started", run="r1", device="relay")
    assert tale.judge(terminal_never_changes) == [
        Violation(NAME, "run r1 was expired and then running", (first, second))
    ]


def test_an_answer_that_was_overtaken_is_no_change() -> None:
    tale = Tale()
    early = tale.recorder.timer(0, "server", 0, "x")
    tale.event("run.started", run="r1", device="relay")
    told(tale, "completed", tale.end("completed"))
    told(tale, "running", early)  # said before, arrived after
    told(tale, "completed", tale.recorder.timer(0, "server", 0, "x"))
    assert tale.judge(terminal_never_changes) == []


def test_what_is_said_in_the_turn_of_the_end_is_no_change() -> None:
    tale = Tale()
    turn = tale.recorder.timer(0, "server", 0, "x")
    told(tale, "running", turn)  # answered before the turn ended the run
    tale.end("completed", by=turn)
    assert tale.judge(terminal_never_changes) == []


def test_the_row_at_the_end_counts() -> None:
    tale = Tale()
    ended = tale.end("completed")
    assert tale.judge(terminal_never_changes, stores=stores(row("failed"))) == [
        Violation(NAME, "run r1 was completed and is failed at the end", (ended,))
    ]
    assert tale.judge(terminal_never_changes, stores=stores(row("completed"))) == []


def test_the_status_of_what_was_said() -> None:
    tale = Tale()
    tale.end("failed")
    tale.event("run.started", run="r1", device="relay")
    told(tale, "queued", 1)
    story = tale.history().stories["r1"]
    said = [*story.ends, *story.starts, *story.answers]
    assert [status_of(one) for one in said] == ["failed", "running", "queued"]
