"""The virtual clock keeps the contract of clocks, to the microsecond."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.clock import ClockContract
from transports.clock import EPOCH_US, VirtualClock


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
