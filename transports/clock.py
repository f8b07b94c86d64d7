"""Clocks: what an actor may know of time."""

from __future__ import annotations

from typing import Protocol

EPOCH_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z: the virtual world's first wall time
RIGHT_PPM = 1_000_000  # the rate of a clock that is right, in millionths


class Clock(Protocol):
    """Two clocks in whole microseconds, so that a last-bit difference can't change an order."""

    @property
    def now_us(self) -> int:
        """Monotonic time since this boot: starts at 0, never goes back."""

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970 that never goes back, whatever the machine's clock does."""


class World(Protocol):
    """Whoever moves virtual time."""

    now_us: int


class VirtualClock:
    """One actor's view of a world's time; its boots start at 0, its wall clock is the world's."""

    __slots__ = ("_boot_us", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._boot_us = 0

    @property
    def booted_us(self) -> int:
        """When the monotonic clock started; later by as long as it has stood still."""
        return self._boot_us

    def reboot(self) -> None:
        """Start the monotonic clock anew, as a machine that boots does."""
        self._boot_us = self._world.now_us

    def stand_still(self, slept_us: int) -> None:
        """Let the monotonic clock have stood still so long, as while a machine sleeps."""
        self._boot_us += slept_us

    @property
    def now_us(self) -> int:
        """Monotonic time since this boot: starts at 0, never goes back."""
        return self._world.now_us - self._boot_us

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970: virtual time never goes back, so neither does this."""
        return EPOCH_US + self._world.now_us


class WrongClock:
    """One actor's two clocks once something meddled with them: off, stepped, or at another rate.

    Both go at a rate, in millionths: 1,000,000 is right, 1,010,000 gains a second in a hundred. The
    wall clock may be shifted besides. `stamp_us` is the larger of the last one given and the
    clock's, so it stands still where the clock goes back; that is kept for one boot, and an actor
    that must not see it go back after that has to store it. It never comes before 1970.

    What is `world_us` here is the world's time, right by definition.
    """

    __slots__ = (
        "_at_us", "_boot", "_epoch_us", "_given_us", "_ran", "_rates", "_stopped", "rate_ppm",
    )  # fmt: skip

    def __init__(self, world_us: int, boot_us: int = 0, epoch_us: int = EPOCH_US) -> None:
        self.rate_ppm = RIGHT_PPM
        self._rates: dict[str, int] = {}
        self._epoch_us = epoch_us
        # In millionths of a microsecond, so that a change of rate loses no fraction of one:
        self._ran = world_us * RIGHT_PPM  # how long they have run at `_at_us`
        self._at_us = world_us
        self._boot = boot_us * RIGHT_PPM  # how long they had run when the boot began
        self._stopped: int | None = None  # likewise, when the machine went to sleep
        self._given_us = epoch_us + world_us  # so far they were right

    def _run_at(self, world_us: int) -> int:
        return self._ran + (world_us - self._at_us) * self.rate_ppm

    def now_us(self, world_us: int) -> int:
        """Monotonic time since this boot."""
        run = self._run_at(world_us) if self._stopped is None else self._stopped
        return (run - self._boot) // RIGHT_PPM

    def wall_us(self, world_us: int) -> int:
        """Return what `stamp_us` would say, without saying it."""
        return max(self._given_us, self._epoch_us + self._run_at(world_us) // RIGHT_PPM)

    def stamp_us(self, world_us: int) -> int:
        """Wall time since 1970: the larger of the last one given and the clock's."""
        self._given_us = self.wall_us(world_us)
        return self._given_us

    def lasts_us(self, delay_us: int) -> int:
        """Return how long the world waits until so much time has passed here, never too short."""
        return -(-delay_us * RIGHT_PPM // self.rate_ppm)

    def shift(self, by_us: int) -> None:
        """Let the wall clock jump."""
        self._epoch_us += by_us

    def set_rate(self, world_us: int, reason: str, rate_ppm: int) -> None:
        """Let both clocks go at a rate from now on; those of several reasons multiply."""
        self._ran, self._at_us = self._run_at(world_us), world_us
        self._rates.pop(reason, None)
        if rate_ppm != RIGHT_PPM:
            self._rates[reason] = rate_ppm
        self.rate_ppm = RIGHT_PPM
        for each_ppm in self._rates.values():
            self.rate_ppm = max(1, self.rate_ppm * each_ppm // RIGHT_PPM)

    def stop(self, world_us: int) -> None:
        """Let the monotonic clock stand still, as while a machine sleeps."""
        self._stopped = self._run_at(world_us)

    def go_on(self, world_us: int) -> None:
        """Let the monotonic clock go on from where it stood still."""
        if self._stopped is not None:
            self._boot += self._run_at(world_us) - self._stopped
            self._stopped = None

    def reboot(self, world_us: int) -> None:
        """Start the monotonic clock anew, and forget what stamps were given."""
        self._boot, self._stopped, self._given_us = self._run_at(world_us), None, 0
