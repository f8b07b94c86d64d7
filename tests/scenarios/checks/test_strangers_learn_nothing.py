"""Another agent's run is to an agent what an unknown id is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.messages import NOT_FOUND, CancelGraphRun, Failure, GetGraphRun, GraphRun
from scenarios.checks.history import Violation
from scenarios.checks.strangers_learn_nothing import strangers_learn_nothing
from tests.scenarios.checks.broken import OTHERS, played
from tests.scenarios.checks.tale import SEEN, Tale

NAME = "strangers_learn_nothing"
LEAK = """
[run]
until = "300s"
[[agent]]
name = "claude"
leak_to = "eve"
[[agent]]
name = "eve"
runs = 0
"""
WORDS = "eve asked for claude's run r1 and got another answer than for an id that nobody has"


def ask(tale: Tale, body: Any, answer: Any, **how: Any) -> tuple[int, int]:
    """Let eve ask something and be answered; return both records' numbers."""
    asked = tale.say("eve", "server", body)
    return asked, tale.say("server", "eve", answer, to=asked, **how)


@pytest.mark.parametrize("server", ["TalkativeServer", "OpenServer"])
def test_a_server_that_tells_them_apart_is_found(tmp_path: Path, server: str) -> None:
    history = played(tmp_path, "server", server, LEAK, file=OTHERS)
    (found,) = strangers_learn_nothing(history)
    (run,) = history.stories
    assert found.sentence == WORDS.replace("r1", run)
    question, answer = (history.turn(number) for number in found.records)
    assert question.envelope.source == answer.envelope.target == "eve"  # type: ignore[union-attr]  # messages


def test_the_built_in_server_tells_nothing(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "Server", LEAK, file=OTHERS)
    assert len(history.sent(Failure)) == 4
    assert list(strangers_learn_nothing(history)) == []


@pytest.mark.parametrize("kind", [GetGraphRun, CancelGraphRun])
@pytest.mark.parametrize(
    "answer", [SEEN, Failure(code="not_found", error="not yours"), Failure(code="x", error="x")]
)
def test_without_an_unknown_id_the_protocol_s_answer_counts(kind: type[Any], answer: Any) -> None:
    tale = Tale()
    tale.queue()
    numbers = ask(tale, kind(command_id="r1"), answer, lost=True)
    assert tale.judge(strangers_learn_nothing) == [Violation(NAME, WORDS, numbers)]


def test_a_server_s_own_words_are_good_if_they_are_the_same_for_both() -> None:
    tale = Tale()
    tale.queue()
    own = Failure(code="no", error="no")
    ask(tale, GetGraphRun(command_id="r9"), own)
    ask(tale, GetGraphRun(command_id="r1"), own)
    assert tale.judge(strangers_learn_nothing) == []
    numbers = ask(tale, CancelGraphRun(command_id="r1"), own)  # of cancelling none was unknown
    assert tale.judge(strangers_learn_nothing) == [Violation(NAME, WORDS, numbers)]


def test_a_run_that_is_shown_to_another_without_a_question_is_found() -> None:
    tale = Tale()
    tale.queue()
    shown = tale.say("server", "eve", SEEN)
    assert tale.judge(strangers_learn_nothing) == [
        Violation(NAME, "eve was shown claude's run r1", (shown,))
    ]


def test_its_own_agent_may_see_it_and_an_answer_that_never_came_tells_nothing() -> None:
    tale = Tale()
    tale.queue()
    poll = tale.say("claude", "server", GetGraphRun(command_id="r1"))
    tale.say("server", "claude", SEEN, to=poll)
    tale.say("eve", "server", GetGraphRun(command_id="r1"))
    ask(tale, GetGraphRun(command_id="r1"), NOT_FOUND)
    tale.say(
        "server", "eve", GraphRun(command_id="r7", status="running")
    )  # nobody's, as far as is known
    assert tale.judge(strangers_learn_nothing) == []
