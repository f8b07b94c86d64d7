"""Each queued run has ended, or still stands on the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from actors.ledger import Run, Ticket
from actors.messages import GraphRun
from scenarios.checks.history import Violation
from scenarios.checks.nothing_queued_lost import nothing_queued_lost
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import Tale

NAME = "nothing_queued_lost"
TICKETS = {("claude", "key-0001"): Ticket(meaning=b"", command_id="r1")}
GONE = "run r1 was queued and never ended, and the server no longer has it"


def row(status: str = "queued", **fields: Any) -> Run:
    """A run's row as a server has it."""
    plain: dict[str, Any] = {
        "command_id": "r1",
        "agent": "claude",
        "key": "key-0001",
        "device": "relay",
        "session": "gs",
        "slug": "demo",
        "generation": 0,
        "arguments": {},
        "status": status,
        "queued_us": 0,
        "open_on": "relay",
        "open_for": "claude",
        "due_us": 1,
    }
    return Run(**{**plain, **fields})


def stores(*rows: Run, tickets: Any = TICKETS) -> dict[str, Any]:
    """The server's store at the end."""
    return {"server": {"runs": {one.command_id: one for one in rows}, "tickets": tickets}}


def test_a_server_that_forgets_what_it_offered_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "LosingServer", '[run]\nuntil = "60s"\n')
    (found,) = nothing_queued_lost(history)
    (number,) = found.records
    queued = history.turn(number)
    assert queued is history.events("run.queued")[0]
    run = queued.fields["run"]
    assert found == Violation(NAME, GONE.replace("r1", run), (number,))


def test_a_ticket_alone_proves_that_a_run_was_queued() -> None:
    tale = Tale()
    tale.recorder.records.clear()
    queued = tale.queue()
    assert tale.judge(nothing_queued_lost, stores=stores()) == [Violation(NAME, GONE, (queued,))]


def test_a_row_without_a_due_time_is_watched_by_nobody() -> None:
    tale = Tale()
    queued = tale.queue()
    words = "run r1 was queued and never ended, and nothing watches it"
    found = tale.judge(nothing_queued_lost, stores=stores(row(due_us=None)))
    assert found == [Violation(NAME, words, (queued,))]


def test_a_run_that_stands_or_has_ended_is_not_lost() -> None:
    tale = Tale()
    tale.queue()
    assert tale.judge(nothing_queued_lost, stores=stores(row())) == []
    tale.end("expired")
    assert tale.judge(nothing_queued_lost, stores=stores()) == []
    told = Tale()
    told.queue()
    told.say("server", "claude", GraphRun(command_id="r1", status="failed"), lost=True)
    assert told.judge(nothing_queued_lost, stores=stores()) == []


def test_it_judges_only_stores_that_it_knows() -> None:
    tale = Tale()
    tale.queue()
    assert tale.judge(nothing_queued_lost) == []
    assert tale.judge(nothing_queued_lost, stores=stores(tickets={})) == []
    assert tale.judge(nothing_queued_lost, stores=stores(), outcome="failed") == []
    assert tale.judge(nothing_queued_lost, stores=stores(), outcome="limit reached") != []
