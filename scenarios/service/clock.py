"""The wall time of a deployed process: it never goes back, nor does it in the next process.

Where the machine's clock was set back, this one goes on at half its rate until that has caught up:
deadlines still pass, and a clock that was years ahead for a moment stops nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from actors.clocks import JUMP_US
from transports.units import DURATION_LIMIT_US, Duration

SECOND_US = 1_000_000
BEHIND_US = 60_000_000  # what a clock may be set back by without a word: less is its usual mending


class WallClock:
    """See the module's docstring. `wall_ns` and `steady_ns` are the machine's clocks."""

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._asked_us: tuple[int, int] | None = None  # both clocks, when it was asked last
        self.latest_us = 0  # the last that was told

    def go_on_from(self, kept_us: int) -> str:
        """Tell nothing less than this from now on; return what to say if that is much."""
        self.latest_us = max(self.latest_us, kept_us)
        behind_us = kept_us - self._wall_ns() // 1000
        if behind_us <= BEHIND_US:
            return ""
        behind = Duration(min(behind_us - behind_us % SECOND_US, DURATION_LIMIT_US))
        return (
            f"this machine's clock is {behind} behind what it was before;"
            " time goes on from there, at half its rate until the clock has caught up"
        )

    def has_told(self, stamp_us: int) -> None:
        """Tell nothing less than this from now on: somebody has added up the time himself."""
        self.latest_us = max(self.latest_us, stamp_us)

    def tell(self) -> tuple[int, int]:
        """Return the time in microseconds since 1970, and by how much it has jumped ahead.

        A jump of an hour or less is told as 0; more is a machine that slept, or a clock set.
        """
        wall_us, steady_us = self._wall_ns() // 1000, self._steady_ns() // 1000
        jump_us = passed_us = 0
        if self._asked_us is not None:
            passed_us = steady_us - self._asked_us[1]
            jump_us = wall_us - self._asked_us[0] - passed_us
        self._asked_us = wall_us, steady_us
        self.latest_us = max(wall_us, self.latest_us + passed_us // 2)
        return self.latest_us, jump_us if jump_us > JUMP_US else 0
