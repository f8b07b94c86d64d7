"""What an actor may do on the trio host, where turns may fail and may run in a worker thread.

All that a turn asks for is kept as effects, in the order of asking, and released by the host once
the turn has committed: so a turn is atomic, and nothing but its own context is touched from a
worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappush
from typing import Any

import trio

from actors.actor import Actor
from actors.errors import UnknownActorError, describe_turn
from actors.mailbox import Mailbox
from actors.simulator import ActorContext, Due, Simulator
from actors.stores.memory import MemoryStore, Undo, roll_back
from transports.envelope import SERIAL_BITS, Envelope

WHOSE, WHAT, AGAIN = 2, 3, 5  # of what is due
_SERIALS = (1 << SERIAL_BITS) - 1


class HostedWorld(Simulator):
    """What contexts need of a world on the trio host; `actors.world` makes it go."""

    mailbox_limit: int  # messages
    epoch_us: int  # the wall time at which the world begins
    _changed: trio.Event  # wakes the timekeeper: something is due earlier than it waits for

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


class HostContext(ActorContext):
    """One actor on the trio host: its mailbox, its open questions, and its turn's effects."""

    __slots__ = (
        "blocking", "busy", "clock_stops", "down", "effects", "frozen", "journal", "lock",
        "mailbox", "open_questions", "scope", "suspended_us", "turn", "turn_us",
    )  # fmt: skip

    _world: HostedWorld

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        self.effects: list[Callable[[], Any]] = []
        self.open_questions: dict[int, Due] = {}
        self.frozen: list[Due] = []  # what is due to a suspended actor, once it goes on
        self.blocking = bool(getattr(actor, "blocking", False))
        self.turn: Any = "its start"
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
        self.busy = self.down = False
        self.suspended_us = -1  # since when; -1 while it isn't
        self.clock_stops = True
        self.turn_us = 0
        super().reset()

    def begin_boot(self) -> None:
        """Forget what does not outlive a boot, and start the monotonic clock anew."""
        self.forget()
        self._boot_us = self.turn_us = self._world.now_us
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
        """Monotonic time since this boot, as of the beginning of the turn."""
        return self.turn_us - self._boot_us

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970, as of the beginning of the turn."""
        return self._world.epoch_us + self.turn_us

    def suspend(self, clock_stops: bool = True) -> None:
        """Take no turns; with `clock_stops` let no time pass for timers and time-outs either."""
        self.mailbox.paused = True
        self.clock_stops = clock_stops
        self.suspended_us = self._world.now_us
        self.frozen += self._world.take_dues(self)

    def resume(self) -> None:
        """Go on; what was due meanwhile comes now if the clock has not stood still."""
        slept_us = self._world.now_us - self.suspended_us if self.clock_stops else 0
        self.suspended_us = -1
        self._boot_us += slept_us
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

    def undo(self) -> None:
        """Take back what a turn wrote, and forget what it asked for."""
        roll_back(self.journal)
        self.effects.clear()

    def send(self, target: str, body: Any) -> None:
        """Send a message that expects no answer."""
        self._send(target, 0, body)

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer the question in `envelope`."""
        self._send(envelope.source, envelope.id, body)

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        """Ask a question and return its id; one turn with the answer or `Unanswered` follows."""
        number = self._send(target, 0, body)
        # As old as the question, so that time-outs of one instant come in the order of asking.
        serial = number & _SERIALS
        due = [self.turn_us + timeout_us, serial, self, number, self.record, body]
        self.effects.append(partial(self._wait_for, due))
        return number

    def _send(self, target: str, reply_to: int, body: Any) -> int:
        try:
            post = self.links[target]
        except KeyError:
            raise UnknownActorError(
                f"{self.name} sent to {target!r} on {describe_turn(self.turn)}, "
                f"but there are only {', '.join(self._world.contexts)}"
            ) from None
        number = next(self.numbers)
        envelope = Envelope(number, self.name, target, reply_to, self.record, body)
        self.effects.append(partial(post, envelope))
        return number

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
        self._set(timer, period_us, (period_us, target, body, timeout_us))

    def cancel_timer(self, timer: str) -> None:
        """Take the timer back if it is set."""
        self.effects.append(partial(self._disarm, timer))

    def _set(self, timer: str, delay_us: int, again: tuple[Any, ...] | None) -> None:
        serial = next(self._world.serials)
        due = [self.turn_us + delay_us, serial, self, timer, self.record, again]
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

    # Words

    def log(self, event: str, **fields: Any) -> None:
        """Record that something happened."""
        self.effects.append(partial(self.say, self.record, event, fields))

    def say(self, record: int, event: str, fields: dict[str, Any]) -> None:
        """Let watchers and the log know of an event; `record` is its turn's."""
        world = self._world
        watcher = self.watchers.get(event)
        if watcher is not None:
            watcher(world.now_us, fields)
        if world.recorder is not None:
            world.recorder.event(world.now_us, self.name, record, event, fields)

    def done(self) -> None:
        """Say that this actor's workload is finished."""
        self.effects.append(lambda: self._world.on_done(self.name))
