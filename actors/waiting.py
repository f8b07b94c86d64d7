"""Polls that are held back until their run changes, or their time is up."""

from __future__ import annotations

from typing import Any

from actors.actor import Context
from transports.envelope import Envelope

WAITING_LIMIT = 1_000  # runs that are waited for, and who waits for one: more is memory for floods
TIMER = "wait:"  # before the run's id


class Waiting:
    """Who waits for which run. A restart forgets them, and they ask again."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[int, list[Envelope[Any]]]] = {}  # until when, and who

    def hold(self, context: Context, envelope: Envelope[Any], run: str, wait_us: int) -> bool:
        """Hold a poll back; False if so many are that this one is better answered at once.

        All who wait for a run are answered when the first one's time is up.
        """
        due_us, waiting = self.held.get(run, (None, []))
        if len(self.held) >= WAITING_LIMIT or len(waiting) >= WAITING_LIMIT:
            return False
        waiting.append(envelope)
        if due_us is None or context.now_us + wait_us < due_us:
            self.held[run] = (context.now_us + wait_us, waiting)
            context.set_timer(f"{TIMER}{run}", wait_us)
        return True

    def release(self, context: Context, run: str) -> list[Envelope[Any]]:
        """Return who waits for a run, and wait no more."""
        context.cancel_timer(f"{TIMER}{run}")
        return self.held.pop(run, (0, []))[1]
