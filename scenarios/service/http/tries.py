"""Bounds on tries to sign in that failed: for each address, and for all together."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable

WINDOW_S = 600.0
ADDRESS_LIMIT = 10  # who mistypes needs three
TOTAL_LIMIT = 200  # many addresses are one attacker; a link from the console is not bounded by it
ADDRESSES_LIMIT = 10_000  # of those that are remembered


class Tries:
    """Counts what failed within the last ten minutes. Times are seconds of a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._total: deque[float] = deque(maxlen=TOTAL_LIMIT)
        self._by_address: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, address: str) -> int:
        """Return for how many seconds an address may not try; 0 if it may now."""
        mine = self._by_address.get(address, deque())
        waits = [
            times[-limit] + WINDOW_S - self._now()
            for times, limit in ((mine, ADDRESS_LIMIT), (self._total, TOTAL_LIMIT))
            if len(times) >= limit
        ]
        return max(0, math.ceil(max(waits, default=0.0)))

    def failed(self, address: str) -> None:
        """Note a try that failed."""
        times = self._by_address.setdefault(address, deque(maxlen=ADDRESS_LIMIT))
        self._by_address.move_to_end(address)
        times.append(self._now())
        self._total.append(self._now())
        if len(self._by_address) > ADDRESSES_LIMIT:
            self._by_address.popitem(last=False)
