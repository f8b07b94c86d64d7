"""So long after the last fault every run has ended and been seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.actor import Commit
from actors.messages import Complete, GetGraphRun, GraphRun
from scenarios.checks.converges_after_heal import converges_after_heal
from scenarios.checks.history import Violation
from tests.scenarios.checks.broken import OTHERS, played
from tests.scenarios.checks.tale import DONE, SEEN, S, Tale

NAME = "converges_after_heal"
HOUR = '[run]\nuntil = "1h"\n'
LOST_POLL = '[[fault]]\nkind = "drop"\nmessage = "GetGraphRun"\nnth = 1\n'


def bound(healed_s: int = 10, converge_s: int = 20, ended_s: int = 100) -> dict[str, int]:
    return {"healed_us": healed_s * S, "converge_us": converge_s * S, "ended_us": ended_s * S}


def poll(tale: Tale, answer: GraphRun | None, *, lost: bool = False) -> int:
    """Let claude ask for its run; return the number of its question."""
    asked = tale.say("claude", "server", GetGraphRun(command_id="r1"))
    if answer is not None:
        tale.say("server", "claude", answer, to=asked, lost=lost)
    return asked


def test_a_server_that_never_ends_a_run_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "server", "AgreeingServer", HOUR, healed_us=0, converge_us=600 * S)
    (found,) = converges_after_heal(history)
    (queued,) = history.events("run.queued")
    words = f"run {queued.fields['run']} should have ended by 600 s and has not ended"
    assert found == Violation(NAME, words, (queued.n,))


def test_an_agent_that_gives_up_has_not_seen_it(tmp_path: Path) -> None:
    times = {"healed_us": 30 * S, "converge_us": 600 * S}
    text = HOUR + LOST_POLL
    history = played(tmp_path, "agent", "ImpatientAgent", text, file=OTHERS, **times)
    (found,) = converges_after_heal(history)
    (run,) = history.stories
    assert found.sentence == f"agent should have seen the end of run {run} by 630 s and has not"
    (end,) = history.events("run.terminal")
    assert found.records == (end.n, history.sent(GetGraphRun)[0].n)


@pytest.mark.parametrize(
    ("queued_s", "ended_s", "due_s"), [(0, 30, 30), (0, 31, 30), (15, 35, 35), (15, 36, 35)]
)
def test_a_run_has_its_time_from_the_heal_or_from_its_own_beginning(
    queued_s: int, ended_s: int, due_s: int
) -> None:
    tale = Tale()
    tale.now_us = queued_s * S
    queued = tale.queue()
    tale.now_us = ended_s * S
    ended = tale.end("completed")
    words = f"run r1 should have ended by {due_s} s and ended only at {ended_s} s"
    found = [] if ended_s <= due_s else [Violation(NAME, words, (queued, ended))]
    assert tale.judge(converges_after_heal, **bound()) == found


def test_what_had_no_time_yet_or_no_bound_is_not_judged() -> None:
    tale = Tale()
    tale.now_us = 90 * S
    tale.queue()
    assert tale.judge(converges_after_heal, **bound()) == []
    assert len(tale.judge(converges_after_heal, **bound(ended_s=110))) == 1
    assert tale.judge(converges_after_heal, ended_us=200 * S) == []
    assert tale.judge(converges_after_heal, outcome="stuck", **bound(ended_s=110)) == []


@pytest.mark.parametrize(
    ("answer", "lost", "seen_s", "found"),
    [
        (SEEN, False, 25, False),
        (SEEN, False, 30, False),  # just in time
        (SEEN, True, 25, True),  # lost
        (SEEN, False, 31, True),  # too late
        (GraphRun(command_id="r1", status="running"), False, 25, True),
        (None, False, 25, True),  # unanswered
    ],
)
def test_an_agent_that_polls_sees_the_end(
    answer: GraphRun | None, lost: bool, seen_s: int, found: bool
) -> None:
    tale = Tale()
    tale.queue()
    first = poll(tale, None)
    ended = tale.end("completed")
    tale.now_us = seen_s * S
    poll(tale, answer, lost=lost)
    words = "claude should have seen the end of run r1 by 30 s and has not"
    expected = [Violation(NAME, words, (ended, first))] if found else []
    assert tale.judge(converges_after_heal, **bound()) == expected


def test_an_agent_that_is_down_need_not_see_it() -> None:
    tale = Tale()
    tale.queue()
    tale.end("completed")
    poll(tale, None)
    assert len(tale.judge(converges_after_heal, **bound())) == 1
    tale.kill("claude")
    assert tale.judge(converges_after_heal, **bound()) == []


def test_an_agent_that_does_not_poll_need_not_see_it() -> None:
    tale = Tale()
    tale.queue()
    tale.end("completed")
    assert tale.judge(converges_after_heal, **bound()) == []
    tale.now_us = 31 * S
    poll(tale, None)  # only after it was due
    assert tale.judge(converges_after_heal, **bound()) == []


@pytest.mark.parametrize("after", [True, False])
def test_what_a_server_committed_right_before_its_end_is_an_end_though_nobody_says_so(
    after: bool,
) -> None:
    tale = Tale()
    tale.queue()
    tale.now_us = 25 * S
    tale.say("relay", "server", Complete(command_id="r1", boot="b", delivery=1, completion=DONE))
    commit = Commit.SILENCED if after else Commit.KILLED
    tale.recorder.fault(tale.now_us, "server", commit.value, "kill")
    assert [found.sentence for found in tale.judge(converges_after_heal, **bound())] == (
        [] if after else ["run r1 should have ended by 30 s and has not ended"]
    )
