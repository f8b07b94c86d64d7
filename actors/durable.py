"""Stores on disk, on the trio host: a turn is committed there before anything of it is released.

A commit that fails undoes its turn: the input is dropped, since whoever sent it will repeat it, and
the actor is rebuilt from its store within the same boot.
"""

from __future__ import annotations

from typing import Any, Protocol

from actors.actor import Actor, Commit, Store
from actors.host import HostContext
from actors.simulator import Simulator
from actors.stores.failures import StoreFailedError
from actors.world import TrioWorld


class Durable(Store, Protocol):
    """A store that outlives the process, as those of `actors.stores` do."""

    def commit(self) -> None:
        """Make durable what was written; StoreFailedError, and then none of it ever was."""

    def roll_back(self) -> None:
        """Undo what was written since the last commit."""


class DurableContext(HostContext):
    """One actor on the trio host whose store may be on disk."""

    __slots__ = ("on_disk",)

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        self.on_disk: Durable | None = None
        super().__init__(host, name, actor)

    def keep_in(self, store: Durable) -> None:
        """Use a store on disk."""
        self.on_disk = store
        self.store = store  # type: ignore[assignment]  # the same contract as the one in memory

    def undo(self) -> None:
        """Take back what a turn wrote, and forget what it asked for."""
        if self.on_disk is not None:
            self.on_disk.roll_back()
        super().undo()


class DurableWorld(TrioWorld):
    """A trio host whose actors may keep their stores on disk."""

    context_type = DurableContext

    async def _fail(self, actor: HostContext, turn: Any, error: Exception) -> None:
        """Go on as before the turn if its commit failed; any other error is the actor's own."""
        if isinstance(error, StoreFailedError):
            await self._not_committed(actor, turn, error)
        else:
            await super()._fail(actor, turn, error)

    async def _not_committed(self, actor: HostContext, turn: Any, error: StoreFailedError) -> None:
        await self._again(actor, f"{Commit.FAILED.value}: {error.sentence}")

    async def _again(self, actor: HostContext, why: str) -> None:
        """Take a turn back and go on from the store; the same boot goes on."""
        self._take_back(actor, why)
        actor.forget()
        await self._boot(actor)
