"""What an actor may do on the trio host, where turns may fail and may run in a worker thread.

All that a turn asks for is kept as effects, in the order of asking, and released by the host once
the turn has committed: so a turn is atomic, and nothing but its own context is touched from a
worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from heapq import heapify, heappush
from typing import Any

import trio

from actors.actor import Actor
from actors.clocks import ClockedContext, ClockedWorld
from actors.errors import UnknownActorError, describe_turn
from actors.mailbox import Mailbox
from actors.simulator import Due, Simulator
from actors.stores.memory import MemoryStore, Undo, roll_back
from transports.envelope import SERIAL_BITS, Envelope
from transports.local import TcpTransport, Transport
from transports.traceparent import accepted
from transports.wiring import Wiring

WHOSE, WHAT, AGAIN = 2, 3, 5  # of what is due
START = "its start"  # the turn that begins a boot, in words
TURN_FAILED = "the turn failed: "  # how a record begins of a turn that raised
_SERIALS = (1 << SERIAL_BITS) - 1


class HostedWorld(ClockedWorld):
    """What contexts need of a world on the trio host; `actors.world` makes it go."""

    contexts: dict[str, HostContext]  # type: ignore[assignment]  # this world makes no others
    mailbox_limit: int  # messages
    _changed: trio.Event  # wakes the timekeeper: something is due earlier than it waits for
    _transport: Transport
    _speed: float  # seconds of the world in one of its clock

    def interpose(self, wiring: Wiring) -> bool:
        """Let byte faults act on the sockets between actors; False if there are none."""
        if not isinstance(self._transport, TcpTransport):
            return False
        self._transport.interpose(wiring, self._speed)
        return True

    def schedule(self, due: Due) -> None:
        """Let something come when it is due."""
        heappush(self.heap, due)
        if self.heap[0] is due:
            self._changed.set()

    def take_dues(self, context: HostContext) -> list[Due]:
        """Take out all that is due to an actor."""
        mine = [due for due in self.heap if due[WHOSE] is context]
        self.heap[:] = [due for due in self.heap if due[WHOSE] is not context]
        heapify(self.heap)
        return mine

    def stopped_since_us(self, name: str) -> int | None:
        """Return since when an actor's monotonic clock stands still, None while it goes."""
        context = self.contexts[name]
        return context.suspended_us if context.suspended_us >= 0 and context.clock_stops else None

    def _is_busy(self) -> bool:
        """Whether an actor is in a turn, or has one to take."""
        return any(
            one.busy or (len(one.mailbox) and not one.mailbox.paused)
            for one in self.contexts.values()
        )

    def dues_of(self, name: str) -> Iterator[Due]:
        """Yield what is due to an actor, and what will be once it goes on."""
        context = self.contexts[name]
        yield from context.frozen
        for due in self.heap:
            if due[WHOSE] is context:
                yield due
        heapify(self.heap)
        self._changed.set()

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        """Let an actor's wall clock jump, as soon as it is in no turn."""
        self.contexts[name].between_turns(partial(super().shift_clock, name, fault, by_us))
        return True

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        """Let an actor's clocks go at a rate in millionths, as soon as it is in no turn."""
        self.contexts[name].between_turns(partial(super().set_clock_rate, name, fault, rate_ppm))
        return True


def unhurried(_body: Any) -> None:
    """Let a turn come to its end, whatever waits for that."""


class HostContext(ClockedContext):
    """One actor on the trio host: its mailbox, its open questions, and its turn's effects."""

    __slots__ = (
        "blocking", "busy", "clock_stops", "down", "effects", "frozen", "hurry", "journal", "lock",
        "mailbox", "open_questions", "put_off", "scope", "suspended_us", "threaded", "turn",
        "turn_us",
    )  # fmt: skip

    _world: HostedWorld

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        self.effects: list[Callable[[], Any]] = []
        self.open_questions: dict[int, Due] = {}
        self.frozen: list[Due] = []  # what is due to a suspended actor, once it goes on
        self.blocking = bool(getattr(actor, "blocking", False))
        self.hurry: Callable[[Any], None] = getattr(actor, "hurry", unhurried)
        self.turn: Any = START
        self.put_off: list[Callable[[], Any]] = []  # until a turn in a thread has ended
        super().__init__(host, name, actor)
        self.journal: list[Undo] = []  # its own: a turn in a thread overlaps those of others
        self.store = MemoryStore(self.journal)

    def reset(self) -> None:
        """Be as new, for the next replication."""
        self.effects.clear()
        self.open_questions.clear()
        self.frozen.clear()
        self.mailbox = Mailbox(self._world.mailbox_limit)
        self.scope = trio.CancelScope()
        self.lock = trio.Lock()  # held by the actor's task: the next one waits for the last turn
        self.busy = self.down = self.threaded = False
        self.put_off.clear()
        self.suspended_us = -1  # since when; -1 while it isn't
        self.clock_stops = True
        self.turn_us = 0
        super().reset()

    def begin_boot(self) -> None:
        """Forget what does not outlive a boot, and start the monotonic clock anew."""
        self.forget()
        self._boot_us = self.turn_us = self._world.now_us
        if self.clock is not None:
            self.clock.reboot(self.turn_us)
        super().begin_boot()

    def forget(self) -> None:
        """Take back every timer and every question."""
        for due in (*self.timers.values(), *self.open_questions.values()):
            due[WHOSE] = due[WHAT] = due[AGAIN] = None
        self.timers.clear()
        self.open_questions.clear()
        self.frozen.clear()

    def come_up(self) -> None:
        """Be ready for a new boot after a kill: take mail again, and a task may live."""
        self.down = False
        self.mailbox = Mailbox(self._world.mailbox_limit)
        self.scope = trio.CancelScope()

    # Time

    @property
    def now_us(self) -> int:
        """Monotonic time since this boot, as of the beginning of the turn, by its own clock."""
        world_us = self.turn_us
        return world_us - self._boot_us if self.clock is None else self.clock.now_us(world_us)

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970, as of the beginning of the turn, by its own clock."""
        world_us = self.turn_us
        if self.clock is None:
            return self._world.epoch_us + world_us
        return self.clock.stamp_us(world_us)

    def suspend(self, now_us: int, clock_stops: bool = True) -> None:
        """Take no turns; with `clock_stops` let no time pass for timers and time-outs either."""
        self.mailbox.paused = True
        self.clock_stops = clock_stops
        self.suspended_us = now_us
        self.frozen += self._world.take_dues(self)
        if self.clock is not None and clock_stops:
            self.clock.stop(self.suspended_us)

    def resume(self, now_us: int) -> None:
        """Go on; what was due meanwhile comes now if the clock has not stood still."""
        slept_us = now_us - self.suspended_us if self.clock_stops else 0
        self.suspended_us = -1
        self._boot_us += slept_us
        if self.clock is not None and self.clock_stops:
            self.clock.go_on(now_us)
        self._world.tell_jump(self.name, slept_us)
        frozen, self.frozen = self.frozen, []
        for due in frozen:
            due[0] += slept_us
            self._world.schedule(due)
        self.mailbox.resume()

    # Turns

    def release(self) -> None:
        """Let out what a turn asked for; it has committed."""
        self.journal.clear()
        effects, self.effects = self.effects, []
        for effect in effects:
            effect()
        self.catch_up()

    def undo(self) -> None:
        """Take back what a turn wrote, and forget what it asked for."""
        roll_back(self.journal)
        self.effects.clear()
        self.catch_up()

    def silence(self) -> None:
        """Keep what a turn wrote, and forget what it asked for."""
        self.journal.clear()
        self.effects.clear()
        self.catch_up()

    def between_turns(self, change: Callable[[], Any]) -> None:
        """Change what an actor sees: now, or when its turn in a worker thread has ended."""
        if self.threaded:
            self.put_off.append(change)
        else:
            change()

    def catch_up(self) -> None:
        """Make the changes that were put off."""
        while self.put_off:
            self.put_off.pop(0)()

    def send(self, target: str, body: Any) -> None:
        """Send a message that expects no answer."""
        self._send(target, 0, body, self.traceparent)

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer the question in `envelope`."""
        self._send(envelope.source, envelope.id, body, envelope.traceparent)

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        """Ask a question and return its id; one turn with the answer or `Unanswered` follows."""
        question = self._send(target, 0, body, self.traceparent)
        number = question.id
        # As old as the question, so that time-outs of one instant come in the order of asking.
        serial = number & _SERIALS
        due = [
            self.turn_us + self.lasts_us(timeout_us),
            serial,
            self,
            number,
            self.record,
            question,
        ]
        self.effects.append(partial(self._wait_for, due))
        return number

    def _send(self, target: str, reply_to: int, body: Any, traceparent: str) -> Envelope[Any]:
        try:
            post = self.links[target]
        except KeyError:
            raise UnknownActorError(
                f"{self.name} sent to {target!r} on {describe_turn(self.turn)}, "
                f"but there are only {', '.join(self._world.contexts)}"
            ) from None
        number = next(self.numbers)
        envelope = Envelope(number, self.name, target, reply_to, self.record, body, traceparent)
        if self._world.recorder is not None:
            self.effects.append(partial(self._world.recorder.send, self.turn_us, envelope))
        self.effects.append(partial(post, envelope))
        return envelope

    def _wait_for(self, due: Due) -> None:
        self.open_questions[due[WHAT]] = due
        self._plan(due)

    def answered(self, number: int) -> bool:
        """Whether a question was open; it no longer is, and its time-out is taken back."""
        due = self.open_questions.pop(number, None)
        if due is None:
            return False
        due[WHOSE] = due[WHAT] = due[AGAIN] = None
        return True

    # Timers

    def set_timer(self, timer: str, delay_us: int) -> None:
        """Wake this actor after `delay_us`; set again it is replaced."""
        self._set(timer, delay_us, None)

    def request_every(
        self, timer: str, period_us: int, target: str, body: Any, timeout_us: int
    ) -> None:
        """Ask a question every `period_us` until the timer is cancelled."""
        self._set(timer, period_us, (period_us, target, body, timeout_us, self.traceparent))

    def cancel_timer(self, timer: str) -> None:
        """Take the timer back if it is set."""
        self.effects.append(partial(self._disarm, timer))

    def _set(self, timer: str, delay_us: int, again: tuple[Any, ...] | None) -> None:
        serial = next(self._world.serials)
        due = [self.turn_us + self.lasts_us(delay_us), serial, self, timer, self.record, again]
        self.effects.append(partial(self._arm, timer, due))

    def _arm(self, timer: str, due: Due) -> None:
        self._disarm(timer)
        self.timers[timer] = due
        self._plan(due)

    def _disarm(self, timer: str) -> None:
        due = self.timers.pop(timer, None)
        if due is not None:
            due[WHOSE] = due[WHAT] = due[AGAIN] = None

    def _plan(self, due: Due) -> None:
        """Let it come when it is due; a turn in a thread may end in an actor that is suspended."""
        if self.suspended_us < 0:
            self._world.schedule(due)
        else:
            self.frozen.append(due)

    def ask_again(self, again: tuple[Any, ...]) -> None:
        """Ask what is asked over and over, in a turn of its own."""
        _, target, body, timeout_us, self.traceparent = again
        self.request(target, body, timeout_us)

    # Words

    def trace(self, traceparent: str) -> None:
        """Let what this turn sends from here on belong to another trace; "" for none."""
        self.traceparent = accepted(traceparent)

    def log(self, event: str, **fields: Any) -> None:
        """Record that something happened."""
        self.effects.append(partial(self._say, self.record, event, fields))

    def _say(self, record: int, event: str, fields: dict[str, Any]) -> None:
        world = self._world
        watcher = self.watchers.get(event)
        if watcher is not None:
            watcher(world.now_us, fields)
        if world.recorder is not None:
            world.recorder.event(world.now_us, self.name, record, event, fields)

    def done(self) -> None:
        """Say that this actor's workload is finished."""
        self.effects.append(lambda: self._world.on_done(self.name))


def finish_now(turn: Coroutine[Any, Any, None]) -> None:
    """Take a turn that waits for nothing, as one step; AssertionError if it does wait."""
    try:
        turn.send(None)
    except StopIteration:
        return
    turn.close()
    raise AssertionError("a turn outside its actor's own task must not wait: others would overlap")
