"""The trio host of a deployed process: stores on disk, edges to the outside, and real time.

Its few actors trust one another, so messages between them go from mailbox to mailbox. Whoever is
not here is reached over an *edge*: what an actor sends to a name that is none of ours is offered to
the edges one after another, and lost as "disconnected" if none of them has a connection to it.
"""

from __future__ import annotations

import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import trio

from actors.actor import Actor
from actors.durable import DurableContext, DurableStore, DurableWorld
from actors.edges.models.live import LiveModel
from actors.edges.outside import close_outside, open_outside
from actors.edges.tools.runner import ToolRunner
from actors.errors import UnhandledMessageError, describe_turn
from actors.host import TURN_FAILED, HostContext
from actors.network import DISCONNECTED, Network
from actors.rewind import Chance
from actors.simulator import Due
from actors.stores.failures import (
    DamagedStoreError,
    StoreError,
    StoreFailedError,
    UnreadableRowError,
)
from actors.supervisor import RestartPolicy
from logs.record import Recorder
from scenarios.service.clock import WallClock
from scenarios.service.meter import Meter
from scenarios.service.snapshot import write_stores
from transports.envelope import Envelope
from transports.memory import DOWN, Everywhere
from transports.units import DURATION_LIMIT_US

FULL = "the disk is full, or can't be written"
TRACE_PAUSE_US = 60_000_000  # a failure that comes again and again must not fill a disk
OUTSIDE = (LiveModel, ToolRunner)  # actors whose waiting is done by tasks
CLOCK_STEP_US = 10_000  # a clock that is set right goes a few in a second; a deadline has seconds
CLOCK, DISK = "the wall clock", "the disk"  # what is named as the cause in the log
AGAIN_S = 1.0  # between two starts of an actor whose store can't be read
UNUSABLE = (DamagedStoreError, UnreadableRowError)  # what no new start mends


class Edge(Protocol):
    """Brings messages in from outside, and takes out those for whom it has a connection."""

    async def open(self) -> None:
        """Get what may fail to be had, a port say, before anything begins."""

    async def live(self) -> None:
        """Serve until cancelled."""

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send a message on its way; False if its target is nobody's here."""

    def stop_reading(self) -> None:
        """Take no more messages in; what waits is still written."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""


@runtime_checkable
class StampKeeper(Protocol):
    """A store that keeps, with each commit, how late it was."""

    def keep_stamps(self, latest_us: Callable[[], int]) -> int:
        """Keep from now on what this tells; return what was kept last, 0 for nothing."""


class ServiceContext(DurableContext):
    """One actor of a deployed process."""

    __slots__ = ("ahead_us", "chance", "could_write")

    _world: ServiceWorld

    def reset(self) -> None:
        """Be as new."""
        self.ahead_us = 0  # how far its wall clock is ahead of the world's
        self.could_write = True  # as the log has it
        self.chance: Chance | None = None  # where it was before the turns that wait for a commit
        super().reset()

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970, as of the beginning of the turn; it never goes back."""
        stamp_us = super().stamp_us
        if self.shared is None:
            self._world.wall.has_told(stamp_us)
        return stamp_us

    def release(self) -> None:
        """Let out what a turn asked for; its records are written before anything has left."""
        super().release()
        self._world.flush()


class _NotBegunError(Exception):
    """An actor's start was not committed."""


class ServiceWorld(DurableWorld):
    """A process's actors and edges. `serve` runs it until a signal.

    Each start has a seed of its own, so that no id is ever made twice. `say` is told, line by line,
    what whoever runs the process should know.
    """

    context_type = ServiceContext

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self.seed = secrets.randbits(62)
        self.say = say
        self.edges: list[Edge] = []
        self.meter = Meter()
        self.on_ready: Callable[[], None] = lambda: None
        self.wall = WallClock()
        self._kept_us = 0  # what the stores have seen of the wall clock: no stamp comes before it
        self._made_s = time.perf_counter()  # when the world's time begins
        self.snapshot_limit_bytes = 0  # of the stores, at the log's beginning; 0 leaves them out
        self._flush: Callable[[], None] = lambda: None
        self._up = False  # whether every actor has begun
        self._unwritten: set[str] = set()  # whose store can't be written, as was told
        self._told_us: int | None = None  # when a failure was told in full
        super().__init__(
            self.seed,
            name,
            clock=None,
            epoch_us=time.time_ns() // 1000,
            restart=RestartPolicy(restarts=10),
        )

    def house(self, name: str, actor: Actor, store: DurableStore | None = None) -> None:
        """Add an actor, with a store on disk or with one that is gone at the end."""
        self.add(name, actor)
        self.contexts[name].links = Everywhere(self.deliver_now)
        if store is not None:
            self.keep(name, store)

    def serve(
        self,
        recorder: Recorder | None = None,
        *,
        grace_s: float = 10.0,
        flush: Callable[[], None] | None = None,
    ) -> None:
        """Run until SIGTERM or SIGINT, then drain. `flush` writes what the recorder keeps."""
        self._flush = flush or self._flush
        super().serve(recorder, grace_s=grace_s)

    def flush(self) -> None:
        """Write the log so far."""
        self._flush()

    # Time

    def stamp_us(self, asking: str) -> int:
        """Return the wall time since 1970 in microseconds, never less than the last one."""
        stamp_us, jump_us = self.wall.tell()
        if jump_us:
            self.tell_jump(asking, jump_us)
        return stamp_us

    def _go_on_from_kept_time(self) -> None:
        """Begin no earlier than what the stores have seen, and have them keep what is to come."""
        stores: list[object] = [context.durable for context in self.contexts.values()]
        keepers = [store for store in stores if isinstance(store, StampKeeper)]
        kept_us = [store.keep_stamps(lambda: self.wall.latest_us) for store in keepers]
        self._kept_us = max(kept_us, default=0)
        said = self.wall.go_on_from(self._kept_us)
        if said:
            self.say(said)

    def _begin_time(self) -> None:
        """Let time have begun when the wall clock was read, with the process."""
        super()._begin_time()
        self._zero_s -= time.perf_counter() - self._made_s

    def _look(self, actor: ServiceContext) -> None:
        """Record what an actor is about to see that is no input: wall clock and disk.

        Its wall clock is the world's time, set right where the process's has gone another way, as
        after a sleep: so a log that has the jumps has every stamp.
        """
        right_us = self.epoch_us + self.now_us
        by_us = self.wall.tell()[0] - right_us - actor.ahead_us
        if abs(by_us) > CLOCK_STEP_US or right_us + actor.ahead_us < self._kept_us:
            by_us = max(min(by_us, DURATION_LIMIT_US), -DURATION_LIMIT_US)
            actor.ahead_us += by_us
            self.shift_clock(actor.name, CLOCK, by_us)
        writable = actor.store.writable
        if writable is not actor.could_write:
            actor.could_write = writable
            self.tell(actor.name, DISK, "writable" if writable else "unwritable")

    # Messages

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Put a message into its target's mailbox, or hand it to an edge."""
        target = self.contexts.get(envelope.target)
        if target is None:
            if not any(edge.take(envelope) for edge in self.edges):
                self.lose(envelope, DISCONNECTED)
        elif type(envelope.body) in target.handlers:
            self._offer(envelope)
        else:
            kind = type(envelope.body).__name__
            raise UnhandledMessageError(f"{target.name} has no handler for {kind}")

    async def enter(self, envelope: Envelope[Any]) -> None:
        """Bring a message in from outside: waits while its target is behind with its mail."""
        if not await self.contexts[envelope.target].mailbox.put(envelope):
            self.lose(envelope, DOWN)

    def number(self) -> int:
        """Return an id for a message that comes from outside."""
        return next(self.serials)

    def tell_event(self, edge: str, event: str, fields: Mapping[str, Any]) -> None:
        """Record what happens at an edge."""
        watcher = self.watchers.get(event)
        if watcher is not None:
            watcher(self.now_us, dict(fields))
        if self.recorder is not None:
            self.recorder.event(self.now_us, edge, 0, event, dict(fields))
            self.flush()

    # Running

    async def _main(self) -> None:
        try:
            await super()._main()
        finally:
            await close_outside(self.contexts.values(), OUTSIDE)

    async def _open(self, network: Network, nursery: trio.Nursery) -> None:
        self._go_on_from_kept_time()
        for edge in self.edges:
            await edge.open()
        await open_outside(self.contexts.values(), OUTSIDE, nursery, self.deliver_now)
        if self.recorder is not None and self.snapshot_limit_bytes:
            stores = {name: one.durable for name, one in self.contexts.items()}
            for line in write_stores(stores, self.recorder, self.flush, self.snapshot_limit_bytes):
                self.say(line)

    async def _keep_time(self) -> None:
        assert self._nursery is not None, "every actor has begun"
        for edge in self.edges:
            self._nursery.start_soon(edge.live)
        self._up = True
        self.on_ready()
        await super()._keep_time()

    def _stop_reading(self) -> None:
        for edge in self.edges:
            edge.stop_reading()

    def _all_is_sent(self) -> bool:
        return all(edge.idle for edge in self.edges)

    # Turns

    async def _take_message(self, actor: HostContext, envelope: Envelope[Any]) -> None:
        assert isinstance(actor, ServiceContext)
        self._look(actor)
        await super()._take_message(actor, envelope)

    async def _take_due(self, actor: HostContext, due: Due) -> None:
        assert isinstance(actor, ServiceContext)
        self._look(actor)
        await super()._take_due(actor, due)

    async def _take_one(self, actor: DurableContext, turn: Any, take: Callable[[], Any]) -> None:
        assert isinstance(actor, ServiceContext)
        if not actor.held:
            actor.chance = Chance(actor)
        await super()._take_one(actor, turn, take)

    async def _fail_all(self, actor: DurableContext, turn: Any, error: StoreError) -> None:
        assert isinstance(actor, ServiceContext)
        if actor.chance is not None:  # how much was drawn until the disk failed is in no log
            actor.chance.go_back()
        self._tell_store(actor.name, False, error.sentence)
        await super()._fail_all(actor, turn, error)

    async def _in_turn(self, actor: DurableContext, turn: Any, take: Callable[[], Any]) -> None:
        with self.meter.turns.measured():
            await super()._in_turn(actor, turn, take)

    async def _commit_held(self, actor: DurableContext) -> None:
        if actor.held:
            with self.meter.commits.measured():
                await super()._commit_held(actor)
            self._tell_store(actor.name, actor.store.writable, FULL)

    async def _boot(self, actor: HostContext) -> None:
        assert isinstance(actor, ServiceContext)
        while True:
            self._look(actor)
            try:
                await super()._boot(actor)
            except _NotBegunError:  # a loop, since a disk may stay full for days
                await trio.sleep(AGAIN_S)
            else:
                return

    def _tell_store(self, name: str, writable: bool, why: str) -> None:
        """Say that a store can't be written, and that it can again: each change once."""
        if writable and name in self._unwritten:
            self._unwritten.remove(name)
            self.say(f"{name}'s store can be written again")
        elif not writable and name not in self._unwritten:
            self._unwritten.add(name)
            self.say(f"{name}'s store: {why}; nothing is lost, and new work is refused")

    async def _wait_for_store(self, actor: DurableContext, error: StoreError) -> None:
        if not self._up:
            raise error  # whoever starts the process is there to be told
        raise _NotBegunError

    async def _fail(self, actor: HostContext, turn: Any, error: Exception) -> None:
        if isinstance(error, UNUSABLE):
            raise error
        if isinstance(error, StoreFailedError) or not self._up:
            await super()._fail(actor, turn, error)
            return
        self._tell_failure(actor, turn, error)
        if not isinstance(turn, Envelope):
            await super()._fail(actor, turn, error)
            return
        # Who sends what an actor fails at may send it again: that must not end the process.
        self._take_back(actor, f"{TURN_FAILED}{type(error).__name__}: {error}")
        actor.begin_boot()
        await self._boot(actor)

    def _tell_failure(self, actor: HostContext, turn: Any, error: Exception) -> None:
        """Say that a turn failed, in full now and then."""
        self.say(f"{actor.name} failed on {describe_turn(turn)}, which is undone: {error!r}")
        now_us = self.now_us
        if self._told_us is None or now_us - self._told_us >= TRACE_PAUSE_US:
            self._told_us = now_us
            for part in traceback.format_exception(error):
                self.say(part.rstrip())
