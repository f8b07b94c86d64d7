"""What ends a replication before its end is told in the scenario's terms."""

from __future__ import annotations

from typing import Any

import pytest

from actors import errors
from actors.messages import GetGraphRun
from transports.envelope import Envelope

ENVELOPE = Envelope(1, "agent", "server", 0, 0, GetGraphRun(command_id="r"))


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (ENVELOPE, "GetGraphRun from agent"),
        ("poll", "timer 'poll'"),
        ("its start", "its start"),
        (7, "a time-out"),
        (None, "a turn"),
    ],
)
def test_a_turn_is_named_by_its_input(turn: Any, words: str) -> None:
    assert errors.describe_turn(turn) == words


def test_a_failure_tells_whose_turn_it_was_and_when() -> None:
    error = errors.ActorFailedError("relay", "timer 'poll'", 1_500_000)
    assert str(error) == "relay failed on timer 'poll' at 1.5 s"
    assert isinstance(error, errors.SimulationError)


def test_who_raised_an_error_is_the_innermost_function_alone() -> None:
    def inner() -> None:
        raise KeyError("x")

    def outer() -> None:
        inner()

    with pytest.raises(KeyError) as caught:
        outer()
    assert errors.raised_in(caught.value, {inner.__code__})
    assert not errors.raised_in(caught.value, {outer.__code__})
