"""An agent's key stands for one run, and for one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.messages import KEY_REUSED, GraphRun, RunGraphSession
from scenarios.checks.history import Violation
from scenarios.checks.same_key_one_run import same_key_one_run
from tests.scenarios.checks.broken import OTHERS, played
from tests.scenarios.checks.tale import Tale

NAME = "same_key_one_run"
LOST_TICKET = '[engine]\nduration = "5s"\n[[fault]]\nkind = "drop"\nmessage = "GraphRun"\nnth = 1\n'


def call(session: str = "gs", **arguments: Any) -> RunGraphSession:
    return RunGraphSession(
        graph_session_id=session, idempotency_key="key-0001", arguments=arguments
    )


def ticket(run: str = "r1") -> GraphRun:
    return GraphRun(command_id=run, status="queued", replayed=True)


def test_a_server_that_takes_every_key_for_a_new_one_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "KeylessServer", LOST_TICKET, file=OTHERS)
    (found,) = same_key_one_run(history)
    first, second = (history.turn(number) for number in found.records)
    runs = [one.fields["run"] for one in (first, second)]  # type: ignore[union-attr]  # events have fields
    assert runs[0] != runs[1]
    assert found.sentence.endswith(f"stands for the runs {runs[0]} and {runs[1]}")


def test_a_second_ticket_is_found_by_the_answers_alone() -> None:
    tale = Tale()
    first = tale.say("claude", "server", call())
    lost = tale.say("server", "claude", ticket("r1"), to=first, lost=True)
    again = tale.say("claude", "server", call())
    other = tale.say("server", "claude", ticket("r2"), to=again)
    assert tale.judge(same_key_one_run) == [
        Violation(NAME, "claude's key key-0001 stands for the runs r1 and r2", (lost, other))
    ]


@pytest.mark.parametrize("other", [call("gs2"), call(a=1), call(a=None)])
def test_a_key_that_was_used_for_something_else_gets_no_ticket(other: RunGraphSession) -> None:
    tale = Tale()
    tale.queue()
    again = tale.say("claude", "server", other)
    shown = tale.say("server", "claude", ticket(), to=again)
    words = "claude used its key key-0001 for another request and got the ticket of run r1"
    assert tale.judge(same_key_one_run) == [Violation(NAME, words, (again, shown))]


def test_what_is_as_it_should_be() -> None:
    tale = Tale()
    tale.queue()
    tale.say("server", "claude", ticket(), to=tale.say("claude", "server", call()))
    tale.say("server", "claude", KEY_REUSED, to=tale.say("claude", "server", call("gs2")))
    tale.queue("r2", "eve")  # the same key is another agent's too
    tale.queue("r3", key="key-0002")
    tale.say("claude", "server", call())  # unanswered: neither a success nor a failure
    assert tale.judge(same_key_one_run) == []
