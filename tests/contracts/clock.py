"""What every clock promises: one suite, run on each implementation, virtual or real."""

from __future__ import annotations

from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transports.clock import Clock

EARLIEST_US = 1_577_836_800_000_000  # 2020-01-01: a wall clock before this counts something else
S = 1_000_000
HOUR_US = 3_600 * S
HAPPENINGS = st.tuples(st.sampled_from(["shift", "rate", "boot", "pass"]), st.integers(0, 10**12))


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


class DrivenWrong(Driven, Protocol):
    """A clock that a test may also set wrong, with a world's time that goes as `pass_time` says."""

    def shift(self, by_us: int) -> None:
        """Let the wall clock jump."""

    def set_rate(self, rate_ppm: int) -> None:
        """Let both clocks go at a rate, in millionths."""

    def lasts_us(self, delay_us: int) -> int:
        """Return how long to wait until so much time has passed by this clock."""


class WrongClockContract(ClockContract):
    """What a clock still promises when it is off, stepped, or at another rate."""

    def drive(self) -> DrivenWrong:
        """Return a clock that was just started, and is right."""
        raise NotImplementedError

    @pytest.fixture
    def wrong(self) -> DrivenWrong:
        return self.drive()

    def test_the_wall_clock_jumps_ahead_and_the_monotonic_one_does_not(
        self, wrong: DrivenWrong
    ) -> None:
        now_us, stamp_us = wrong.clock.now_us, wrong.clock.stamp_us
        wrong.shift(HOUR_US)
        assert (wrong.clock.now_us, wrong.clock.stamp_us) == (now_us, stamp_us + HOUR_US)
        wrong.pass_time(5)
        assert (wrong.clock.now_us, wrong.clock.stamp_us) == (now_us + 5, stamp_us + HOUR_US + 5)

    def test_a_stamp_never_goes_back_and_stands_still_until_the_clock_has_caught_up(
        self, wrong: DrivenWrong
    ) -> None:
        now_us, stamp_us = wrong.clock.now_us, wrong.clock.stamp_us
        wrong.shift(-HOUR_US)
        for passed_us in (0, 1, HOUR_US - 1):
            wrong.pass_time(passed_us)
            assert wrong.clock.stamp_us == stamp_us
        assert wrong.clock.now_us == now_us + HOUR_US
        wrong.pass_time(7)
        assert wrong.clock.stamp_us == stamp_us + 7

    def test_only_what_was_given_holds_a_stamp_back(self, wrong: DrivenWrong) -> None:
        stamp_us = wrong.clock.stamp_us
        wrong.shift(HOUR_US)
        wrong.shift(-HOUR_US)
        assert wrong.clock.stamp_us == stamp_us

    def test_another_boot_does_not_know_what_stamps_were_given(self, wrong: DrivenWrong) -> None:
        stamp_us = wrong.clock.stamp_us
        wrong.shift(-HOUR_US)
        assert wrong.clock.stamp_us == stamp_us
        wrong.reboot()
        assert (wrong.clock.now_us, wrong.clock.stamp_us) == (0, stamp_us - HOUR_US)

    def test_no_clock_comes_before_1970(self, wrong: DrivenWrong) -> None:
        wrong.shift(-3 * 10**15)
        wrong.reboot()
        assert wrong.clock.stamp_us == 0

    def test_both_clocks_go_at_their_rate_and_what_they_gained_stays(
        self, wrong: DrivenWrong
    ) -> None:
        stamp_us = wrong.clock.stamp_us
        for rate_ppm, passed_us, shown_us in (
            (1_010_000, 100 * S, 101 * S),
            (950_000, 100 * S, 196 * S),
            (1_000_000, 100 * S, 296 * S),
        ):
            wrong.set_rate(rate_ppm)
            wrong.pass_time(passed_us)
            assert wrong.clock.now_us == shown_us
            assert wrong.clock.stamp_us == stamp_us + shown_us
        wrong.reboot()
        assert (wrong.clock.now_us, wrong.clock.stamp_us) == (0, stamp_us + 296 * S)

    @settings(  # one suite for several clocks is meant
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(st.lists(HAPPENINGS, max_size=12))
    def test_no_history_moves_a_clock_back_or_wakes_anybody_early(
        self, history: list[tuple[str, int]]
    ) -> None:
        wrong = self.drive()
        clock = wrong.clock
        for what, how in history:
            now_us, stamp_us = clock.now_us, clock.stamp_us
            if what == "shift":
                wrong.shift(how - 10**12)
            elif what == "rate":
                wrong.set_rate(100_000 + how % 9_900_000)
            elif what == "boot":
                wrong.reboot()
                now_us = stamp_us = 0
            else:
                waits_us = wrong.lasts_us(how)
                wrong.pass_time(waits_us)
                assert clock.now_us >= now_us + how
            assert clock.now_us >= now_us
            assert clock.stamp_us >= stamp_us
