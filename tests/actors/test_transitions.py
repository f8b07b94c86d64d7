"""The table of a run's states: whole, watched, and with a way out of each."""

from __future__ import annotations

from actors.messages import TERMINAL
from actors.transitions import ERRORS, TARGETS, TRANSITIONS


def test_no_state_is_without_a_watcher_and_a_way_out_that_the_server_takes_itself() -> None:
    for rule in TRANSITIONS:
        assert rule.watcher
        assert rule.owner
        assert rule.task in {"working", "completed", "failed", "cancelled"}
    for state in {rule.target for rule in TRANSITIONS} - TERMINAL:
        ways = [rule for rule in TRANSITIONS if rule.source == state]
        assert any(rule.owner == "server" and rule.cause == "deadline" for rule in ways)
    assert len({(rule.source, rule.cause) for rule in TRANSITIONS}) == len(TRANSITIONS)


def test_the_terminal_statuses_are_those_that_nothing_leaves() -> None:
    left = {rule.source for rule in TRANSITIONS}
    assert {rule.target for rule in TRANSITIONS} - left == TERMINAL
    assert not TERMINAL & left


def test_each_change_is_found_by_what_it_comes_from() -> None:
    assert len(TARGETS) == len(TRANSITIONS)
    assert {cause for _, cause in TARGETS} >= set(ERRORS)
