"""Actors with durable stores on the trio host: turns share a commit, fail, are taken again.

A turn's messages leave once its store has committed it, never before. While more messages wait,
up to GROUP_TURNS turns share one commit, each in a savepoint of its own: a turn that raises undoes
itself alone, a commit that fails undoes all of them, and so does a disk that fails in one of them.
Then their inputs are dropped, since whoever sent them repeats them, and the actor is rebuilt from
its store. A timer or a time-out never joins a group: a turn before it might have taken it back.

A conflict between processes that share a database is no failure. All that the turns did is taken
back, in the actor's attributes too, and they are taken again, one by one, until they commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import trio

from actors.actor import Actor, Commit, Store
from actors.commits import MEANWHILE
from actors.errors import SimulationError
from actors.host import START, HostContext
from actors.rewind import Rewind
from actors.simulator import Simulator
from actors.stores.database import Turns
from actors.stores.failures import StoreConflictError, StoreError, StoreFailedError
from actors.stores.memory import MemoryStore
from actors.world import TrioWorld
from transports.envelope import Envelope

GROUP_TURNS = 64  # more gain nothing: the flush is a few per cent of them; all share a failure
CONFLICT_TRIES = 10  # of one turn: one of the processes in a conflict always goes on
CONFLICT_PAUSE_S = 0.001  # after the first conflict, then twice and three times that
BEHIND = "a turn before it in its group failed"
RETRY_S = (0.1, 0.5, 2.0, 5.0)  # after starts that can't be written; the last one again and again


class DurableStore(Store, Turns, Protocol):
    """What a host does with a store that survives its process: turns, and their commits."""


@runtime_checkable
class SharedStore(Protocol):
    """What a store has besides if several processes may have its database open."""

    def stamp_us(self) -> int:
        """Return the wall time as the database has it: the same clock for all, never going back."""

    def pinned(self) -> Iterable[object]:
        """Return the tables that actors hold: they are no actor's state."""


class KilledMeanwhileError(Exception):
    """The actor was killed while its turns were taken: they are not committed."""


class Held(NamedTuple):
    """A turn that waits for its commit: how it was taken, and what it asked for."""

    turn: Any
    record: int
    turn_us: int
    take: Callable[[], Any]
    effects: list[Callable[[], Any]]


class DurableContext(HostContext):
    """An actor whose store may be a durable one, and the turns that wait for its next commit."""

    __slots__ = (
        "alone", "batch", "durable", "failed_starts", "held", "rewind", "shared",
    )  # fmt: skip

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        self.durable: DurableStore | None = None
        self.shared: SharedStore | None = None
        self.failed_starts = 0
        self.held: list[Held] = []
        self.batch: list[Held] | None = None  # of turns to be taken together, while they gather
        self.rewind: Rewind | None = None  # to where the group began, for a conflict
        super().__init__(host, name, actor)
        # What an actor takes long for by itself waits for no other turn's end.
        self.alone = self.blocking

    def keep_in(self, store: DurableStore) -> None:
        """Have what the actor writes kept in a durable store, from the next start on."""
        self.durable = store
        self.shared = store if isinstance(store, SharedStore) else None
        self.store = store  # type: ignore[assignment]  # the same contract as the one in memory
        self.blocking = True  # its commits are

    def reset(self) -> None:
        """Be as new, but for what a durable store has: it outlives every run."""
        self.held.clear()
        self.rewind = self.batch = None
        if self.durable is None:
            super().reset()
            return
        self.store = MemoryStore(None)
        super().reset()
        self.keep_in(self.durable)

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970: the database's, where several processes share one."""
        return super().stamp_us if self.shared is None else self.shared.stamp_us()

    def undo(self) -> None:
        """Take back what a turn wrote, and what those did that wait with it for a commit."""
        if self.durable is not None:
            self.durable.roll_back()
            self.durable.roll_back()  # with no turn open: all since the last commit
            self.held.clear()
        super().undo()

    def silence(self) -> None:
        """Keep what a turn wrote, and forget what it asked for."""
        if self.durable is not None:
            self.durable.commit()
        super().silence()

    def hold(self, turn: Any, take: Callable[[], Any]) -> None:
        """Let a turn that has ended well wait for its commit, and what it asked for with it."""
        self.held.append(Held(turn, self.record, self.turn_us, take, self.effects))
        self.effects = []


class DurableWorld(TrioWorld):
    """A trio host whose actors may keep what they write: `keep(name, store)` says where.

    Ids and chance come from the seed alone, so a process that serves must begin with a new one.
    """

    context_type = DurableContext
    contexts: dict[str, DurableContext]  # type: ignore[assignment]  # this world makes no others
    group_turns = GROUP_TURNS  # at most so many turns share a commit

    def keep(self, name: str, store: DurableStore) -> None:
        """Have an actor's state kept in a durable store."""
        self.contexts[name].keep_in(store)

    async def _take_message(self, actor: HostContext, envelope: Envelope[Any]) -> None:
        """Take a message and, with one commit, those that wait behind it."""
        assert isinstance(actor, DurableContext)
        if actor.shared is not None and not (self._virtual or self._hooks or actor.alone):
            actor.batch = []
        waiting = actor.held if actor.batch is None else actor.batch
        limit = 1 if actor.alone else self.group_turns
        await super()._take_message(actor, envelope)
        # Nothing is held once a turn has failed, or has been committed by itself.
        while 0 < len(waiting) < limit:
            another = actor.mailbox.next_message()
            if another is None:
                break
            await super()._take_message(actor, another)
        batch, actor.batch = actor.batch, None
        if batch:
            await self._take_batch(actor, batch)
        else:
            await self._commit_held(actor)

    async def _turn(self, actor: HostContext, turn: Any, take: Callable[[], Any]) -> None:
        """Take one turn; a message's waits for its commit, any other is committed at once."""
        assert isinstance(actor, DurableContext)
        if actor.durable is None:
            await super()._turn(actor, turn, take)
        elif actor.batch is not None:
            actor.batch.append(Held(turn, actor.record, actor.turn_us, take, []))
        else:
            await self._take_one(actor, turn, take)

    async def _take_one(self, actor: DurableContext, turn: Any, take: Callable[[], Any]) -> None:
        actor.turn = turn
        if self._halted is not None:
            raise self._halted
        if actor.shared is not None and not actor.held:
            actor.rewind = Rewind(actor, actor.shared.pinned())
        life = actor.scope
        try:
            await self._in_turn(actor, turn, take)
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            if life.cancel_called:
                self._take_back_all(actor, MEANWHILE)
            else:
                await self._go_on_after(actor, turn, take, error)
            return
        if life.cancel_called:
            self._take_back_all(actor, MEANWHILE)
        elif self._commits(actor, turn):
            actor.hold(turn, take)
            if self._hooks or not isinstance(turn, Envelope):
                await self._commit_held(actor)
        elif not actor.down:
            await self._boot(actor)

    async def _in_turn(self, actor: DurableContext, turn: Any, take: Callable[[], Any]) -> None:
        """Call the actor, between the beginning and the end of a turn of its store."""
        store = actor.durable
        assert store is not None, "it is asked before"

        def act() -> None:
            store.begin_turn()
            self._act(actor, turn, take)
            store.end_turn()

        # One on a disk takes less time than its way into a thread.
        if actor.alone or actor.shared is not None:
            await self._away(actor, act)
        else:
            act()

    async def _away(self, actor: DurableContext, call: Callable[[], None]) -> None:
        """Call what may wait for a disk or a database: in a thread, unless time waits for it.

        It comes to its end even if the actor is killed meanwhile; who calls this looks.
        """
        if self._virtual:
            call()
        else:
            with trio.CancelScope(shield=True):
                await self._in_thread(actor, lambda _: call())

    # Commits

    async def _commit_held(self, actor: DurableContext) -> None:
        """Commit the turns that wait for it, and let out what they asked for, in their order."""
        if not actor.held:
            return
        store, life = actor.durable, actor.scope
        assert store is not None, "only its turns are held"
        try:
            if store.has_to_commit:  # most polls write nothing, and a thread is dear
                await self._away(actor, store.commit)
            else:
                store.commit()
        except StoreError as error:
            await self._mend(actor, error)
            return
        effects = [one.effects for one in actor.held]
        actor.held.clear()
        self._release(actor, life, effects)

    async def _take_batch(self, actor: DurableContext, batch: list[Held]) -> None:
        """Take turns that wait for a database, and commit them, all in one call of a thread."""
        store, life = actor.durable, actor.scope
        assert store is not None, "only its turns gather"
        if self._halted is not None:
            raise self._halted
        if actor.shared is not None:
            actor.rewind = Rewind(actor, actor.shared.pinned())

        def act() -> None:
            for one in batch:
                actor.turn, actor.record, actor.turn_us = one.turn, one.record, one.turn_us
                store.begin_turn()
                self._act(actor, one.turn, one.take)
                store.end_turn()
                actor.hold(one.turn, one.take)
            if actor.down or actor.scope is not life:  # a scope can't be asked in a thread
                raise KilledMeanwhileError
            store.commit()

        try:
            await self._away(actor, act)
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            left = batch[len(actor.held) :]
            actor.effects.clear()
            if life.cancel_called:
                actor.held += left
                self._take_back_all(actor, MEANWHILE)
            else:
                await self._go_on_after_batch(actor, left, error)
            return
        effects = [one.effects for one in actor.held]
        actor.held.clear()
        self._release(actor, life, effects)

    # Turns that end badly

    async def _go_on_after_batch(
        self, actor: DurableContext, left: list[Held], error: Exception
    ) -> None:
        """Go on after turns of which the first of those left raised, or with none their commit."""
        if isinstance(error, StoreError):
            actor.held += left
            await self._mend(actor, error)
            return
        if not left:  # a bug of the store's own
            self._take_back_all(actor, str(error))
            raise error
        if self.recorder is not None:
            for one in left[1:]:  # whoever sent them repeats them
                self.recorder.undone(self.now_us, actor.name, one.record, BEHIND)
        await self._fail_alone(actor, left[0].turn, error)

    async def _go_on_after(
        self, actor: DurableContext, turn: Any, take: Callable[[], Any], error: Exception
    ) -> None:
        """Go on after a turn that raised."""
        if isinstance(error, StoreError):
            actor.hold(turn, take)
            await self._mend(actor, error)
        else:
            await self._fail_alone(actor, turn, error)

    async def _mend(self, actor: DurableContext, error: StoreError) -> None:
        """Undo all the turns that are held. What doesn't heal is raised: a damaged file, say."""
        if isinstance(error, StoreConflictError):
            await self._take_again(actor, error)
        elif isinstance(error, StoreFailedError):
            await self._fail_all(actor, actor.held[-1].turn, error)
        else:
            self._take_back_all(actor, error.sentence)
            raise error

    async def _fail_alone(self, actor: DurableContext, turn: Any, error: Exception) -> None:
        """Undo one turn, which raised; those before it are committed first."""
        record, store = actor.record, actor.durable
        assert store is not None, "it is asked before"
        store.roll_back()
        actor.effects.clear()
        await self._commit_held(actor)
        actor.turn, actor.record = turn, record
        await self._fail(actor, turn, error)

    async def _fail_all(self, actor: DurableContext, turn: Any, error: StoreError) -> None:
        """Undo all that is not committed, drop its inputs, and build the actor from its store."""
        self._take_back_all(actor, f"{Commit.FAILED.value}: {error.sentence}")
        actor.forget()
        if turn is START:
            await self._wait_for_store(actor, error)
        actor.turn_us = self.now_us
        await self._boot(actor)

    def _take_back_all(self, actor: DurableContext, why: str) -> None:
        """Undo all that is not committed, and record of each turn that it never was."""
        last = actor.record
        for one in actor.held:
            if self.recorder is not None and one.record != last:
                self.recorder.undone(self.now_us, actor.name, one.record, why)
        self._take_back(actor, why)

    async def _wait_for_store(self, actor: DurableContext, error: StoreError) -> None:
        """Wait before the next start; SimulationError where time would not: nobody mends it."""
        if self._virtual:
            raise SimulationError(
                f"{actor.name} can't write its store at its start: {error.sentence}"
            ) from error
        self.tell(actor.name, error.sentence, "unwritable")
        pause_s = RETRY_S[min(actor.failed_starts, len(RETRY_S) - 1)]
        actor.failed_starts += 1
        await trio.sleep(pause_s)

    # Conflicts

    async def _take_again(self, actor: DurableContext, error: StoreConflictError) -> None:
        """Take back the turns that wait for their commit, and take each again by itself."""
        held = actor.held[:]
        await self._go_back(actor, held[-1].turn)
        for one in held:
            for tries in range(1, CONFLICT_TRIES):
                if not self._virtual:
                    await trio.sleep(CONFLICT_PAUSE_S * tries)
                conflict = await self._tried(actor, one)
                if conflict is None:
                    break
                error = conflict
            else:
                actor.record = one.record
                await self._fail_all(actor, one.turn, error)

    async def _go_back(self, actor: DurableContext, turn: Any) -> None:
        """Be as before the turns that are not committed."""
        rewind = actor.rewind
        actor.undo()
        assert rewind is not None, "only a shared store tells of a conflict"
        if not rewind.go_back() and turn is not START:
            actor.forget()
            await self._boot(actor)

    async def _tried(self, actor: DurableContext, one: Held) -> StoreConflictError | None:
        """Take a turn again, with a commit of its own; return the conflict if there was one."""
        actor.turn, actor.record, actor.turn_us = one.turn, one.record, one.turn_us
        store, life = actor.durable, actor.scope
        assert store is not None, "only its turns are held"
        assert actor.shared is not None, "only a shared store tells of a conflict"
        actor.rewind = Rewind(actor, actor.shared.pinned())
        try:
            await self._in_turn(actor, one.turn, one.take)
            if life.cancel_called:
                self._take_back_all(actor, MEANWHILE)
                return None
            await self._away(actor, store.commit)
        except StoreConflictError as conflict:
            await self._go_back(actor, one.turn)
            return conflict
        except Exception as error:  # noqa: BLE001  as in the turn's first try
            await self._go_on_after(actor, one.turn, one.take, error)
            return None
        self._release(actor, life, [actor.effects])
        return None

    def _release(
        self,
        actor: DurableContext,
        life: trio.CancelScope,
        effects: Iterable[list[Callable[[], Any]]],
    ) -> None:
        """Let out what committed turns asked for; of an actor that was killed nobody hears it."""
        for each in effects:
            actor.effects = [] if life.cancel_called else each
            actor.release()
        actor.failed_starts = 0
        self._last_us = self.now_us
