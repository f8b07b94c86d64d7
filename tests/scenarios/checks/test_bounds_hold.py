"""Texts, results, lists, offers, open runs and outboxes stay within their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.journal import Posting
from actors.messages import (
    Command,
    Commands,
    Complete,
    Completion,
    Failure,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    SessionListing,
    SessionMeta,
    Sync,
)
from actors.server import Server
from scenarios.checks.bounds_hold import bounds_hold
from scenarios.checks.history import Violation
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import DONE, Tale

NAME = "bounds_hold"
META = SessionMeta(id="gs", project="default", name="demo", slug="demo")


def completion(**fields: Any) -> Complete:
    done = Completion(execution_id="e1", **{"status": "completed", **fields})
    return Complete(command_id="r1", boot="b", delivery=1, completion=done)


def test_a_relay_that_posts_whole_error_texts_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "relay", "WordyRelay")
    posted, told, *_ = bounds_hold(history)
    (run,) = history.stories
    words = f"relay posted for run {run} an error of more than 2000 characters"
    assert posted == Violation(NAME, words, (history.sent(Complete)[0].n,))
    assert told.sentence == "server told agent an error of more than 2000 characters"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"result": "x" * 100_000}, "a completion of more than 100000 characters"),
        ({"result": "🙂" * 50_000}, "a completion of more than 100000 characters"),
        ({"error": "🙂" * 1_001, "status": "failed"}, "an error of more than 2000 characters"),
        ({"result": "a\0"}, "text that can't be stored and sent as it is"),
        ({"error": "\ud800"}, "text that can't be stored and sent as it is"),
        ({"result": [float("inf")]}, "text that can't be stored and sent as it is"),
    ],
)
def test_what_may_not_be_posted(fields: dict[str, Any], what: str) -> None:
    tale = Tale()
    posted = tale.say("relay", "server", completion(**fields), lost=True)
    words = f"relay posted for run r1 {what}"
    assert tale.judge(bounds_hold) == [Violation(NAME, words, (posted,))]


@pytest.mark.parametrize(
    "fields",
    [
        {"result": "x" * 99_000},
        {"result_truncated": True},
        {"error": "🙂" * 1_000, "status": "failed"},
        {"result": {"a": [1, 2.5, None, "é"]}},
    ],
)
def test_what_may_be_posted(fields: dict[str, Any]) -> None:
    tale = Tale()
    tale.say("relay", "server", completion(**fields))
    assert tale.judge(bounds_hold) == []


def test_an_error_that_an_agent_reads_is_bounded() -> None:
    tale = Tale()
    first = tale.say("server", "claude", Failure(code="x", error="x" * 2_001))
    body = GraphRun(command_id="r1", status="failed", error="x" * 2_001)
    second = tale.say("server", "claude", body)
    tale.say("server", "claude", Failure(code="x", error="x" * 2_000))
    words = "server told claude an error of more than 2000 characters"
    assert sorted(tale.judge(bounds_hold), key=lambda each: each.records) == [
        Violation(NAME, words, (first,)),
        Violation(NAME, words, (second,)),
    ]


@pytest.mark.parametrize(("chars", "legal"), [(7, False), (8, True), (128, True), (129, False)])
def test_a_key_has_8_to_128_characters(chars: int, legal: bool) -> None:
    tale = Tale()
    queued = tale.queue(key="k" * chars)
    words = f"a key of {chars} characters got a ticket, 8 to 128 are allowed"
    found = [] if legal else [Violation(NAME, words, (queued - 1, queued + 1))]
    assert tale.judge(bounds_hold) == found


@pytest.mark.parametrize(("limit", "listed", "room"), [(1, 2, 1), (50, 51, 50), (60, 51, 50)])
def test_a_list_is_no_longer_than_asked(limit: int, listed: int, room: int) -> None:
    one = SessionListing(
        graph_session_id="gs", name="", description="", slug="", version=1, status="ready"
    )
    tale = Tale()
    asked = tale.say("claude", "server", ListGraphSessions(project_id="p", limit=limit))
    body = GraphSessions(project_id="p", sessions=(one,) * listed)
    told = tale.say("server", "claude", body, to=asked)
    words = f"server listed {listed} sessions to claude, {room} at most"
    assert tale.judge(bounds_hold) == [Violation(NAME, words, (asked, told))]


def test_a_server_that_offers_more_than_there_is_room_for_is_found(tmp_path: Path) -> None:
    text = '[run]\nuntil = "30s"\n[workload]\nruns = 3\n'
    relay = f'[relay]\nuse = "{Path(__file__).parent / "broken.py"}:NarrowRelay"\n'
    history = played(tmp_path, "server", "LavishServer", relay + text)
    found, *_ = bounds_hold(history)
    sync, offer = (history.turn(number) for number in found.records)
    assert sync.envelope.body.capacity == 1  # type: ignore[union-attr]  # a message
    assert len(offer.envelope.body.commands) == 3  # type: ignore[union-attr]  # a message


def test_an_offer_has_room_and_100_commands_at_most() -> None:
    tale = Tale()
    body = Sync(boot="b", sessions=(), open=(), capacity=200, poll_us=1)
    command = Command(
        command_id="r1", delivery=1, session="gs", slug="demo", generation=0, arguments={}
    )
    asked = tale.say("relay", "server", body)
    tale.say("server", "relay", Commands(commands=(command,) * 100), to=asked)
    assert tale.judge(bounds_hold) == []
    told = tale.say("server", "relay", Commands(commands=(command,) * 101), to=asked)
    words = "server offered 101 commands to relay, which had room for 100"
    assert tale.judge(bounds_hold) == [Violation(NAME, words, (asked, told))]


def test_open_runs_are_counted_for_each_agent_and_each_desktop() -> None:
    tale = Tale()
    tale.say("relay", "server", Sync(boot="b", sessions=(META,), open=(), capacity=1, poll_us=1))
    tale.queue("r1")
    tale.end("completed", "r1")
    tale.queue("r2", key="key-0002")
    mine = tale.queue("r3", key="key-0003")
    ours = tale.queue("r4", "eve")
    limits = {"server": Server.Config(agent_limit=1, device_limit=2)}
    assert tale.judge(bounds_hold, configs=limits) == [
        Violation(NAME, "claude has 2 runs open, 1 are allowed", (mine,)),
        Violation(NAME, "relay has 3 runs open, 2 are allowed", (ours,)),
    ]
    wider = {"server": Server.Config(agent_limit=2, device_limit=3)}
    assert tale.judge(bounds_hold, configs=wider) == []
    assert tale.judge(bounds_hold) == []  # a server without limits


def test_a_list_and_an_offer_may_be_as_long_as_asked() -> None:
    one = SessionListing(
        graph_session_id="gs", name="", description="", slug="", version=1, status="ready"
    )
    tale = Tale()
    asked = tale.say("claude", "server", ListGraphSessions(project_id="p", limit=2))
    tale.say("server", "claude", GraphSessions(project_id="p", sessions=(one,) * 2), to=asked)
    tale.say("server", "claude", GraphSessions(project_id="p", sessions=(one,) * 9))  # no question
    assert tale.judge(bounds_hold) == []


def test_an_outbox_is_bounded() -> None:
    complete = Complete(command_id="r", boot="b", delivery=1, completion=DONE)
    rows = {f"r{n}": Posting(complete=complete, order=n) for n in range(151)}
    full: dict[str, Any] = {"relay": {"outbox": rows}}
    assert Tale().judge(bounds_hold, stores=full) == [
        Violation(NAME, "relay's outbox holds 151 results, 150 at most")
    ]
    del rows["r0"]
    assert Tale().judge(bounds_hold, stores=full) == []
