"""Actors whose waiting is done by tasks: live models, tool runners, an owner at a terminal.

They take turns as every actor does; what they begin in a turn goes on in a task of their host's
nursery, which tells its end by a message from the actor to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import trio

from transports.envelope import Envelope


@runtime_checkable
class OutsideActor(Protocol):
    """An actor that has tasks."""

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None]) -> None:
        """Get the nursery for the tasks, and what puts a message into the own mailbox."""

    async def close(self) -> None:
        """Stop what still goes on, and give back what is held."""


class _Context(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def actor(self) -> Any: ...


async def open_outside(
    contexts: Iterable[_Context],
    nursery: trio.Nursery,
    deliver: Callable[[Envelope[Any]], None],
) -> None:
    """Open those of a host; `deliver` puts a message into its target's mailbox."""

    def tell(name: str, body: Any) -> None:
        deliver(Envelope(0, name, name, 0, 0, body))

    for context in contexts:
        if isinstance(context.actor, OutsideActor):
            await context.actor.open(nursery, partial(tell, context.name))


async def close_outside(contexts: Iterable[_Context]) -> None:
    """Close them, also when this task is cancelled."""
    with trio.CancelScope(shield=True):
        for context in contexts:
            if isinstance(context.actor, OutsideActor):
                await context.actor.close()
