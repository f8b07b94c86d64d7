"""A completion that the server accepted is what the agent can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.messages import Accepted, Complete, Completion, GraphRun
from scenarios.checks.history import Violation
from scenarios.checks.nothing_accepted_lost import nothing_accepted_lost
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import DONE, SEEN, Tale
from tests.scenarios.checks.test_nothing_queued_lost import row, stores

NAME = "nothing_accepted_lost"
FAILED = Completion(execution_id="e1", status="failed", error="the Graph failed")


def accept(tale: Tale, done: Completion = DONE, end: bool = True) -> tuple[int, int]:
    """Let the relay post a completion and the server accept it; return both records' numbers."""
    body = Complete(command_id="r1", boot="b", delivery=1, completion=done)
    posted = tale.say("relay", "server", body)
    if end:
        tale.end(done.status, by=posted)
    return posted, tale.say("server", "relay", Accepted(command_id="r1"), to=posted)


def test_a_server_that_accepts_and_keeps_nothing_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "AgreeingServer", '[run]\nuntil = "900s"\n')
    (found,) = nothing_accepted_lost(history)
    posted, accepted, told = (history.turn(number) for number in found.records)
    kinds = [type(one.envelope.body) for one in (posted, accepted, told)]  # type: ignore[union-attr]  # messages have envelopes
    assert kinds == [Complete, Accepted, GraphRun]
    assert found.sentence.endswith("is completed, and then told agent that it is running")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"result": "yy"}, "another result"),
        ({"result": None}, "another result"),
        ({"result_truncated": True}, "another result"),
        ({"execution_id": "e2"}, "another result"),
        ({"total_tokens": 6}, "another result"),
        ({"reported_cost": 1.0}, "another result"),
        ({"error": "x"}, "another result"),
        ({"status": "failed"}, "that it is failed"),
        ({"status": "running"}, "that it is running"),
    ],
)
def test_whatever_else_is_told_is_found(change: dict[str, Any], told: str) -> None:
    tale = Tale()
    tale.queue()
    posted, accepted = accept(tale)
    poll = tale.recorder.timer(0, "server", 0, "x")
    shown = tale.say("server", "claude", msgspec.structs.replace(SEEN, **change), by=poll)
    words = f"the server accepted that run r1 is completed, and then told claude {told}"
    assert tale.judge(nothing_accepted_lost) == [Violation(NAME, words, (posted, accepted, shown))]


def test_an_acceptance_counts_though_the_relay_never_heard_it() -> None:
    tale = Tale()
    tale.queue()
    body = Complete(command_id="r1", boot="b", delivery=1, completion=DONE)
    posted = tale.say("relay", "server", body)
    tale.say("server", "relay", Accepted(command_id="r1"), to=posted, lost=True)
    assert len(tale.judge(nothing_accepted_lost, stores=stores(row("running")))) == 1


def test_what_is_kept_at_the_end_must_be_it() -> None:
    tale = Tale()
    tale.queue()
    numbers = accept(tale)
    words = "the server accepted that run r1 is completed, and kept "
    assert tale.judge(nothing_accepted_lost, stores=stores(row("running"))) == [
        Violation(NAME, words + "running", numbers)
    ]
    assert tale.judge(
        nothing_accepted_lost, stores=stores(row("completed", completion=FAILED))
    ) == [Violation(NAME, words + "another result", numbers)]
    kept = stores(row("completed", completion=DONE))
    assert tale.judge(nothing_accepted_lost, stores=kept) == []
    assert tale.judge(nothing_accepted_lost, stores=stores(row("running")), outcome="stuck") == []


def test_a_late_completion_is_kept_beside() -> None:
    tale = Tale()
    tale.queue()
    tale.end("interrupted")
    numbers = accept(tale, end=False)
    words = "the server accepted a late completion of run r1, and kept nothing of it"
    assert tale.judge(nothing_accepted_lost, stores=stores(row("interrupted"))) == [
        Violation(NAME, words, numbers)
    ]
    kept = stores(row("interrupted", late=DONE))
    assert tale.judge(nothing_accepted_lost, stores=kept) == []


def test_a_late_completion_is_known_though_the_end_was_never_told() -> None:
    """The server died at the commit that ended the run: its word of that never left."""
    tale = Tale()
    tale.queue()
    numbers = accept(tale, end=False)
    tale.event("run.late", by=numbers[0], run="r1", status="completed")
    body = GraphRun(command_id="r1", status="interrupted")
    tale.say("server", "claude", body, by=tale.recorder.timer(0, "server", 0, "x"))
    kept = stores(row("interrupted", late=DONE))
    assert tale.judge(nothing_accepted_lost, stores=kept) == []
    words = "the server accepted a late completion of run r1, and kept nothing of it"
    assert tale.judge(nothing_accepted_lost, stores=stores(row("interrupted"))) == [
        Violation(NAME, words, numbers)
    ]


def test_what_may_be() -> None:
    tale = Tale()
    tale.queue()
    early = tale.recorder.timer(0, "server", 0, "x")
    accept(tale)
    accept(tale, end=False)  # the same again
    body = GraphRun(command_id="r1", status="running")
    tale.say("server", "claude", body, by=early)  # overtaken
    poll = tale.recorder.timer(0, "server", 0, "x")
    tale.say("server", "claude", SEEN, by=poll)
    gone = GraphRun(command_id="r1", status="completed", replayed=True)  # its row was deleted
    tale.say("server", "claude", gone, by=poll)
    kept = stores(row("completed", completion=DONE))
    assert tale.judge(nothing_accepted_lost, stores=kept) == []


def test_what_the_server_says_it_does_not_know_is_not_judged() -> None:
    tale = Tale()
    tale.queue()
    body = Complete(command_id="r1", boot="b", delivery=1, completion=DONE)
    posted = tale.say("eve", "server", body)
    tale.event("run.completion_unknown", by=posted, run="r1")
    tale.say("server", "eve", Accepted(command_id="r1"), to=posted)
    assert tale.judge(nothing_accepted_lost, stores=stores(row("running"))) == []


def test_a_withheld_result_of_a_cancelled_run_is_as_it_should_be() -> None:
    tale = Tale()
    tale.queue()
    accept(tale, Completion(execution_id="e1", status="cancelled", result="xx"))
    poll = tale.recorder.timer(0, "server", 0, "x")
    seen = GraphRun(command_id="r1", status="cancelled", execution_id="e1")
    tale.say("server", "claude", seen, by=poll)
    assert tale.judge(nothing_accepted_lost) == []
