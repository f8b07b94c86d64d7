"""A deployed process's wall time: it never goes back, never stops, and comes to be right again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.service.clock import BEHIND_US, WallClock
from tests.actors.harness import S

HOUR = 3_600 * S


class Machine:
    """A machine's two clocks, and the wall time that is made of them."""

    def __init__(self, wall_us: int = 1_000_000 * S) -> None:
        self.wall_us, self.steady_us = wall_us, 0
        self.clock = WallClock(lambda: self.wall_us * 1000, lambda: self.steady_us * 1000)

    def passes(self, us: int, step_us: int = 0) -> tuple[int, int]:
        """Let time pass, and the wall clock be set by so much besides; ask what time it is."""
        self.steady_us += us
        self.wall_us += us + step_us
        return self.clock.tell()


def test_it_is_the_machine_s_while_that_is_right() -> None:
    machine = Machine()
    for us in (0, 5, 3 * HOUR, 1):
        assert machine.passes(us) == (machine.wall_us, 0)


@given(st.lists(st.tuples(st.integers(0, HOUR), st.integers(-50 * HOUR, 50 * HOUR)), max_size=20))
def test_it_never_goes_back_nor_behind_the_machine_s(steps: list[tuple[int, int]]) -> None:
    machine = Machine()
    before_us, _ = machine.passes(0)
    for us, step_us in steps:
        now_us, _ = machine.passes(us, step_us)
        assert now_us >= max(machine.wall_us, before_us + us // 2)
        before_us = now_us


def test_what_somebody_added_up_himself_is_not_gone_back_on() -> None:
    machine = Machine()
    now_us, _ = machine.passes(0)
    machine.clock.has_told(now_us + 2)
    assert machine.passes(1) == (now_us + 2, 0)
    machine.clock.has_told(now_us)
    assert machine.passes(0) == (now_us + 2, 0)


def test_a_clock_that_was_set_back_is_caught_up_with_and_meanwhile_time_passes() -> None:
    machine = Machine()
    first_us, _ = machine.passes(0)
    assert machine.passes(0, -HOUR) == (first_us, 0)
    assert machine.passes(HOUR) == (first_us + HOUR // 2, 0)
    assert machine.passes(2 * HOUR) == (machine.wall_us, 0)


@pytest.mark.parametrize("step_us", [HOUR, HOUR + 1])
def test_a_jump_is_one_of_more_than_an_hour(step_us: int) -> None:
    machine = Machine()
    machine.passes(0)
    assert machine.passes(5 * HOUR)[1] == 0, "time that has passed is none"
    assert machine.passes(S, step_us)[1] == (step_us if step_us > HOUR else 0)
    assert machine.passes(S)[1] == 0


@pytest.mark.parametrize("behind_us", [-HOUR, 0, BEHIND_US])
def test_little_is_said_of_a_clock_that_is_little_behind(behind_us: int) -> None:
    machine = Machine()
    kept_us = machine.wall_us + behind_us
    assert machine.clock.go_on_from(kept_us) == ""
    assert machine.passes(0) == (max(machine.wall_us, kept_us), 0)


@pytest.mark.parametrize(("behind_us", "said"), [(HOUR, "1h"), (10**18, "36500d")])
def test_of_more_it_is_said(behind_us: int, said: str) -> None:
    machine = Machine()
    assert f"clock is {said} behind" in machine.clock.go_on_from(machine.wall_us + behind_us)
