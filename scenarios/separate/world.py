"""The trio host with each actor in a process of its own.

What is one for all is here: the links with latency and faults, metrics, the log, the end. An
actor's turns are taken in its process and told from there, each once it has committed. Then it gets
its record, its words are heard, and its messages go onto their links. So a log reads as that of
actors in one process, and times are those at which turns were heard of.
"""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.actor import Actor, Commit, Place
from actors.errors import ActorFailedError, SimulationError, UnhandledMessageError
from actors.host import HostContext
from actors.network import Network
from actors.simulator import Due
from actors.world import SETTLE_LIMIT_S
from scenarios.program_world import ProgramWorld
from scenarios.programs import ProgramTransport, to_stderr
from scenarios.separate.hub import ActorProcess, Hub, Sockets, zero_s
from scenarios.separate.report import (
    Asking,
    Begin,
    Done,
    Failed,
    Job,
    Meddle,
    Report,
    Said,
    Sent,
    State,
    Struck,
    Tell,
    Told,
    Verdict,
    Writable,
    state_of,
)
from scenarios.spec import Cast
from scenarios.stand_in import StandIn
from scenarios.watchdog import PATIENCE_S
from transports.codec import FrameError
from transports.envelope import Envelope
from transports.memory import DOWN

STATE_LIMIT_S = 10.0  # real time; a turn that takes longer is ended by its process's watchdog
TICK_S = 0.001
_FOREVER_US = 1 << 62


class ElsewhereError(SimulationError):
    """An actor failed in its process; what is told of it was made there."""

    def __init__(self, failed: Failed) -> None:
        self.kind, self.sentence = failed.kind, failed.sentence
        self.trace, self.actor = failed.trace, failed.actor
        super().__init__(failed.sentence)


class ProcessWorld(ProgramWorld):
    """A `TrioWorld` whose actors, `cast` at their `places`, are processes; programs may join.

    Files that the cast uses are looked for from `folder`.
    """

    def __init__(
        self,
        seed: int,
        cell: str,
        *,
        programs: ProgramTransport,
        speed: float,
        cast: tuple[Cast, ...],
        places: Mapping[str, Place],
        folder: Path,
        sockets: Sockets,
    ) -> None:
        super().__init__(seed, cell, programs=programs, speed=speed)
        self.patience_s = PATIENCE_S  # that a turn may take; who watches sets it
        self._cast = {one.name: one for one in cast}
        self._places, self._folder = places, folder
        self._where = seed, cell
        self._hub = Hub(sockets, to_stderr)
        self._asked: dict[str, trio.Event] = {}  # whose state is waited for
        self._committing = ""  # who is killed once its turn has committed

    def add(self, name: str, actor: Actor, heard: bool = True) -> None:
        """Add an actor that takes its turns in a process of its own."""
        stands_in = isinstance(actor, StandIn)
        super().add(name, actor if stands_in else StandIn(actor), heard)

    def _job(self, number: int, name: str) -> Job:
        seed, cell = self._where
        return Job(
            cast=self._cast[name],
            place=self._places[name],
            folder=str(self._folder),
            cwd=str(Path.cwd()),
            import_path=tuple(sys.path),
            index=number,
            names=tuple(self.contexts),
            seed=seed,
            cell=cell,
            replication=self.replication,
            boot=0,
            ids=0,
            draws={},
            speed=self._speed,
            patience_s=self.patience_s,
            asks=bool(self._hooks),
            store="",
            token="",  # each start gets its own
        )

    # Beginning and end

    async def _main(self) -> None:
        self._asked = {}
        # Actors have timers that we don't see: that nothing is due here does not mean the end.
        self.schedule([_FOREVER_US, 0, None, None, 0, None])
        await super()._main()

    async def _open(self, network: Network, nursery: trio.Nursery) -> None:
        jobs = {
            name: self._job(number, name)
            for number, name in enumerate(self.contexts)
            if name not in self._programs.launches
        }
        await self._hub.open(nursery, jobs, self._hear)
        await network.open(nursery, [self._programs.server])  # which programs dial
        await self._hub.greeted()

    async def _boot(self, actor: HostContext) -> None:
        process = self._hub.processes.get(actor.name)
        if process is None:
            await super()._boot(actor)
        else:
            process.begin(self._beginning(actor))

    def _beginning(self, actor: HostContext, *, look: bool = False) -> Begin:
        """Return when time began, by the clock that the processes share, and what is so now."""
        clock = b"" if actor.clock is None else pickle.dumps(actor.clock)
        began_s = zero_s() - (trio.current_time() - self._zero_s)
        return Begin(began_s, look, actor.store.writable, clock)

    async def _live(self, actor: HostContext, boot: bool) -> None:
        """Leave the actor's life to its process; a new one is told to begin once it greets."""
        if boot:
            process = self._hub.processes[actor.name]
            with actor.scope:
                await self._hub.greeted(actor.name)
                process.begin(self._beginning(actor))

    async def _keep_time(self) -> None:
        await super()._keep_time()
        if self.recorder is not None:
            await self._collect()

    async def _collect(self) -> None:
        """Ask every process for its state: what actors hold in the end is judged."""
        for name, context in self.contexts.items():
            process = self._hub.processes.get(name)
            if process is None:
                continue
            self._asked[name] = trio.Event()
            if process.begun:
                process.order(Tell())
                if context.suspended_us >= 0:
                    process.go_on_after(None)
            else:
                await self._look_at(context, process)
        with trio.move_on_after(STATE_LIMIT_S):
            for asked in self._asked.values():
                await asked.wait()
            return
        late = next(name for name, asked in self._asked.items() if not asked.is_set())
        raise SimulationError(f"{late} did not tell its state within {STATE_LIMIT_S:g} s")

    async def _look_at(self, context: HostContext, process: ActorProcess) -> None:
        """Ask for the state of an actor that is down, of a new process that starts for that."""
        if context.down:
            process.reboot(context.boot + 1)
        context.scope.cancel()  # if it starts, it is not to begin its boot any more
        await self._hub.greeted(context.name)
        process.begin(self._beginning(context, look=True))

    # Messages

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Send the message to its actor's process."""
        target = self.contexts[envelope.target]
        if envelope.target in self._programs.launches:
            super().deliver_now(envelope)
            return
        if type(envelope.body) not in target.handlers:
            raise UnhandledMessageError(
                f"{target.name} has no handler for {type(envelope.body).__name__}: "
                "name it in `handlers`"
            )
        process = self._hub.processes[target.name]
        if self._asked:
            return  # it is over: that was still under way
        if target.down:
            self.lose(envelope, DOWN)
        elif not process.begun:
            self.lose(envelope, "disconnected")
        elif not process.hand(envelope, self._framed(envelope)):
            self.lose(envelope, "queue full")

    def _framed(self, envelope: Envelope[Any]) -> bytes:
        try:
            return self._message_codec().encode(envelope)
        except FrameError as error:  # the number of its cause may be what is too much
            what = f"its {type(envelope.body).__name__} to {envelope.target}"
            raise ActorFailedError(envelope.source, what, self.now_us) from error

    async def _settle(self) -> None:
        """Wait until every process has told of the turns that its mail caused."""
        with trio.move_on_after(SETTLE_LIMIT_S):
            while self._is_busy():  # noqa: ASYNC110  rest is not one process's event
                await trio.sleep(TICK_S)

    def _is_busy(self) -> bool:
        return any(
            process.under_way and self.contexts[name].suspended_us < 0
            for name, process in self._hub.processes.items()
        )

    # What processes tell

    def _hear(self, name: str, told: Told) -> None:
        if isinstance(told, Failed):
            raise ElsewhereError(told)
        context, process = self.contexts[name], self._hub.processes[name]
        if name in self._asked and self._asked[name].is_set():
            return  # a turn that its state does not have: it was not committed yet
        if isinstance(told, Asking):
            self._decide(context, process, told)
        elif isinstance(told, Struck):
            self._struck(context, process, told)
        elif isinstance(told, State):
            self._keep_state(context, told)
        else:
            self._release(context, process, told)

    def _keep_state(self, context: HostContext, told: State) -> None:
        """Hold what the actor held in the end."""
        tables, timers = state_of(told)
        context.store.restore(tables)
        due: dict[str, Due] = {
            timer: [due_us, 0, None, None, 0, None] for timer, due_us in timers.items()
        }
        context.timers.update(due)
        self._asked[context.name].set()

    def _release(self, context: HostContext, process: ActorProcess, told: Report) -> None:
        """Let out what a turn came to."""
        if not self._record(context, process, told):
            return
        process.records[told.number] = context.record
        for effect in told.effects:
            if isinstance(effect, Said):
                self._say(context, told.t, effect)
            elif isinstance(effect, Sent):
                self._post_on(context, told.t, effect)
            elif isinstance(effect, Done):
                self.on_done(context.name)
        self._last_us = self.now_us

    def _record(self, context: HostContext, process: ActorProcess, told: Report) -> bool:
        """Make the turn's record; return whether there was a turn that committed."""
        recorder, name, now_us = self.recorder, context.name, told.t
        process.used = told.ids, told.draws
        if told.input in ("message", "late"):
            envelope = process.under_way.popleft()
            assert envelope.id == told.what, "mail is taken in the order in which it came"
            if told.input == "late":
                if recorder is not None:
                    recorder.late(now_us, envelope)
                return False
            if recorder is not None:
                context.record = recorder.message(now_us, envelope)
            context.handlers[type(envelope.body)](context, envelope)  # it is seen by metrics alone
        elif recorder is not None:
            cause = process.records.get(told.cause, 0)
            if told.input == "start":
                context.record = recorder.start(now_us, name, int(told.what))
            elif told.input == "timer":
                context.record = recorder.timer(now_us, name, cause, str(told.what))
            else:
                context.record = recorder.unanswered(now_us, name, cause, int(told.what))
        if told.undone:
            if recorder is not None:
                recorder.undone(now_us, name, context.record, told.undone)
            return False
        return True

    def _say(self, context: HostContext, t: int, said: Said) -> None:
        """Let watchers and the log know of an event."""
        watcher = context.watchers.get(said.event)
        if watcher is not None:
            watcher(t, said.fields)
        if self.recorder is not None:
            self.recorder.event(t, context.name, context.record, said.event, said.fields)

    def _post_on(self, context: HostContext, t: int, sent: Sent) -> None:
        """Put a message of a turn onto its link, with the turn's record as its cause."""
        codec = self._message_codec()
        try:
            envelope = codec.decode(sent.frame, context.name)
        except FrameError as error:
            raise UnhandledMessageError(
                f"{context.name} sent a {sent.kind} that nobody can read, since no actor has a "
                f"handler for it or a field has another type than it says: {error}"
            ) from error
        envelope = msgspec.structs.replace(envelope, cause=context.record)
        if self.recorder is not None:
            self.recorder.send(t, envelope)
        context.links[envelope.target](envelope)

    # Actor faults

    def _decide(self, context: HostContext, process: ActorProcess, asking: Asking) -> None:
        """Let a turn commit, or have its process killed before or after it does."""
        verdict = self._ask_hooks(context.name, asking.wrote)
        if verdict in (Commit.DONE, Commit.FAILED):
            process.order(Verdict("" if verdict is Commit.DONE else verdict.value))
            return
        self._record(context, process, asking.turn)
        if verdict is Commit.SILENCED:
            process.order(Verdict())
            process.kill_after_commit()
            self._committing = context.name
        elif self.recorder is not None:
            self.recorder.undone(self.now_us, context.name, context.record, verdict.value)
        self.kill(context.name, verdict.value)
        self._committing = ""
        if verdict is Commit.CRASHED:
            self.revive(context.name, verdict.value)

    def set_writable(self, name: str, fault: str, writable: bool) -> None:
        """Say whether the actor's store can be written, from its next turn on."""
        context, process = self.contexts[name], self._hub.processes.get(name)
        if process is not None and context.store.writable is not writable:
            context.store.writable = writable
            self.tell(name, fault, "writable" if writable else "unwritable")
            if process.begun:
                process.order(Writable(writable))

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        """Let an actor's wall clock jump. False for a program, whose clock is the machine's."""
        process = self._hub.processes.get(name)
        if process is None or not process.begun:  # a new process will have it from its start
            return super().shift_clock(name, fault, by_us)
        process.meddle(Meddle(fault, by_us=by_us))
        return True

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        """Let an actor's clocks go at a rate in millionths. False for a program, likewise."""
        process = self._hub.processes.get(name)
        if process is None or not process.begun:
            return super().set_clock_rate(name, fault, rate_ppm)
        process.meddle(Meddle(fault, rate_ppm=rate_ppm))
        return True

    def _struck(self, context: HostContext, process: ActorProcess, told: Struck) -> None:
        """Do to the clock that we keep for the next process what was done in this one."""
        order, name = process.meddling.popleft(), context.name
        clock = self._meddle(name, told.t)
        if order.rate_ppm:
            clock.set_rate(told.t, order.fault, order.rate_ppm)
        else:
            clock.shift(order.by_us)
        self.tell(name, order.fault, told.act, told.t)
        if told.jumped_us and self.recorder is not None:
            self.recorder.event(told.t, name, 0, "clock.jumped", {"by_us": told.jumped_us})

    def _end(self, context: HostContext) -> None:
        process = self._hub.processes.get(context.name)
        if process is None:
            super()._end(context)
            return
        if context.name != self._committing:
            process.kill()  # by SIGKILL
        context.scope.cancel()
        meddling, process.meddling = process.meddling, deque()
        for order in meddling:  # it was killed before it could
            if order.rate_ppm:
                super().set_clock_rate(context.name, order.fault, order.rate_ppm)
            else:
                super().shift_clock(context.name, order.fault, order.by_us)
        left = list(process.under_way)
        process.under_way.clear()
        for envelope in left:
            self.lose(envelope, DOWN)

    def _begin_anew(self, context: HostContext) -> None:
        process = self._hub.processes.get(context.name)
        if process is None:
            super()._begin_anew(context)
            return
        context.begin_boot()
        process.reboot(context.boot)
        assert self._nursery is not None, "actors are revived while the world runs"
        self._nursery.start_soon(self._live, context, True)

    def _stop(self, context: HostContext, now_us: int, clock_stops: bool) -> None:
        process = self._hub.processes.get(context.name)
        if process is None:
            super()._stop(context, now_us, clock_stops)
            return
        context.suspended_us, context.clock_stops = now_us, clock_stops
        process.stop()  # by SIGSTOP

    def _go_on(self, context: HostContext, now_us: int) -> None:
        process = self._hub.processes.get(context.name)
        if process is None:
            super()._go_on(context, now_us)
            return
        slept_us = now_us - context.suspended_us if context.clock_stops else 0
        context.suspended_us = -1
        self.tell_jump(context.name, slept_us)
        process.go_on_after(slept_us)  # by SIGCONT
