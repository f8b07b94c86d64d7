"""What ends a replication before its end, in the terms of its scenario."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from types import CodeType
from typing import Any

from actors.actor import Unanswered
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


def explained(
    error: Exception,
    actor: str,
    turn: Any,
    reachable: Container[str],
    names: Iterable[str],
    by_sending: bool,
) -> SimulationError | None:
    """Return what a KeyError of a turn says of its actor, None if that is its own affair.

    `by_sending` is whether one of the context's methods raised it that look up a target.
    """
    if not isinstance(error, KeyError) or not error.args:
        return None
    missing = error.args[0]
    if missing is Unanswered or (isinstance(turn, Envelope) and missing is type(turn.body)):
        return UnhandledMessageError(
            f"{actor} has no handler for {missing.__name__}: name it in `handlers`"
        )
    if by_sending and isinstance(missing, str) and missing not in reachable:
        return UnknownActorError(
            f"{actor} sent to {missing!r} on {describe_turn(turn)}, "
            f"but there are only {', '.join(names)}"
        )
    return None
