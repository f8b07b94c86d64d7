"""When an agent should ask next: from a device's polls, and how long its Graphs took before.

A hint is fixed at each change of a run and stored with it, so that an answer is equal in every byte
while nothing changes. For a queued run it is the time to the device's next poll, and behind that
the runs that come first and the shortest that its Graph tends to take; before that there is nothing
to see. For a running one it is the pause between two polls that lets the result wait about a
fortieth of the Graph's usual time. What a server has not seen yet it takes from the account.
"""

from __future__ import annotations

from math import isqrt

import msgspec

from actors.actor import Store, TableSpec

RUNNING_HINT_US = 10_000_000  # the account's flat poll that beats a backoff
REMEMBERED = 20  # durations a Graph: older ones tell of a Graph that was changed since
ENOUGH = 5  # below that a quantile is one run's chance
MISSED_POLLS = 3  # a device that let so many pass is away: only its return is worth asking for
LEAST_US, MOST_US = 1_000_000, 600_000_000  # no hint asks for a flood, or forgets the agent
LATENESS = 40  # a result may wait this part of its Graph's usual time


class Pace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long a session's last runs took, the newest last."""

    took_us: tuple[int, ...]


PACES = TableSpec("paces", Pace)


def quantile(values: tuple[int, ...], percent: int) -> int:
    """Return the value that `percent` of these don't exceed; there must be one."""
    return sorted(values)[(len(values) - 1) * percent // 100]


class Hints:
    """A server's hints. When it last heard of a device is a cache: lost, a whole poll is hinted."""

    def __init__(self, store: Store, wait_limit_us: int) -> None:
        self.paces = store.table(PACES)
        self.heard: dict[str, int] = {}
        self.wait_limit_us = int(wait_limit_us)  # plain: what is stored has no form for a Duration

    def took(self, device: str, session: str) -> tuple[int, ...]:
        """Return what the session's last runs took, nothing before there are enough of them."""
        pace = self.paces.get((device, session))
        return () if pace is None or len(pace.took_us) < ENOUGH else pace.took_us

    def remember(self, device: str, session: str, took_us: int) -> None:
        """Count a run that has ended by itself."""
        pace = self.paces.get((device, session))
        before = () if pace is None else pace.took_us
        took = (*before, took_us)[-REMEMBERED:]
        self.paces.put((device, session), Pace(took_us=took))

    def to_poll_us(self, device: str, poll_us: int, now_us: int) -> int:
        """Return the time to a device's next poll, a whole interval if nobody knows."""
        heard_us = self.heard.get(device)
        if heard_us is None:
            return poll_us
        since_us = max(0, now_us - heard_us)
        if since_us >= MISSED_POLLS * poll_us:
            return MISSED_POLLS * poll_us
        return poll_us - since_us % poll_us

    def queued_us(self, device: str, session: str, poll_us: int, ahead: int, now_us: int) -> int:
        """Return the hint of a run that has just been queued behind `ahead` others."""
        took = self.took(device, session)
        work_us = ahead * quantile(took, 50) + quantile(took, 10) if took else 0
        return _bounded(self.to_poll_us(device, poll_us, now_us) + work_us)

    def running_us(self, device: str, session: str) -> int:
        """Return the hint of a run that has just started.

        With pauses p between waits w a result is late by p²/2(p + w) on average.
        """
        took = self.took(device, session)
        if not took:
            return RUNNING_HINT_US
        late_us = quantile(took, 50) // LATENESS
        return _bounded(late_us + isqrt(late_us * late_us + 2 * late_us * self.wait_limit_us))


def _bounded(hint_us: int) -> int:
    return max(LEAST_US, min(hint_us, MOST_US))
