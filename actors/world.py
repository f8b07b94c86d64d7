"""The trio host: pure actors as trio tasks, each with a mailbox, joined by byte streams.

A `TrioWorld` is built and run as a `Simulator` is, so a scenario runs on it unchanged, and its
actors can't tell the two apart: chance and ids depend on the same names, turns are atomic, and
timers come in the same order. What differs is who moves time. Under a virtual clock the timekeeper
lets the world come to rest before it lets the next timer fire, so outcomes differ from the
simulator's only by the order of messages at one instant. On a real clock time goes by itself, at a
speed: at 20 a poll of 20 s takes one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from heapq import heappop
from typing import Any

import msgspec
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.actor import Unanswered
from actors.commits import MEANWHILE, CommittingWorld
from actors.errors import ActorFailedError, UnhandledMessageError
from actors.host import AGAIN, START, TURN_FAILED, WHAT, WHOSE, HostContext, finish_now
from actors.mailbox import MAILBOX_LIMIT
from actors.network import Network
from actors.raised import reraise, what_to_raise
from actors.serving import ServedWorld
from actors.simulator import Due
from actors.supervisor import GaveUpError, RestartPolicy, Supervisor
from logs.record import Recorder
from transports.clock import EPOCH_US
from transports.envelope import Envelope
from transports.local import MemoryTransport, Transport
from transports.memory import DOWN, Link, Post
from transports.wire import WireCodec

QUIET_S = 0.05  # real time in which nothing happens: loopback sockets take far less
SETTLE_LIMIT_S = 0.5  # real time that the last messages of a replication may take


def virtual_clock() -> trio.abc.Clock:
    """Return a clock that stands still, and jumps when every task waits for it."""
    return MockClock(autojump_threshold=0)


class TrioWorld(CommittingWorld, ServedWorld):
    """Built once for a cell. `run` starts every actor from an empty store, once a replication.

    `transport` joins the actors; `clock` makes a replication's clock, None for the machine's own,
    and `speed` is how many seconds of the world pass in one of its seconds. With `restart` an actor
    that raises is started again; without, it ends the replication. `epoch_us` is the wall time at
    which the world begins.
    """

    context_type = HostContext

    def __init__(
        self,
        seed: int,
        cell: str,
        *,
        transport: Transport | None = None,
        clock: Callable[[], trio.abc.Clock] | None = virtual_clock,
        speed: float = 1.0,
        restart: RestartPolicy | None = None,
        mailbox_limit: int = MAILBOX_LIMIT,
        epoch_us: int = EPOCH_US,
    ) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"a clock can't go at {speed} times its speed: give more than 0")
        self.mailbox_limit = mailbox_limit
        self.epoch_us = epoch_us
        self._still_us = 0  # the time while no clock runs
        self._clock: trio.abc.Clock | None = None
        self._zero_s = 0.0
        self._halted: BaseException | None = None
        self._last_us = 0  # when the last turn ended, or `finish` was called
        super().__init__(seed, cell)
        self._make_clock = clock
        self._speed = speed
        self._transport = transport or MemoryTransport()
        self._supervisor = None if restart is None else Supervisor(restart)
        self._codec: WireCodec | None = None
        self._virtual = False
        self._changed = trio.Event()

    # Time

    @property
    def now_us(self) -> int:
        """Microseconds since the world began."""
        if self._clock is None:
            return self._still_us
        return round((self._clock.current_time() - self._zero_s) * self._speed * 1e6)

    @now_us.setter
    def now_us(self, now_us: int) -> None:
        self._still_us = now_us

    @property
    def turned_us(self) -> int | None:
        """When the last turn ended, on a real clock; None on one that waits for turns."""
        return None if self._virtual else self._last_us

    def at(self, due_us: int, action: Callable[[], Any]) -> None:
        """Call `action` at a time, before all else that is due then."""
        super().at(due_us, action)
        self._changed.set()

    def finish(self) -> None:
        """End the replication once every message of this instant is delivered."""
        self.finished = True
        self._last_us = self.now_us
        self._changed.set()

    def halt(self, error: BaseException) -> None:
        """Raise an error in the next turn, whosever it is.

        For signal handlers: what they raise themselves may hit the scheduler, which can't go on.
        """
        self._halted = error

    # Ways

    def connect(self, link: Callable[[str, str], Link | None]) -> None:
        """Join every two actors by the link that `link(source, target)` makes, else by a plain one.

        A link decides what becomes of a message; then it goes over the transport's wire.
        """
        super().connect(lambda source, target: link(source, target) or self.new_link())

    def _post(self, way: Link) -> Post:
        # A turn's effects are its outbox.
        return self.deliver_now if way.is_plain else way.release

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Send the message over its wire; to its own sender it goes at once, if there is room."""
        target = self.contexts[envelope.target]
        if type(envelope.body) not in target.handlers:
            raise UnhandledMessageError(
                f"{target.name} has no handler for {type(envelope.body).__name__}: "
                "name it in `handlers`"
            )
        if envelope.source != envelope.target:
            assert self._network is not None, "messages are sent while the world runs"
            self._network.send(envelope, self.now_us)
        else:
            self._offer(envelope)

    def _offer(self, envelope: Envelope[Any]) -> None:
        """Put a message into its mailbox if there is room; it can't be made to wait."""
        target = self.contexts[envelope.target]
        self._hurry(target, envelope)
        if not target.mailbox.offer(envelope):
            self.lose(envelope, DOWN if target.down else "mailbox full")

    def deliver_at(self, envelope: Envelope[Any], due_us: int) -> None:
        """Deliver the message at a time that is not past."""
        super().deliver_at(envelope, due_us)
        self._changed.set()

    async def _receive(self, me: str, envelope: Envelope[Any]) -> None:
        """Hand over what a wire brought: to an idle actor at once, else to its mailbox.

        Its own task waits for mail meanwhile, and a turn that doesn't block never waits, so turns
        don't overlap; and there is nothing that this message could overtake.
        """
        actor = self.contexts[me]
        if actor.mailbox.idle and (self._virtual or not actor.blocking):
            try:
                finish_now(self._take_message(actor, envelope))
            except BaseException as error:  # noqa: BLE001  it is the world's, not the connection's
                self._give_up(actor, error)
        else:
            self._hurry(actor, envelope)
            if not await actor.mailbox.put(envelope):
                self.lose(envelope, DOWN)

    def _hurry(self, actor: HostContext, envelope: Envelope[Any]) -> None:
        """Let an actor whose turn is going on in a thread know what waits for its end."""
        if actor.threaded:
            actor.hurry(envelope.body)

    def _give_up(self, actor: HostContext, error: BaseException) -> None:
        """End the replication by an error of an actor, which takes no more turns."""
        assert self._nursery is not None, "messages arrive while the world runs"
        actor.mailbox.paused = True
        self._nursery.start_soon(reraise, error)

    # Actor faults

    def kill(self, name: str, fault: str) -> bool:
        """End an actor: its task, timers, questions and mailbox are gone, its store stays.

        False if it is down already.

        A turn in a worker thread comes to its end, but is undone. Messages to it are lost as
        "down" until it is revived.
        """
        context = self.contexts[name]
        if context.down:
            return False
        context.down, context.suspended_us = True, -1
        self._end(context)
        self.tell(name, fault, "kill")
        return True

    def _end(self, context: HostContext) -> None:
        context.busy = False
        context.scope.cancel()
        for envelope in context.mailbox.close():
            self.lose(envelope, DOWN)
        context.forget()

    def revive(self, name: str, fault: str) -> None:
        """Start a killed actor again, in a new boot."""
        context = self.contexts[name]
        if context.down:
            self.tell(name, fault, "start")
            context.come_up()
            self._begin_anew(context)

    def _begin_anew(self, context: HostContext) -> None:
        assert self._nursery is not None, "actors are revived while the world runs"
        self._nursery.start_soon(self._live, context, True)

    def suspend(self, name: str, fault: str, clock_stops: bool) -> bool:
        """Let an actor take no turns; its mail waits. False if it is down or takes none already.

        With `clock_stops` its timers and time-outs stand still.
        """
        context = self.contexts[name]
        if context.down or context.suspended_us >= 0:
            return False
        self.tell(name, fault, "suspend" if clock_stops else "pause", now_us := self.now_us)
        self._stop(context, now_us, clock_stops)
        return True

    def _stop(self, context: HostContext, now_us: int, clock_stops: bool) -> None:
        context.suspend(now_us, clock_stops)

    def resume(self, name: str, fault: str) -> None:
        """Let a suspended actor go on."""
        context = self.contexts[name]
        if context.suspended_us >= 0:
            self.tell(name, fault, "resume", now_us := self.now_us)
            self._go_on(context, now_us)

    def _go_on(self, context: HostContext, now_us: int) -> None:
        context.resume(now_us)

    # Running

    def run(self, replication: int, recorder: Recorder | None = None) -> None:
        """Run one replication to its end; raise a SimulationError if it can't get there.

        Whatever happens, no task, socket or listener of it is left. ValueError if the transport's
        bytes take real time and the clock is virtual: it would jump while they are under way.
        """
        clock = None if self._make_clock is None else self._make_clock()
        self._virtual = isinstance(clock, MockClock) and clock.rate == 0
        if self._virtual and self._transport.in_real_time:
            raise ValueError(
                "this transport takes real time, which a virtual clock does not wait for: "
                "give clock=None, and a speed"
            )
        self.replication = replication
        self._draining, self._halted = False, None
        if self._supervisor is not None:
            self._supervisor.reset()
        self._reset(replication, recorder)
        try:
            trio.run(self._main, clock=clock)
        except (BaseExceptionGroup, trio.TrioInternalError) as error:
            told = what_to_raise(error)
            raise told from told.__cause__
        finally:
            self.recorder = self._network = self._nursery = self._clock = None

    async def _main(self) -> None:
        self._changed = trio.Event()
        self._network = Network(self._transport, self._message_codec(), self._receive, self.lose)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await self._open(self._network, nursery)
                self._begin_time()
                if self._serving:
                    await nursery.start(self._drain_on_signals)
                for context in self.contexts.values():
                    context.turn_us = self.now_us
                    await self._boot(context)
                for context in self.contexts.values():
                    nursery.start_soon(self._live, context, False)
                await self._keep_time()
                nursery.cancel_scope.cancel()
        finally:
            self._still_us = self._last_us if self.finished else self.now_us
            # The scheduler closes what signals wake it by before it takes it back from them, and
            # an alarm of a watchdog would hit a closed descriptor. There is nothing left to wake.
            if threading.current_thread() is threading.main_thread():
                signal.set_wakeup_fd(-1)

    async def _open(self, network: Network, nursery: trio.Nursery) -> None:
        """Join the actors; a world may have some that come to it by themselves."""
        await network.open(nursery, list(self.contexts))

    def _message_codec(self) -> WireCodec:
        if self._codec is None:
            kinds = {kind for one in self.contexts.values() for kind in one.actor.handlers}
            self._codec = WireCodec(
                kind for kind in kinds - {Unanswered} if issubclass(kind, msgspec.Struct)
            )
        return self._codec

    def _begin_time(self) -> None:
        """Let the world's time go, from 0."""
        self._clock = trio.lowlevel.current_clock()
        self._zero_s = self._clock.current_time()

    # The timekeeper

    async def _keep_time(self) -> None:
        """Tell everybody what is due, until the replication ends."""
        heap = self.heap
        while True:
            if self._virtual or (self.finished and not self._draining):
                await self._settle()
            if self.finished:
                return
            if not heap and not self._serving:
                await self._settle()
                if self._is_dead():
                    self._sleep_forever()
                continue
            self._changed = trio.Event()
            due_s = heap[0][0] / self._speed / 1e6 if heap else float("inf")
            with trio.move_on_at(self._zero_s + due_s):
                await self._changed.wait()
                continue
            if heap and heap[0][0] <= self.now_us:
                self._fire(heappop(heap))

    async def _settle(self) -> None:
        """Wait until nothing happens any more but by time.

        Bytes of a real wire are seen by nobody while they are under way, so there it is a guess.
        """
        if self._virtual:
            await wait_all_tasks_blocked()
            return
        with trio.move_on_after(SETTLE_LIMIT_S):
            while self._is_busy():  # noqa: ASYNC110  rest is not one task's event
                await trio.sleep(QUIET_S)
            await wait_all_tasks_blocked(QUIET_S)

    def _is_dead(self) -> bool:
        """Whether nothing will ever happen again."""
        return not (self.heap or self.finished or self._is_busy())

    def _fire(self, due: Due) -> None:
        due_us, _, context, what, _, again = due
        if context is None:
            if type(what) is Envelope:
                self.deliver_now(what)
            elif what is not None:
                what()
        elif not self._draining:
            if again is not None and type(what) is str:
                period_us, now_us = context.lasts_us(again[0]), self.now_us
                # Beats that a pause or a busy machine let pass are not made up for.
                last_us = due_us if due_us + period_us > now_us else now_us
                due[0], due[1] = last_us + period_us, next(self.serials)
                self.schedule(due)
            context.mailbox.alarm(due)

    # Turns

    async def _live(self, actor: HostContext, boot: bool) -> None:
        """Be an actor: take one turn after another until it is killed."""
        with actor.scope:
            async with actor.lock:
                if boot:
                    actor.begin_boot()
                    await self._boot(actor)
                while True:
                    what = await actor.mailbox.get()
                    actor.busy = True
                    if type(what) is Envelope:
                        await self._take_message(actor, what)
                    else:
                        await self._take_due(actor, what)
                    actor.busy = False

    async def _boot(self, actor: HostContext) -> None:
        if self.recorder is not None:
            actor.record = self.recorder.start(actor.turn_us, actor.name, actor.boot)
        actor.traceparent = ""
        await self._turn(actor, START, partial(actor.actor.on_start, actor))

    async def _take_message(self, actor: HostContext, envelope: Envelope[Any]) -> None:
        if envelope.reply_to and not actor.answered(envelope.reply_to):
            self._late(envelope)
            return
        actor.turn_us = self.now_us
        if self.recorder is not None:
            actor.record = self.recorder.message(actor.turn_us, envelope)

        def take() -> None:
            actor.traceparent = envelope.traceparent
            answer = actor.handlers[type(envelope.body)](actor, envelope)
            if answer is not None:
                actor.reply(envelope, answer)

        await self._turn(actor, envelope, take)

    async def _take_due(self, actor: HostContext, due: Due) -> None:
        """Let a timer or a time-out have its turn, unless it was taken back meanwhile."""
        what, cause, again = due[WHAT], due[WHAT + 1], due[AGAIN]
        if due[WHOSE] is None:
            return
        recorder, name = self.recorder, actor.name
        actor.turn_us = now_us = self.now_us
        if type(what) is int:
            actor.answered(what)
            if recorder is not None:
                actor.record = recorder.unanswered(now_us, name, cause, what)
            actor.traceparent = trace = again.traceparent
            told = Envelope(0, name, name, what, actor.record, Unanswered(again.body), trace)
            await self._turn(actor, what, lambda: actor.handlers[Unanswered](actor, told))
            return
        if recorder is not None:
            actor.record = recorder.timer(now_us, name, cause, what)
        if again is None:
            del actor.timers[what]
            actor.traceparent = ""
            await self._turn(actor, what, partial(actor.on_timer, actor, what))
        else:
            await self._turn(actor, what, partial(actor.ask_again, again))

    async def _turn(self, actor: HostContext, turn: Any, take: Callable[[], Any]) -> None:
        """Take one turn, and let out what it asked for; if it fails, all of it never was."""
        actor.turn = turn
        if self._halted is not None:
            raise self._halted
        life = actor.scope
        try:
            if actor.blocking and not self._virtual:
                await self._in_thread(actor, self._act, turn, take)
            else:
                self._act(actor, turn, take)
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            if life.cancel_called:
                self._take_back(actor, MEANWHILE)
            else:
                await self._fail(actor, turn, error)
            return
        if life.cancel_called:
            self._take_back(actor, MEANWHILE)  # in a thread
        elif self._commits(actor, turn):
            actor.release()
            self._last_us = self.now_us
        elif not actor.down:
            await self._boot(actor)

    def _act(self, context: HostContext, turn: Any, take: Callable[[], Any]) -> None:
        """Call the actor. This frame alone names a context: the watchdog reads whose turn it is."""
        take()

    async def _fail(self, actor: HostContext, turn: Any, error: Exception) -> None:
        """Start an actor again whose turn raised, if its policy allows it."""
        supervisor, now_us = self._supervisor, self.now_us
        actor.undo()
        try:
            self._explain(error, actor, turn)
        except ActorFailedError as failed:
            if supervisor is None:
                raise
            if not supervisor.allows(actor.name, now_us):
                raise GaveUpError(actor.name, failed.turn, now_us, supervisor.policy) from error
        self._take_back(actor, f"{TURN_FAILED}{type(error).__name__}: {error}")
        actor.begin_boot()
        await self._boot(actor)
