"""Of all that a world's tasks raised one error is told."""

from __future__ import annotations

import pytest
import trio

from actors.errors import LimitReachedError
from actors.raised import reraise, what_to_raise
from scenarios.watchdog import Stop


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), Stop(), SystemExit(3)])
def test_an_interrupt_wins_over_the_errors_of_other_tasks(interrupt: BaseException) -> None:
    inner = BaseExceptionGroup("tasks", [ValueError(), interrupt])
    assert what_to_raise(BaseExceptionGroup("tasks", [LimitReachedError(), inner])) is interrupt
    error = trio.TrioInternalError("the scheduler was hit")
    error.__cause__ = inner
    assert what_to_raise(error) is interrupt
    first = LimitReachedError()
    assert what_to_raise(ExceptionGroup("tasks", [first, ValueError()])) is first


async def test_an_error_that_is_raised_again_ends_what_runs_beside_it() -> None:
    error = LimitReachedError("it took too long")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(reraise, error)

    with pytest.raises(ExceptionGroup) as caught:
        await main()
    assert what_to_raise(caught.value) is error
