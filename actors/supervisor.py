"""Supervision: whether an actor that failed is started again, one for one.

An actor that raises in a turn is rebuilt by its `on_start` from its store. A failure that is not a
matter of chance comes again at once, so restarts have an intensity: more than so many within so
long, and the replication ends with what happened.
"""

from __future__ import annotations

from collections import deque

import msgspec

from actors.errors import ActorFailedError
from transports.units import Duration


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often one actor may be started again: `restarts` times within `within_us`.

    Time is the world's, so that a faster clock forgives as much as a slow one.
    """

    restarts: int = 3
    within_us: int = 60_000_000


class GaveUpError(ActorFailedError):
    """An actor failed more often than its restart policy allows; its last failure is the cause."""

    def __init__(self, actor: str, turn: str, now_us: int, policy: RestartPolicy) -> None:
        super().__init__(actor, turn, now_us)
        count = f"{policy.restarts} restart{'' if policy.restarts == 1 else 's'}"
        allowed = f"its restart policy allows {count} within {Duration(policy.within_us)}"
        self.args = (f"{self}, and is not started again: {allowed}",)


class Supervisor:
    """Counts the restarts of each actor in one replication."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.policy = policy
        self._restarts_us: dict[str, deque[int]] = {}

    def reset(self) -> None:
        """Forget every restart, for the next replication."""
        self._restarts_us.clear()

    def allows(self, actor: str, now_us: int) -> bool:
        """Return whether an actor that fails now may start again, and count it if so."""
        past = self._restarts_us.setdefault(actor, deque())
        while past and now_us - past[0] > self.policy.within_us:
            past.popleft()
        if len(past) >= self.policy.restarts:
            return False
        past.append(now_us)
        return True
