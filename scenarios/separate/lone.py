"""The world of one actor that lives in a process of its own.

It is the trio host with one actor in it: the same mailbox, turns, timers and questions. Only its
ways lead out of the process, all over one connection, and what it would write to a log it reports.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from heapq import heappop
from itertools import count
from typing import Any

import trio

from actors.actor import Actor, Commit
from actors.errors import ActorFailedError, SimulationError, UnknownActorError, describe_turn
from actors.host import START, HostContext
from actors.simulator import Due, Simulator
from actors.stores.sqlite import StoreFailedError
from actors.world import TrioWorld
from logs.record import Recorder
from scenarios.separate.report import (
    WAITING_LIMIT,
    Asking,
    Begin,
    Delivery,
    Done,
    Job,
    Meddle,
    Report,
    Said,
    Sent,
    Struck,
    Verdict,
    Writable,
    pickled_state,
    pieces,
    receive_order,
)
from scenarios.separate.store import DurableStore
from transports.codec import FrameError
from transports.connection import Connection
from transports.envelope import Envelope
from transports.wire import WireCodec

# Of the 32 bits of a serial the upper ten tell actors apart, so that no two in a log have one id.
ACTOR_SERIALS = 1 << 22


class LoneContext(HostContext):
    """The one actor's context: its store is on disk, and its turn ends with a report."""

    __slots__ = ()

    _world: LoneWorld
    store: DurableStore  # type: ignore[assignment]  # the same contract as the one in memory

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        super().__init__(host, name, actor)
        self._id_mark = f"{self._world.job.index:04x}"
        self.store = self._world.store

    def release(self) -> None:
        """Report what a turn came to; it has committed."""
        super().release()
        self._world.reporter.end_turn()

    def undo(self) -> None:
        """Take back what a turn wrote, and forget what it asked for."""
        self.store.roll_back()
        super().undo()

    def _send(self, target: str, reply_to: int, body: Any, traceparent: str) -> Envelope[Any]:
        if target not in self.links:
            raise UnknownActorError(
                f"{self.name} sent to {target!r} on {describe_turn(self.turn)}, "
                f"but there are only {', '.join(self.links)}"
            )
        return super()._send(target, reply_to, body, traceparent)


class Reporter:
    """Makes a report of each turn. Turns are numbered from 1 in each boot, which are its records.

    `waiting` has the reports that have not been sent yet.
    """

    def __init__(self, used: Callable[[], dict[str, Any]]) -> None:
        self.waiting: deque[Report | Struck] = deque()
        self._used = used  # what the actor has used of ids and chance
        self.effects: list[Said | Sent | Done] = []
        self._count = 0
        self._open: dict[str, Any] = {}

    def _begin(self, t: int, **fields: Any) -> int:
        self._count += 1
        self._open = {"number": self._count, "t": t, **fields}
        self.effects = []
        return self._count

    @property
    def turn(self) -> Report:
        """The present turn, as far as its input goes."""
        return Report(**self._open, **self._used())

    def end_turn(self, undone: str = "") -> None:
        """Let the report of the present turn wait to be sent."""
        effects = self.effects
        told = Report(**self._open, effects=effects, undone=undone, **self._used())
        self.waiting.append(told)
        self.effects = []

    def start(self, t: int, actor: str, boot: int) -> int:
        """Note that the boot begins, or begins again after a failed commit."""
        return self._begin(t, input="start", what=boot)

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        """Note a delivery."""
        return self._begin(t, input="message", what=envelope.id)

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        """Note that a timer fires."""
        return self._begin(t, input="timer", what=timer, cause=cause)

    def unanswered(self, t: int, actor: str, cause: int, number: int) -> int:
        """Note that a question's time is up."""
        return self._begin(t, input="unanswered", what=number, cause=cause)

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        """Report an answer that nobody waits for: it has no turn."""
        self._begin(t, input="late", what=envelope.id)
        self.end_turn()

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        """Report that the turn did not commit."""
        self.effects = []
        self.end_turn(undone=why)

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        """Nothing is lost here: the links are elsewhere."""
        raise AssertionError(fault)

    def send(self, t: int, envelope: Envelope[Any]) -> None:
        """Note nothing: the message itself will be in the report."""

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Report that a clock was meddled with; all else is done to actors from elsewhere."""
        self.waiting.append(Struck(t, act))

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        """Note what the actor says; what has no cause its clock has done."""
        if cause:
            self.effects.append(Said(event, fields))
        else:
            struck = self.waiting.pop()
            assert isinstance(struck, Struck), "a clock jumps when it is meddled with"
            self.waiting.append(Struck(struck.t, struck.act, int(fields["by_us"])))


class LoneWorld(TrioWorld):
    """A `TrioWorld` of one actor, for one boot of it; `job` says which. Call `live`."""

    context_type = LoneContext

    def __init__(self, job: Job, store: DurableStore) -> None:
        self.job = job
        self.store = store
        self.reporter = Reporter(self._used)
        self.over = False  # whether it takes no more turns
        self.naps: list[int] = []  # microseconds that the clock has stood still, not yet heeded
        super().__init__(
            job.seed, job.cell, clock=None, speed=job.speed, mailbox_limit=WAITING_LIMIT
        )
        self._telling = trio.Lock()
        self._deliver_verdict, self._verdicts = trio.open_memory_channel[Verdict](1)
        self._serving = True  # what is due may be none of this process's business
        self.on_done = lambda _name: self.reporter.effects.append(Done())

    def take(self, actor: Actor) -> None:
        """Add the actor, with ways to all the others."""
        name = self.job.cast.name
        self.add(name, actor)
        self.me = self.contexts[name]
        self.me.links = dict.fromkeys(self.job.names, self._post_out)
        self._wire: WireCodec = self._message_codec()

    def _reset(self, replication: int, recorder: Recorder | None) -> None:
        super()._reset(replication, recorder)
        self.serials = count(1 + self.job.index * ACTOR_SERIALS)
        self.me.numbers = self.serials
        self.me.ids = max(self.job.ids, self.store.ids)
        for purpose, count_of in self.job.draws.items():
            self.me.random(purpose)
            self.me.streams[purpose].skip(count_of)

    def _used(self) -> dict[str, Any]:
        draws = {purpose: stream.drawn for purpose, stream in self.me.streams.items()}
        return {"ids": self.me.ids, "draws": draws}

    def live(self, converse: Callable[[], Awaitable[None]]) -> None:
        """Run `converse`, which connects and calls `play`; what it raises is raised."""
        self._converse = converse
        self.run(self.job.replication, self.reporter)

    async def _main(self) -> None:
        await self._converse()

    # Talking

    async def play(self, connection: Connection) -> None:
        """Live this boot over a connection, from the order to begin on; BrokenLinkError at its end.

        What a turn raises is raised.
        """
        self._connection = connection
        self._changed = trio.Event()
        begin = await receive_order(connection)
        if not isinstance(begin, Begin):
            raise FrameError("an order before the one to begin")
        self._clock = trio.lowlevel.current_clock()
        self._zero_s = self._clock.current_time() - (time.monotonic() - begin.zero_s)
        self.me.turn_us = self.now_us
        if begin.clock:
            self.me.clock = pickle.loads(begin.clock)  # noqa: S301  our parent wrote it
        self.naps.clear()  # whatever there was lay before this boot
        if self.job.boot:
            self.me.boot = self.job.boot - 1
            self.me.begin_boot()
        self.store.writable = begin.writable
        if begin.look:
            await self._look()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._hear)
            await self._boot(self.me)
            nursery.start_soon(self._live, self.me, False)
            await self._keep_time()

    async def _hear(self) -> None:
        """Take what comes over the connection."""
        while True:
            order = await receive_order(self._connection)
            if isinstance(order, Delivery):
                # Into the mailbox: a turn that waits for its report to be sent is no reader's.
                fits = self.me.mailbox.offer(self._wire.decode(order.frame, order.source))
                assert fits, "no more is under way than there is room for"
            elif isinstance(order, Verdict):
                self._deliver_verdict.send_nowait(order)
            elif isinstance(order, Writable):
                self.store.writable = order.writable
            elif isinstance(order, Meddle):
                await self._meddle_by(order)
            else:
                self.over = True
                await self._send_reports()
                await self._tell_state()

    async def _meddle_by(self, order: Meddle) -> None:
        """Change a clock, and tell when that was."""
        self._heed_naps()
        if order.rate_ppm:
            self.set_clock_rate(self.me.name, order.fault, order.rate_ppm)
        else:
            self.shift_clock(self.me.name, order.fault, order.by_us)
        await self._send_reports()

    async def _look(self) -> None:
        """Tell the state as a start would find it, and leave it so."""
        self.me.actor.on_start(self.me)
        self.me.undo()
        await self._tell_state()
        await trio.sleep_forever()

    async def _tell_state(self) -> None:
        timers = {timer: due[0] for timer, due in self.me.timers.items()}
        await self._tell(pieces(pickled_state(self.me.store.snapshot(), timers)))

    async def _tell(self, frames: Iterable[bytes]) -> None:
        """Send frames that belong together, with no others between them."""
        async with self._telling:
            for frame in frames:
                await self._connection.send(frame)

    async def _send_reports(self) -> None:
        """Send what waits; an actor that is heard too slowly takes its next turn later."""
        waiting = self.reporter.waiting
        while waiting:
            report = waiting.popleft()
            try:
                frames = list(pieces(report))
            except (TypeError, OverflowError, UnicodeEncodeError) as error:
                effects = report.effects if isinstance(report, Report) else []
                said = [one.event for one in effects if isinstance(one, Said)]
                raise SimulationError(
                    f"{self.me.name} said {' and '.join(said)} with a value that can't leave its "
                    f"process: {error}"
                ) from error
            await self._tell(frames)

    def _post_out(self, envelope: Envelope[Any]) -> None:
        """Put a message into the report of the turn that sent it."""
        kind = type(envelope.body).__name__
        try:
            frame = self._wire.encode(envelope)
        except FrameError as error:
            what = f"its {kind} to {envelope.target}"
            raise ActorFailedError(envelope.source, what, self.now_us) from error
        self.reporter.effects.append(Sent(kind, frame))

    # Turns

    async def _turn(self, actor: HostContext, turn: Any, take: Callable[[], Any]) -> None:
        """Take one turn, and report it. It waits for nothing but a verdict on its commit."""
        actor.turn = turn
        if self._halted is not None:
            raise self._halted
        try:
            self._act(actor, turn, take)
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            await self._fail(actor, turn, error)
            return
        why = await self._why_not(turn)
        try:
            if not why:
                self.store.commit_with(self.me.ids)
        except StoreFailedError as error:
            await self._fail(actor, turn, error)
            return
        if why:
            await self._again(actor, why)
        else:
            actor.release()
            await self._send_reports()

    async def _why_not(self, turn: Any) -> str:
        """Ask, if there is anything to decide, why this turn does not commit; empty if it does."""
        if not self.job.asks or turn is START:
            return ""
        await self._tell(pieces(Asking(self.reporter.turn, self.store.wrote)))
        verdict = await self._verdicts.receive()
        return verdict.why

    async def _take_message(self, actor: HostContext, envelope: Envelope[Any]) -> None:
        self._heed_naps()
        if not self.over:
            await super()._take_message(actor, envelope)
            await self._send_reports()  # a late answer has no turn

    async def _take_due(self, actor: HostContext, due: Due) -> None:
        self._heed_naps()
        if not self.over:
            await super()._take_due(actor, due)

    async def _fail(self, actor: HostContext, turn: Any, error: Exception) -> None:
        """Go on as before the turn if its commit failed; end with any other error."""
        if not isinstance(error, StoreFailedError):
            await super()._fail(actor, turn, error)
            return
        if turn is START:  # the next one would fail too
            raise SimulationError(
                f"{actor.name} can't write its store at its start: {error.sentence}"
            ) from error
        await self._again(actor, f"{Commit.FAILED.value}: {error.sentence}")

    async def _again(self, actor: HostContext, why: str) -> None:
        """Take a turn back and go on from the store; the same boot goes on."""
        self._take_back(actor, why)
        actor.forget()
        await self._boot(actor)

    # Time

    def _heed_naps(self) -> None:
        """Let everything come as much later as the clock has stood still."""
        naps, self.naps = self.naps, []
        slept_us = sum(naps)
        if slept_us:
            for due in self.heap:
                due[0] += slept_us
            self.me.stand_still(slept_us)
            if self.me.clock is not None:
                now_us = self.now_us
                self.me.clock.stop(now_us - slept_us)
                self.me.clock.go_on(now_us)
            self._changed.set()

    def _fire(self, due: Due) -> None:
        self.schedule(due)
        self._heed_naps()
        if self.heap[0][0] <= self.now_us:
            super()._fire(heappop(self.heap))
