"""A mailbox: what waits for an actor's next turn on the trio host.

Messages are bounded and keep their order. What its own timers and time-outs have to tell goes past
them: an actor that is behind with its mail must still learn that its time is up.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import trio

from transports.envelope import Envelope

MAILBOX_LIMIT = 256  # one slow actor may hold back its own traffic, never the host's memory


class Mailbox:
    """One actor's bounded mailbox: many put into it, its actor's task alone takes.

    A link waits in `put` while it is full, and so stops reading: that is back-pressure. Who can't
    wait calls `offer`. Paused, it takes in and gives nothing out; closed, it takes nothing in.
    """

    __slots__ = ("_alarms", "_limit", "_mail", "_putters", "_takers", "closed", "paused")

    def __init__(self, limit: int = MAILBOX_LIMIT) -> None:
        self._limit = limit
        self._mail: deque[Envelope[Any]] = deque()
        self._alarms: deque[list[Any]] = deque()
        self._putters = trio.lowlevel.ParkingLot()
        self._takers = trio.lowlevel.ParkingLot()
        self.closed = False
        self.paused = False

    def __len__(self) -> int:
        """How many turns wait: messages and alarms."""
        return len(self._mail) + len(self._alarms)

    @property
    def idle(self) -> bool:
        """Whether the actor's task waits here with nothing to do, so that a turn may go past it."""
        return bool(self._takers) and not (self.paused or self.closed)

    async def put(self, envelope: Envelope[Any]) -> bool:
        """Put a message in, once there is room; False if the mailbox is closed before."""
        while not self.closed and len(self._mail) >= self._limit:
            await self._putters.park()
        return not self.closed and self.offer(envelope)

    def offer(self, envelope: Envelope[Any]) -> bool:
        """Put a message in if there is room; return whether there was."""
        if self.closed or len(self._mail) >= self._limit:
            return False
        self._mail.append(envelope)
        self._takers.unpark()
        return True

    def alarm(self, due: list[Any]) -> None:
        """Tell that a timer or a time-out is due; one that still waits is not told twice.

        So there are never more alarms than the actor has timers and open questions.
        """
        if not any(waiting is due for waiting in self._alarms):
            self._alarms.append(due)
            self._takers.unpark()

    async def get(self) -> Any:
        """Take what is next: an alarm, else the oldest message. Waits while there is none."""
        if not self.paused and (self._alarms or self._mail):
            await trio.lowlevel.checkpoint()  # an actor that never runs dry lets others have turns
        while self.paused or not (self._alarms or self._mail):
            await self._takers.park()
        return self._alarms.popleft() if self._alarms else self._take()

    def next_message(self) -> Envelope[Any] | None:
        """Take the oldest message if it is what `get` would give at once, else None."""
        if self.paused or self._alarms or not self._mail:
            return None
        return self._take()

    def _take(self) -> Envelope[Any]:
        envelope = self._mail.popleft()
        self._putters.unpark()
        return envelope

    def resume(self) -> None:
        """Give out again what came in while it was paused."""
        self.paused = False
        self._takers.unpark_all()

    def close(self) -> list[Envelope[Any]]:
        """Take nothing in any more, and return the messages that nobody will read."""
        left = list(self._mail)
        self._mail.clear()
        self._alarms.clear()
        self.closed = True
        self._putters.unpark_all()
        return left
