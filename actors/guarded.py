"""The simulation host where things go wrong: turns fail, actors die, sleep and come back.

For crash tests and faults. Hooks decide what becomes of each turn's commit: nothing that a turn
sends, says or sets is released before, and a turn that fails never was, but for its record in the
log. An actor that is down gets nothing; for one that sleeps everything waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from actors.actor import Commit
from actors.clocks import ClockedContext, ClockedWorld
from actors.simulator import ActorContext, Due, Simulator
from actors.stores.memory import Undo, roll_back
from logs.record import Recorder
from transports.clock import EPOCH_US
from transports.envelope import Envelope
from transports.faults.fault import Keeper
from transports.memory import DOWN, Link, Post

CommitHook = Callable[[ActorContext, Sequence[Undo]], Commit | None]


class GuardedContext(ClockedContext):
    """What one actor may do; what it says is kept until its turn has committed."""

    __slots__ = ()

    _world: GuardedSimulator

    @property
    def now_us(self) -> int:
        """Monotonic time since this boot, by its own clock."""
        world_us = self._world.now_us
        return world_us - self._boot_us if self.clock is None else self.clock.now_us(world_us)

    @property
    def stamp_us(self) -> int:
        """Wall time since 1970, by its own clock."""
        world_us = self._world.now_us
        return EPOCH_US + world_us if self.clock is None else self.clock.stamp_us(world_us)

    def reboot(self) -> None:
        """Start the monotonic clock anew."""
        super().reboot()
        if self.clock is not None:
            self.clock.reboot(self._world.now_us)

    def set_timer(self, timer: str, delay_us: int) -> None:
        """Wake this actor after `delay_us` of its own time."""
        if self.clock is not None:
            delay_us = self.clock.lasts_us(delay_us)
        super().set_timer(timer, delay_us)

    def log(self, event: str, **fields: Any) -> None:
        """Keep that something happened."""
        log = super().log
        self._world.said.append(lambda: log(event, **fields))

    def done(self) -> None:
        """Keep that this actor's workload is finished."""
        self._world.said.append(super().done)


class Sleep:
    """An actor that takes no turns: since when, and what waits for it."""

    __slots__ = ("clock_stops", "due", "mail", "since_us")

    def __init__(self, since_us: int, clock_stops: bool) -> None:
        self.since_us = since_us
        self.clock_stops = clock_stops
        self.mail: list[Envelope[Any]] = []
        self.due: list[Due] = []  # what came due meanwhile


class GuardedSimulator(ClockedWorld):
    """A simulator whose commit hooks are asked after every turn but the starts."""

    context_type = GuardedContext
    contexts: dict[str, GuardedContext]  # type: ignore[assignment]  # this world makes no others

    def __init__(self, seed: int, cell: str, commit_hook: CommitHook | None = None) -> None:
        super().__init__(seed, cell)
        self._hooks = [] if commit_hook is None else [commit_hook]
        self.journal: list[Undo] = []
        self.said: list[Callable[[], None]] = []
        self.down: set[str] = set()
        self.asleep: dict[str, Sleep] = {}
        self.keepers: dict[str, Keeper] = {}
        self._asked_us: dict[int, int] = {}  # when what a keeper has put off was due

    def add_commit_hook(self, hook: Callable[[str, bool], Commit | None]) -> None:
        """Ask `hook(actor, wrote)` what becomes of each turn; the first that says counts."""
        self._hooks.append(lambda context, writes: hook(context.name, bool(writes)))

    def connect(self, link: Callable[[str, str], Link | None]) -> None:
        """Join every two actors by a link: the queue can't be a turn's buffer if turns may fail."""
        super().connect(lambda source, target: link(source, target) or self.new_link())

    def _reset(self, replication: int, recorder: Recorder | None) -> None:
        self.said.clear()
        self._outbox.clear()
        self.journal.clear()
        self.down.clear()
        self.asleep.clear()
        self._asked_us.clear()
        super()._reset(replication, recorder)

    def _start(self, context: ActorContext) -> None:
        super()._start(context)
        self.journal.clear()
        self._speak()
        self._release()

    def _post(self, way: Link) -> Post:
        return way.post  # into the outbox

    def _release(self) -> None:
        for link, envelope in self._outbox:
            if envelope.id in self.questions:
                self._wait_for(envelope)
            link.release(envelope)
        self._outbox.clear()

    def _wait_for(self, question: Envelope[Any]) -> None:
        clock = self.contexts[question.source].clock
        if clock is not None:
            self.questions[question.id] = clock.lasts_us(self.questions[question.id])
        super()._wait_for(question)

    def _speak(self) -> None:
        for speak in self.said:
            speak()
        self.said.clear()

    def _drive(self) -> None:
        """Take what is due as the base class does, and ask the hook after each turn."""
        while self._fifo or not self.finished:
            step = self._next_turn()
            if step is None:
                continue
            context, turn, take = step
            try:
                take()
            except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
                self._explain(error, context, turn)
            verdict = self._verdict(context)
            if verdict is Commit.DONE:
                self.journal.clear()
                self._speak()
                self._release()
            elif verdict is Commit.SILENCED:
                self.journal.clear()
                self._forget_turn()
                self.kill(context.name, verdict.value)
            else:
                self._undo(context, verdict)

    def _verdict(self, context: ActorContext) -> Commit:
        for hook in self._hooks:
            verdict = hook(context, self.journal)
            if verdict is not None and verdict is not Commit.DONE:
                return verdict
        return Commit.DONE

    def _next_turn(self) -> tuple[ActorContext, Any, Callable[[], Any]] | None:
        """Return whose turn is next, its input and the call that takes it; None for no turn."""
        if self._fifo:
            return self._next_message(self._fifo.pop(0))
        if not self.heap:
            self._sleep_forever()
        due = heappop(self.heap)
        if self.asleep and self._waits(due):
            return None
        asked_us = due[0] if not self.keepers else self._kept_us(due)
        if asked_us < 0:
            return None
        due_us, _, owner, what, cause, _ = due
        if owner is not None:
            return self._next_timer(owner, due, asked_us)
        if type(what) is not int:
            self._arrive(due_us, what)
        elif what in self.waiting:
            self.now_us = due_us
            asker = self.contexts[self.waiting[what].source]
            return asker, what, lambda: self._time_out(asker, what, cause)
        return None

    def _next_timer(
        self, owner: GuardedContext, due: Due, asked_us: int
    ) -> tuple[ActorContext, Any, Callable[[], Any]]:
        due_us, _, _, timer, cause, again = due
        self.now_us = due_us
        if again is not None:
            due[:2] = asked_us + owner.lasts_us(again[0]), next(self.serials)
            heappush(self.heap, due)
        else:
            del owner.timers[timer]
        if self.recorder is not None:
            owner.record = self.recorder.timer(due_us, owner.name, cause, timer)
        if again is not None:
            _, _, target, body, timeout_us = again
            return owner, timer, lambda: owner.request(target, body, timeout_us)
        return owner, timer, lambda: owner.on_timer(owner, timer)

    def _next_message(
        self, envelope: Envelope[Any]
    ) -> tuple[ActorContext, Any, Callable[[], None]] | None:
        context = self.contexts[envelope.target]
        if envelope.target in self.down:
            self.lose(envelope, DOWN)
            return None
        if envelope.target in self.asleep:
            self.asleep[envelope.target].mail.append(envelope)
            return None
        if envelope.reply_to and not self._answered(envelope.reply_to):
            self._late(envelope)
            return None
        if self.recorder is not None:
            context.record = self.recorder.message(self.now_us, envelope)

        def take() -> None:
            answer = context.handlers[type(envelope.body)](context, envelope)
            if answer is not None:
                context.reply(envelope, answer)

        return context, envelope, take

    def keep_time(self, name: str, keeper: Keeper) -> None:
        """Let a keeper say when an actor's timers and time-outs come, never before they are due."""
        self.keepers[name] = keeper

    def _kept_us(self, due: Due) -> int:
        """Return when something was due before its actor's keeper put it off; -1 if it does now."""
        before_us = self._asked_us.pop(id(due), int(due[0]))
        keeper = self.keepers.get(self._subject(due) or "")
        if keeper is None:
            return int(due[0])
        # Asked again each time: what was put off to the same moment has come first meanwhile.
        later_us = keeper.next_us(due[3], due[0])
        if later_us > due[0]:
            self._asked_us[id(due)] = before_us
            due[:2] = later_us, next(self.serials)  # behind what was due before it
            heappush(self.heap, due)
            return -1
        keeper.came(due[3])
        return before_us

    def _answered(self, number: int) -> bool:
        """Whether a question was open; it no longer is."""
        return self.waiting.pop(number, None) is not None

    def _forget_turn(self) -> None:
        """Let nothing that a turn sent or said leave."""
        self._outbox.clear()
        self.said.clear()
        self.questions.clear()  # those of this turn: what was sent is waited for

    def _undo(self, context: ActorContext, verdict: Commit) -> None:
        roll_back(self.journal)
        self._forget_turn()
        if self.recorder is not None:
            self.recorder.undone(self.now_us, context.name, context.record, verdict.value)
        if verdict is Commit.KILLED:
            self.kill(context.name, verdict.value)
            return
        self._stop_waiting(context.name)
        if verdict is Commit.CRASHED:
            context.reboot()
        else:
            context.boot -= 1  # the same boot goes on
        context.begin_boot()
        self._start(context)

    def _stop_waiting(self, name: str) -> None:
        """Let no answer come to the questions that an actor asked."""
        for number in [key for key, asked in self.waiting.items() if asked.source == name]:
            del self.waiting[number]

    # Death and sleep

    def kill(self, name: str, fault: str) -> bool:
        """Kill an actor: all but its store is gone. False if it is down already."""
        if name in self.down:
            return False
        context = self.contexts[name]
        self.down.add(name)
        context.cancel_timers()
        self._stop_waiting(name)
        sleep = self.asleep.pop(name, None)
        for envelope in () if sleep is None else sleep.mail:
            self.lose(envelope, DOWN)
        for due in () if sleep is None else sleep.due:
            self._asked_us.pop(id(due), None)
        self.tell(name, fault, "kill")
        return True

    def revive(self, name: str, fault: str) -> None:
        """Start a killed actor in a new boot."""
        if name not in self.down:
            return
        self.down.discard(name)
        self.tell(name, fault, "start")
        context = self.contexts[name]
        context.reboot()
        context.begin_boot()
        self._start(context)

    def suspend(self, name: str, fault: str, clock_stops: bool) -> bool:
        """Let an actor take no turn; with `clock_stops` its timers stand still. False if it is."""
        if name in self.down or name in self.asleep:
            return False
        self.asleep[name] = Sleep(self.now_us, clock_stops)
        clock = self.contexts[name].clock
        if clock is not None and clock_stops:
            clock.stop(self.now_us)
        self.tell(name, fault, "suspend" if clock_stops else "pause")
        return True

    def resume(self, name: str, fault: str) -> None:
        """Let it go on: first with the messages that have waited, then with what came due."""
        sleep = self.asleep.pop(name, None)
        if sleep is None:
            return  # it was killed meanwhile
        self.tell(name, fault, "resume")
        slept_us = self.now_us - sleep.since_us
        if sleep.clock_stops:
            context = self.contexts[name]
            context.stand_still(slept_us)
            if context.clock is not None:
                context.clock.go_on(self.now_us)
            self.tell_jump(name, slept_us)
            for due in self.heap:
                if self._subject(due) == name and id(due) not in self._asked_us:
                    due[0] += slept_us
        self._keep_order(name, sleep)
        for due in sleep.due:
            moves = sleep.clock_stops and id(due) not in self._asked_us
            due[0] = due[0] + slept_us if moves else self.now_us
            self.heap.append(due)
        heapify(self.heap)
        self._fifo.extend(sleep.mail)

    def _keep_order(self, name: str, sleep: Sleep) -> None:
        """Let what came due in a sleep come in that order, before what is due at its end."""
        if sleep.clock_stops:
            return  # each moves by as much
        now = [due for due in self.heap if due[0] == self.now_us and self._subject(due) == name]
        late = [*sleep.due, *sorted(now, key=lambda due: due[1])]
        for due, serial in zip(late, sorted(due[1] for due in late), strict=True):
            due[1] = serial

    def set_writable(self, name: str, fault: str, writable: bool) -> None:
        """Say whether the actor's store can be written."""
        store = self.contexts[name].store
        if store.writable is not writable:
            store.writable = writable
            self.tell(name, fault, "writable" if writable else "unwritable")

    def stopped_since_us(self, name: str) -> int | None:
        """Return since when an actor's monotonic clock stands still, None while it goes."""
        sleep = self.asleep.get(name)
        return sleep.since_us if sleep is not None and sleep.clock_stops else None

    def dues_of(self, name: str) -> Iterator[Due]:
        """Yield what is due to an actor, and what came due while it slept."""
        for due in self.heap:
            if self._subject(due) == name:
                yield due
        heapify(self.heap)
        if name in self.asleep:
            yield from self.asleep[name].due

    def _subject(self, due: Due) -> str | None:
        """Return whose turn it would be, None for the host's own business."""
        _, _, owner, what, _, _ = due
        if owner is not None:
            return str(owner.name)
        if type(what) is int and what in self.waiting:
            return self.waiting[what].source
        return None

    def _waits(self, due: Due) -> bool:
        """Put aside what comes due for an actor that sleeps."""
        sleep = self.asleep.get(self._subject(due) or "")
        if sleep is None:
            return False
        sleep.due.append(due)
        return True


def simulator(
    seed: int, cell: str, commit_hook: CommitHook | None = None, *, guarded: bool = False
) -> Simulator:
    """Return a simulator; one in which things may go wrong if there is a hook, or if asked for."""
    if commit_hook is None and not guarded:
        return Simulator(seed, cell)
    return GuardedSimulator(seed, cell, commit_hook)
