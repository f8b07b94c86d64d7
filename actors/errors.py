"""What ends a replication before its end, in the terms of its scenario."""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType
from typing import Any

from transports.envelope import Envelope


class SimulationError(Exception):
    """A replication could not go on."""


class WouldSleepForeverError(SimulationError):
    """Nothing is due any more, but the replication's end was not reached."""


class LimitReachedError(SimulationError):
    """The replication did not end within its limit of scenario time."""


class UnhandledMessageError(SimulationError):
    """An actor got a message type that its handlers don't name."""


class UnknownActorError(SimulationError):
    """An actor sent to a name that the scenario doesn't have."""


class ActorFailedError(SimulationError):
    """An actor raised an exception in a turn; it is this error's cause."""

    def __init__(self, actor: str, turn: str, now_us: int) -> None:
        self.actor = actor
        self.turn = turn
        self.now_us = now_us
        super().__init__(f"{actor} failed on {turn} at {now_us / 1e6:g} s")


def describe_turn(turn: Any) -> str:
    """Return a turn's input in words."""
    if isinstance(turn, Envelope):
        return f"{type(turn.body).__name__} from {turn.source}"
    if isinstance(turn, str):
        return turn if " " in turn else f"timer {turn!r}"
    return "a time-out" if isinstance(turn, int) else "a turn"


def raised_in(error: BaseException, codes: Collection[CodeType]) -> bool:
    """Whether one of these functions raised an error itself, and nothing that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code in codes
