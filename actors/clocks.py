"""Clocks that go wrong: what the hosts on which faults act have in common about them.

An actor's clocks are its world's until something meddles with them; from then on its context has a
`WrongClock`. Everything that an actor has ever asked for goes by its own clock: timers, time-outs
and repeated questions come later in the world when it goes slow, and never early by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from actors.simulator import ActorContext, Due, Simulator
from transports.clock import EPOCH_US, RIGHT_PPM, WrongClock
from transports.units import Offset

JUMP_US = 3_600_000_000  # a wall clock that jumps ahead by more is told in the log


class ClockedContext(ActorContext):
    """What one actor may do, with clocks that may be wrong."""

    __slots__ = ("clock",)

    def reset(self) -> None:
        """Be as new, for the next replication: with the world's clock."""
        self.clock: WrongClock | None = None
        super().reset()

    def lasts_us(self, delay_us: int) -> int:
        """Return how long the world waits until so much time has passed for this actor."""
        return delay_us if self.clock is None else self.clock.lasts_us(delay_us)


class ClockedWorld(Simulator):
    """What meddles with clocks, and tells the log."""

    contexts: dict[str, ClockedContext]  # type: ignore[assignment]  # this world makes no others
    epoch_us: int = EPOCH_US  # the wall time at which the world begins

    def stopped_since_us(self, name: str) -> int | None:
        """Return since when an actor's monotonic clock stands still, None while it goes."""
        raise NotImplementedError

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        """Let an actor's wall clock jump, ahead or back. False if nobody can set its clock."""
        now_us = self.now_us
        clock = self._meddle(name, now_us)
        before_us = clock.wall_us(now_us)
        clock.shift(by_us)
        self.tell(name, fault, f"clock {Offset(by_us)}", now_us)
        self.tell_jump(name, clock.wall_us(now_us) - before_us)
        return True

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        """Let an actor's clocks go at a rate in millionths. False if nobody can set its clock."""
        now_us = self.now_us
        clock = self._meddle(name, now_us)
        old_ppm = clock.rate_ppm
        clock.set_rate(now_us, fault, rate_ppm)
        self.tell(name, fault, f"rate {rate_ppm / RIGHT_PPM:.10g}", now_us)
        since_us = self.stopped_since_us(name)
        from_us = now_us if since_us is None else since_us
        for due in self.dues_of(name):
            if due[0] > from_us:
                due[0] = from_us - (from_us - due[0]) * old_ppm // clock.rate_ppm
        return True

    def dues_of(self, name: str) -> Iterable[Due]:
        """Return what is due to an actor; it comes in order again when all of it was taken."""
        raise NotImplementedError

    def _meddle(self, name: str, now_us: int) -> WrongClock:
        """Return the clock of an actor as one that may be wrong."""
        context = self.contexts[name]
        if context.clock is None:
            context.clock = WrongClock(now_us, context.booted_us, self.epoch_us)
            since_us = self.stopped_since_us(name)
            if since_us is not None:
                context.clock.stop(since_us)
        return context.clock

    def tell_jump(self, name: str, by_us: int) -> None:
        """Record that an actor's wall clock has jumped ahead by more than an hour."""
        if by_us > JUMP_US and self.recorder is not None:
            self.recorder.event(self.now_us, name, 0, "clock.jumped", {"by_us": by_us})
