"""What is raised of all that the tasks of a world raised: one error, in the scenario's terms."""

from __future__ import annotations

import trio


async def reraise(error: BaseException) -> None:
    """Raise an error in a task of its own, which ends all those beside it."""
    raise error


def what_to_raise(error: BaseException) -> BaseException:
    """Return what is to be raised of all that tasks raised: an interrupt, else the first error."""
    if isinstance(error, trio.TrioInternalError) and error.__cause__ is not None:
        return what_to_raise(error.__cause__)  # a signal's handler raised in the scheduler itself
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [what_to_raise(one) for one in error.exceptions]
    interrupts = [one for one in leaves if not isinstance(one, Exception)]
    return (interrupts or leaves)[0]
