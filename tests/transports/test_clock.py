"""The virtual clock keeps the contract of clocks, to the microsecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.clock import ClockContract, WrongClockContract
from transports.clock import EPOCH_US, VirtualClock, WrongClock


class World:
    """Virtual time that a test moves by hand."""

    def __init__(self, now_us: int = 0) -> None:
        self.now_us = now_us


class DrivenVirtualClock:
    """A virtual clock with its world."""

    def __init__(self) -> None:
        self.world = World()
        self.clock = VirtualClock(self.world)
        self.reboot = self.clock.reboot

    def pass_time(self, by_us: int) -> None:
        self.world.now_us += by_us


class TestVirtualClock(ClockContract):
    """The suite on the virtual clock."""

    def drive(self) -> DrivenVirtualClock:
        return DrivenVirtualClock()


def test_a_virtual_clock_is_exact() -> None:
    world = World()
    clock = VirtualClock(world)
    assert (clock.now_us, clock.stamp_us) == (0, EPOCH_US)
    world.now_us = 20_000_001
    assert (clock.now_us, clock.stamp_us) == (20_000_001, EPOCH_US + 20_000_001)
    clock.reboot()
    world.now_us += 5
    assert (clock.now_us, clock.stamp_us) == (5, EPOCH_US + 20_000_006)


def test_the_epoch_is_the_first_of_january_2026() -> None:
    days = 56 * 365 + 14  # with the leap days of 1972 to 2024
    assert days * 86_400 * 1_000_000 == EPOCH_US


@given(st.lists(st.tuples(st.integers(0, 10**9), st.booleans())))
def test_no_history_of_boots_moves_a_clock_back(history: list[tuple[int, bool]]) -> None:
    world = World()
    clock = VirtualClock(world)
    stamp_us = clock.stamp_us
    for passed_us, boots in history:
        now_us = clock.now_us
        world.now_us += passed_us
        assert clock.stamp_us >= stamp_us
        assert clock.now_us == now_us + passed_us
        stamp_us = clock.stamp_us
        if boots:
            clock.reboot()
            assert clock.now_us == 0


class DrivenWrongClock:
    """A clock that may be wrong, with a world of its own; it is its own view."""

    def __init__(self) -> None:
        self.world_us = 0
        self.wrong = WrongClock(0)
        self.shift = self.wrong.shift
        self.lasts_us = self.wrong.lasts_us
        self.clock = self

    @property
    def now_us(self) -> int:
        return self.wrong.now_us(self.world_us)

    @property
    def stamp_us(self) -> int:
        return self.wrong.stamp_us(self.world_us)

    def pass_time(self, by_us: int) -> None:
        self.world_us += by_us

    def reboot(self) -> None:
        self.wrong.reboot(self.world_us)

    def set_rate(self, rate_ppm: int) -> None:
        self.wrong.set_rate(self.world_us, "it", rate_ppm)


class TestWrongClock(WrongClockContract):
    """The suite on a clock that may be wrong."""

    def drive(self) -> DrivenWrongClock:
        return DrivenWrongClock()


def test_a_wrong_clock_begins_where_a_right_one_was() -> None:
    clock = WrongClock(50, boot_us=20, epoch_us=1_000)
    assert (clock.now_us(50), clock.stamp_us(50)) == (30, 1_050)
    clock.shift(-500)
    assert clock.stamp_us(60) == 1_050, "the world has been given this stamp already"


def test_rates_of_several_reasons_multiply_and_end_one_by_one() -> None:
    clock = WrongClock(0)
    clock.set_rate(0, "one", 2_000_000)
    clock.set_rate(0, "other", 1_500_000)
    assert clock.rate_ppm == 3_000_000
    clock.set_rate(0, "one", 1_000_000)
    assert clock.rate_ppm == 1_500_000
    clock.set_rate(0, "other", 1_000_000)
    assert clock.rate_ppm == 1_000_000
    for reason in range(20):
        clock.set_rate(0, str(reason), 100_000)
    assert clock.rate_ppm == 1, "it never stands still"


def test_a_monotonic_clock_that_stood_still_goes_on_where_it_was_at_any_rate() -> None:
    clock = WrongClock(0)
    clock.stop(100)
    clock.set_rate(150, "it", 2_000_000)
    assert clock.now_us(180) == 100
    clock.go_on(200)
    assert (clock.now_us(200), clock.now_us(210)) == (100, 120)
    assert clock.stamp_us(200) == EPOCH_US + 150 + 100, "the wall clock has gone on"
    clock.go_on(300)
    assert clock.now_us(300) == 300
