"""Clocks: what an actor may know of time."""

from __future__ import annotations

from typing import Protocol

EPOCH_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z: the virtual world's first wall time


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
