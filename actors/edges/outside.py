"""Actors whose work is done outside, by tasks on the trio host: who opens and closes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import trio

from actors.simulator import ActorContext
from transports.envelope import Envelope


class Outside(Protocol):
    """An actor that waits outside of its turns."""

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None], /) -> None:
        """Get the nursery for its tasks, and what puts a message into its own mailbox."""

    async def close(self) -> None:
        """Give back what it holds."""


Kinds = tuple[type[Outside], ...]


async def open_outside(
    contexts: Iterable[ActorContext],
    kinds: Kinds,
    nursery: trio.Nursery,
    deliver: Callable[[Envelope[Any]], None],
) -> None:
    """Open those of these kinds; `deliver` puts a message into its target's mailbox."""

    def tell(name: str, body: Any) -> None:
        deliver(Envelope(0, name, name, 0, 0, body))

    for context in contexts:
        if isinstance(context.actor, kinds):
            await context.actor.open(nursery, partial(tell, context.name))


async def close_outside(contexts: Iterable[ActorContext], kinds: Kinds) -> None:
    """Close them, also when this task is cancelled."""
    with trio.CancelScope(shield=True):
        for context in contexts:
            if isinstance(context.actor, kinds):
                await context.actor.close()
