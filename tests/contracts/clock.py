"""What every clock promises: one suite, run on each implementation, virtual or real."""

from __future__ import annotations

from typing import Protocol

import pytest

from transports.clock import Clock

EARLIEST_US = 1_577_836_800_000_000  # 2020-01-01: a wall clock before this counts something else


class Driven(Protocol):
    """A clock in the hands of whoever can make time pass."""

    @property
    def clock(self) -> Clock:
        """The clock under test, at the beginning of its boot."""

    def pass_time(self, by_us: int) -> None:
        """Let time pass, at least so much."""

    def reboot(self) -> None:
        """Begin another boot."""


class ClockContract:
    """The suite."""

    def drive(self) -> Driven:
        """Return a clock that was just started."""
        raise NotImplementedError

    @pytest.fixture
    def driven(self) -> Driven:
        return self.drive()

    def test_both_clocks_count_whole_microseconds(self, driven: Driven) -> None:
        assert type(driven.clock.now_us) is int
        assert type(driven.clock.stamp_us) is int
        assert driven.clock.stamp_us > EARLIEST_US

    def test_a_boot_begins_near_zero(self, driven: Driven) -> None:
        assert 0 <= driven.clock.now_us < 1_000_000

    def test_both_clocks_go_on_with_time(self, driven: Driven) -> None:
        clock = driven.clock
        now_us, stamp_us = clock.now_us, clock.stamp_us
        driven.pass_time(2_000)
        assert clock.now_us - now_us >= 2_000
        assert clock.stamp_us - stamp_us >= 2_000

    def test_reading_a_clock_does_not_move_it_back(self, driven: Driven) -> None:
        clock = driven.clock
        nows = [clock.now_us for _ in range(50)]
        stamps = [clock.stamp_us for _ in range(50)]
        assert nows == sorted(nows)
        assert stamps == sorted(stamps)

    def test_a_boot_starts_the_monotonic_clock_anew_and_not_the_other(self, driven: Driven) -> None:
        driven.pass_time(2_000_000)
        stamp_us = driven.clock.stamp_us
        driven.reboot()
        assert 0 <= driven.clock.now_us < 1_000_000
        assert driven.clock.stamp_us >= stamp_us
