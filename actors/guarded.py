"""The simulation host where turns may fail: a hook decides what becomes of each turn's commit.

For crash tests. Nothing that a turn sends, says or sets is released before its commit is decided;
a turn that fails never was, but for its record in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from heapq import heappop, heappush
from typing import Any

from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo, roll_back
from logs.record import Recorder
from transports.envelope import Envelope
from transports.memory import Link, Post


class Commit(Enum):
    """What becomes of a turn."""

    DONE = "committed"
    FAILED = "the commit failed"  # the actor is rebuilt from its store in the same boot
    CRASHED = "the actor was killed at its commit"  # and starts again at once, in a new boot


CommitHook = Callable[[ActorContext, Sequence[Undo]], Commit]


class GuardedContext(ActorContext):
    """What one actor may do; what it says is kept until its turn has committed."""

    __slots__ = ()

    _world: GuardedSimulator

    def log(self, event: str, **fields: Any) -> None:
        """Keep that something happened."""
        log = super().log
        self._world.said.append(lambda: log(event, **fields))

    def done(self) -> None:
        """Keep that this actor's workload is finished."""
        self._world.said.append(super().done)


class GuardedSimulator(Simulator):
    """A simulator whose `commit_hook` is asked after every turn but the starts."""

    context_type = GuardedContext

    def __init__(self, seed: int, cell: str, commit_hook: CommitHook) -> None:
        super().__init__(seed, cell)
        self._commit_hook = commit_hook
        self.journal: list[Undo] = []
        self.said: list[Callable[[], None]] = []

    def connect(self, link: Callable[[str, str], Link | None]) -> None:
        """Join every two actors by a link: the queue can't be a turn's buffer if turns may fail."""
        super().connect(lambda source, target: link(source, target) or self.new_link())

    def _reset(self, replication: int, recorder: Recorder | None) -> None:
        self.said.clear()
        self._outbox.clear()
        self.journal.clear()
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
            verdict = self._commit_hook(context, self.journal)
            if verdict is Commit.DONE:
                self.journal.clear()
                self._speak()
                self._release()
            else:
                self._undo(context, verdict)

    def _next_turn(self) -> tuple[ActorContext, Any, Callable[[], Any]] | None:
        """Return whose turn is next, its input and the call that takes it; None for no turn."""
        if self._fifo:
            return self._next_message(self._fifo.pop(0))
        if not self.heap:
            self._sleep_forever()
        due = heappop(self.heap)
        due_us, _, owner, what, cause, again = due
        if owner is not None:
            self.now_us = due_us
            if again is not None:
                due[:2] = due_us + again[0], next(self.serials)
                heappush(self.heap, due)
            else:
                del owner.timers[what]
            if self.recorder is not None:
                owner.record = self.recorder.timer(due_us, owner.name, cause, what)
            if again is not None:
                _, _, target, body, timeout_us = again
                return owner, what, lambda: owner.request(target, body, timeout_us)
            return owner, what, lambda: owner.on_timer(owner, what)
        if type(what) is not int:
            self._arrive(due_us, what)
        elif what in self.waiting:
            self.now_us = due_us
            asker = self.contexts[self.waiting[what].source]
            return asker, what, lambda: self._time_out(asker, what, cause)
        return None

    def _next_message(
        self, envelope: Envelope[Any]
    ) -> tuple[ActorContext, Any, Callable[[], None]] | None:
        context = self.contexts[envelope.target]
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

    def _answered(self, number: int) -> bool:
        """Whether a question was open; it no longer is."""
        return self.waiting.pop(number, None) is not None

    def _undo(self, context: ActorContext, verdict: Commit) -> None:
        roll_back(self.journal)
        self._outbox.clear()
        self.said.clear()
        name = context.name
        self.questions.clear()  # those of this turn: what was sent is waited for
        for number in [key for key, asked in self.waiting.items() if asked.source == name]:
            del self.waiting[number]
        if self.recorder is not None:
            self.recorder.undone(self.now_us, name, context.record, verdict.value)
        if verdict is Commit.CRASHED:
            context.reboot()
        else:
            context.boot -= 1  # the same boot goes on
        context.begin_boot()
        self._start(context)


def simulator(seed: int, cell: str, commit_hook: CommitHook | None = None) -> Simulator:
    """Return a simulator; one whose turns may fail if there is a hook."""
    if commit_hook is None:
        return Simulator(seed, cell)
    return GuardedSimulator(seed, cell, commit_hook)
