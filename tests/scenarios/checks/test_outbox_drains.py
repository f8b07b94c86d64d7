"""No result stays in an outbox once it was accepted, or long after the last fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.journal import Posting
from actors.messages import Accepted, Complete
from scenarios.checks.history import Violation
from scenarios.checks.outbox_drains import outbox_drains
from tests.scenarios.checks.broken import played
from tests.scenarios.checks.tale import DONE, S, Tale

NAME = "outbox_drains"
COMPLETE = Complete(command_id="r1", boot="b", delivery=1, completion=DONE)
STORES: dict[str, Any] = {"relay": {"outbox": {"r1": Posting(complete=COMPLETE, order=1)}}}
HELD = "relay still holds the result of run r1, which the server has accepted"


def test_a_relay_that_keeps_what_was_accepted_is_found(tmp_path: Path) -> None:
    history = played(tmp_path, "relay", "HoardingRelay")
    (found,) = outbox_drains(history)
    (run,) = history.stories
    assert found.sentence == HELD.replace("r1", run)
    assert found.records[1] == history.sent(Accepted)[-1].n


def test_a_result_that_was_accepted_is_gone() -> None:
    tale = Tale()
    made = tale.finish()
    posted = tale.say("relay", "server", COMPLETE, by=made)
    accepted = tale.say("server", "relay", Accepted(command_id="r1"), to=posted)
    found = [Violation(NAME, HELD, (made, accepted))]
    assert tale.judge(outbox_drains, stores=STORES) == found
    assert tale.judge(outbox_drains) == []
    assert tale.judge(outbox_drains, stores=STORES, outcome="failed") == []


@pytest.mark.parametrize("how", ["lost", "undone", "before the last post"])
def test_an_acceptance_that_the_relay_can_t_know_of(how: str) -> None:
    tale = Tale()
    made = tale.finish()
    posted = tale.say("relay", "server", COMPLETE, by=made)
    accepted = tale.say("server", "relay", Accepted(command_id="r1"), to=posted, lost=how == "lost")
    if how == "undone":
        tale.recorder.undone(0, "relay", accepted, "the commit failed")
    elif how != "lost":
        again = tale.recorder.timer(0, "relay", 0, "poll")
        tale.say("relay", "server", COMPLETE, by=again)
    assert tale.judge(outbox_drains, stores=STORES) == []


@pytest.mark.parametrize(
    ("ended_s", "due_s"), [(39, None), (40, 40), (100, 40)]
)  # faults end at 10 s, the result is there at 20 s, and has 20 s
def test_a_result_has_its_time_after_the_last_fault(ended_s: int, due_s: int | None) -> None:
    tale = Tale()
    tale.now_us = 20 * S
    made = tale.finish()
    tale.say("relay", "server", COMPLETE, by=made, lost=True)
    bound = {"healed_us": 10 * S, "converge_us": 20 * S, "ended_us": ended_s * S}
    words = f"relay has not brought the result of run r1 to the server by {due_s} s"
    found = [] if due_s is None else [Violation(NAME, words, (made,))]
    assert tale.judge(outbox_drains, stores=STORES, **bound) == found
    for left_out in ("healed_us", "converge_us"):  # no bound, nothing to judge
        less = {key: value for key, value in bound.items() if key != left_out}
        assert tale.judge(outbox_drains, stores=STORES, **less) == []


def test_a_key_may_end_with_the_run() -> None:
    bound = {"healed_us": 0, "converge_us": S, "ended_us": S}
    stores: dict[str, Any] = {"relay": {"outbox": {("a", "r1"): STORES["relay"]["outbox"]["r1"]}}}
    (found,) = Tale().judge(outbox_drains, stores=stores, **bound)
    assert "run r1" in found.sentence


def test_a_relay_that_is_down_brings_nothing() -> None:
    bound = {"healed_us": 0, "converge_us": S, "ended_us": S}
    tale = Tale()
    tale.kill("relay")
    assert tale.judge(outbox_drains, stores=STORES, **bound) == []


def test_a_result_of_which_nothing_is_known_was_there_before() -> None:
    bound = {"healed_us": 0, "converge_us": S, "ended_us": S}
    words = "relay has not brought the result of run r1 to the server by 1 s"
    assert Tale().judge(outbox_drains, stores=STORES, **bound) == [Violation(NAME, words)]
