"""The simulation host: pure actors on one heap under a virtual clock.

Events are ordered by (time, priority, serial). At one instant come first the host's own actions,
then messages that are sent without latency, then delayed arrivals, then timers and time-outs,
each in the order in which they were asked for. What a scenario does not configure (latency,
faults, commit hooks, a log, watchers) is not looked at for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import Any, NoReturn

from actors.actor import Actor, Handler, Unanswered
from actors.chance import Stream
from actors.errors import (
    ActorFailedError,
    SimulationError,
    UnhandledMessageError,
    UnknownActorError,
    WouldSleepForeverError,
    describe_turn,
    raised_in,
)
from actors.ports import PortedContext, PortedHost
from actors.stores.memory import MemoryStore, Undo
from actors.streams import HashedStream
from logs.record import Recorder
from transports.clock import VirtualClock
from transports.envelope import BOOT_LIMIT, SERIAL_BITS, Envelope
from transports.memory import Link, Post, Ways

_DIGITS = [f"{number:08x}" for number in range(256)]  # made once: 1 %
_SERIALS = (1 << SERIAL_BITS) - 1
_ACTION = -(1 << 61)  # before all else at its instant
_ARRIVAL = -(1 << 60)  # after what is sent at this instant, before timers

# What is due: time, serial, whose turn it is, timer or question or what arrives, cause, and what is
# asked over and over. It is a list, so that a repeated question goes on without a new one. Without
# an actor it is the host's own business, and nothing at all without a subject either: a timer that
# was taken back.
Due = list[Any]
_WHOSE, _WHAT, _AGAIN = 2, 3, 5

# Actors that are all joined beforehand, in plain dictionaries, which are looked up fastest. Of the
# four million ways between a thousand relays and their engines hardly any is ever taken.
JOINED_LIMIT = 64

Watcher = Callable[[int, dict[str, Any]], None]
Observer = Callable[[int, Envelope[Any]], None]


class ActorContext(PortedContext, VirtualClock):
    """What one actor may do; nothing that it sends is delivered before its turn has committed."""

    __slots__ = (
        "_heap", "_id_mark", "_questions", "actor", "boot", "handlers", "ids", "links", "name",
        "numbers", "on_timer", "record", "store", "streams", "timers", "watchers",
    )  # fmt: skip

    def __init__(self, host: Simulator, name: str, actor: Actor) -> None:
        super().__init__(host)
        self._world: Simulator = host
        self._id_mark = f"{len(host.contexts):04x}"  # no two actors make the same id
        self.name = name
        self.actor = actor
        self.store = MemoryStore(host.journal)
        self.handlers: dict[type[Any], Handler] = dict(actor.handlers)
        self.on_timer = actor.on_timer
        self.links: dict[str, Post] = {}
        self.timers: dict[str, Due] = {}
        self.streams: dict[str, HashedStream] = {}
        self.watchers = host.watchers
        self._heap, self._questions = host.heap, host.questions
        self.reset()

    def reset(self) -> None:
        """Be as new, for the next replication."""
        self.boot = self.ids = self.record = 0
        self.numbers: Iterator[int] = self._world.serials
        self._boot_us = 0
        self.timers.clear()
        self.store.reset()
        for stream in self.streams.values():
            stream.restart(self._world.key)

    def begin_boot(self) -> None:
        """Forget what does not outlive a boot."""
        self.boot += 1
        if self.boot >= BOOT_LIMIT:
            raise SimulationError(f"{self.name} was started {BOOT_LIMIT} times")
        self.numbers = map((self.boot << SERIAL_BITS).__add__, self._world.serials)
        self.cancel_timers()

    def cancel_timers(self) -> None:
        """Take every timer back."""
        for timer in list(self.timers):
            self.cancel_timer(timer)

    def random(self, purpose: str) -> Stream:
        """Return this actor's stream of chance for `purpose`."""
        stream = self.streams.get(purpose)
        if stream is None:
            stream = self.streams[purpose] = self._world.stream(f"{self.name}/{purpose}")
        return stream

    def send(self, target: str, body: Any) -> None:
        """Send a message that expects no answer."""
        self.links[target](Envelope(next(self.numbers), self.name, target, 0, self.record, body))

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        """Ask a question and return its id; one turn with the answer or `Unanswered` follows."""
        number = next(self.numbers)
        self._questions[number] = timeout_us
        self.links[target](Envelope(number, self.name, target, 0, self.record, body))
        return number

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer the question in `envelope`."""
        target = envelope.source
        self.links[target](
            Envelope(next(self.numbers), self.name, target, envelope.id, self.record, body)
        )

    def request_every(
        self, timer: str, period_us: int, target: str, body: Any, timeout_us: int
    ) -> None:
        """Ask a question every `period_us` until the timer is cancelled."""
        self.set_timer(timer, period_us)
        self.timers[timer][_AGAIN] = (period_us, self.links[target], target, body, timeout_us)

    def set_timer(self, timer: str, delay_us: int) -> None:
        """Wake this actor after `delay_us`; set again it is replaced."""
        host, timers = self._world, self.timers
        if timer in timers:
            self.cancel_timer(timer)
        due = [host.now_us + delay_us, next(host.serials), self, timer, self.record, None]
        timers[timer] = due
        heappush(self._heap, due)

    def cancel_timer(self, timer: str) -> None:
        """Take the timer back if it is set."""
        due = self.timers.pop(timer, None)
        if due is not None:
            # So that the loop needn't look whether it still counts.
            due[_WHOSE] = due[_WHAT] = due[_AGAIN] = None

    def new_id(self, prefix: str = "") -> str:
        """Return a new UUID (version 4 in form), or `prefix_` and 32 hex digits."""
        self.ids = number = self.ids + 1
        digits = _DIGITS[number] if number < len(_DIGITS) else f"{number:08x}"
        if prefix:
            return f"{prefix}_{self._world.id_bare}{self._id_mark}{digits}"
        return f"{self._world.id_head}{self._id_mark}{digits}"

    def log(self, event: str, **fields: Any) -> None:
        """Record that something happened."""
        host = self._world
        watcher = self.watchers.get(event)
        if watcher is not None:
            watcher(host.now_us, fields)
        if host.recorder is not None:
            host.recorder.event(host.now_us, self.name, self.record, event, fields)

    def done(self) -> None:
        """Say that this actor's workload is finished."""
        self._world.on_done(self.name)


class Simulator(PortedHost):
    """Built once for a cell. `run` starts every actor from an empty store, once a replication."""

    context_type = ActorContext

    def __init__(self, seed: int, cell: str) -> None:
        self._cell = f"{seed}/{cell}/"
        self.key = b""
        self.id_head = self.id_bare = ""
        self._imperfect: list[Link] = []
        self._link_streams: dict[str, HashedStream] = {}
        self._outbox: list[tuple[Link, Envelope[Any]]] = []
        self._fifo: list[Envelope[Any]] = []  # what is delivered at this instant
        self.contexts: dict[str, ActorContext] = {}
        self.heap: list[Due] = []
        self.serials: Iterator[int] = count(1)
        # The time-outs of this instant's questions. On perfect ways most are answered at once: only
        # the others are moved to `waiting`, and their time-outs to the heap.
        self.questions: dict[int, int] = {}
        self.waiting: dict[int, Envelope[Any]] = {}
        self.journal: list[Undo] | None = None  # no turn fails here, so nothing is undone
        self.watchers: dict[str, Watcher] = {}
        self._drop_observers: dict[type[Any], list[Observer]] = {}
        self.recorder: Recorder | None = None
        self.on_done: Callable[[str], None] = lambda _name: None
        self.on_begin: list[Callable[[], None]] = []
        self.now_us, self.replication, self.finished = 0, -1, False

    # Building a cell

    def add(self, name: str, actor: Actor, heard: bool = True) -> None:
        """Add an actor; call `connect` when all are there. Watchers see its events if `heard`."""
        self.contexts[name] = context = self.context_type(self, name, actor)
        if not heard:
            context.watchers = {}

    def connect(self, link: Callable[[str, str], Link | None]) -> None:
        """Join every two actors: by the link that `link(source, target)` makes, else perfectly.

        With many actors each way is made when it is first taken.
        """

        def make(source: str, target: str) -> Post:
            way = link(source, target)
            if way is None:
                return self._fifo.append
            self._imperfect.append(way)
            return self._post(way)

        for source, context in self.contexts.items():
            if len(self.contexts) > JOINED_LIMIT:
                context.links = Ways(source, self.contexts, make)
            else:
                context.links = {target: make(source, target) for target in self.contexts}

    def _post(self, way: Link) -> Post:
        """Return what sends a message by an imperfect way; at once, since no turn fails here."""

        def post(envelope: Envelope[Any]) -> None:
            if envelope.id in self.questions:
                self._wait_for(envelope)
            way.release(envelope)

        return post

    def new_link(self, **how: Any) -> Link:
        """Make a link that delivers through this host; `how` as for `Link`."""
        return Link(self, self._outbox, **how)

    def watch(self, event: str, watcher: Watcher) -> None:
        """Call `watcher(now_us, fields)` on each such event of any actor."""
        first = self.watchers.get(event)
        self.watchers[event] = watcher if first is None else _both(first, watcher)

    def wrap(
        self, message: type[Any], wrapper: Callable[[Handler], Handler], targets: Sequence[str] = ()
    ) -> None:
        """Put a wrapper around the handlers of a message type, to see each delivery.

        Only at the named targets, at every actor if none is named. A wrapper must call the handler
        and return what that returns.
        """
        for name in targets or self.contexts:
            handlers = self.contexts[name].handlers
            handler = handlers.get(message)
            if handler is not None:
                handlers[message] = wrapper(handler)

    def observe_drops(self, message: type[Any], observer: Observer) -> None:
        """Call `observer(now_us, envelope)` for each such message that is lost on the way."""
        self._drop_observers.setdefault(message, []).append(observer)

    @property
    def serial(self) -> int:
        """How many messages, timers and questions there were in this replication."""
        return int(repr(self.serials)[len("count(") : -1]) - 1  # asked otherwise, it would go on

    # What contexts and links ask of the host

    def stream(self, purpose: str) -> HashedStream:
        """Return the replication's stream of chance for `purpose`."""
        return HashedStream(self.key, purpose)

    def link_stream(self, purpose: str) -> HashedStream:
        """Return the replication's stream for a link; the same object throughout it."""
        stream = self._link_streams.get(purpose)
        if stream is None:
            stream = self._link_streams[purpose] = self.stream(purpose)
        return stream

    def finish(self) -> None:
        """End the replication once every message of this instant is delivered."""
        self.finished = True
        heappush(self.heap, [-1, 0, None, None, 0, None])  # next of all, so that the loop looks

    def deliver_now(self, envelope: Envelope[Any]) -> None:
        """Put the message behind those that are due at this instant."""
        self._fifo.append(envelope)

    def deliver_at(self, envelope: Envelope[Any], due_us: int) -> None:
        """Deliver the message at a time that is not past."""
        heappush(self.heap, [due_us, next(self.serials) + _ARRIVAL, None, envelope, 0, None])

    def lose(self, envelope: Envelope[Any], fault: str) -> None:
        """Record that a message is lost."""
        if self.recorder is not None:
            self.recorder.drop(self.now_us, envelope, fault)
        for observer in self._drop_observers.get(type(envelope.body), ()):
            observer(self.now_us, envelope)

    def tell(self, name: str, fault: str, act: str, now_us: int | None = None) -> None:
        """Record that a fault does something to an actor, by default now."""
        if self.recorder is not None:
            self.recorder.fault(self.now_us if now_us is None else now_us, name, fault, act)

    def at(self, due_us: int, action: Callable[[], Any]) -> None:
        """Call `action` at a time, before all else that is due then."""
        heappush(self.heap, [due_us, next(self.serials) + _ACTION, None, action, 0, None])

    # Running

    def run(self, replication: int, recorder: Recorder | None = None) -> None:
        """Run one replication to its end; raise a SimulationError if it can't get there."""
        self.replication = replication
        self._reset(replication, recorder)
        try:
            for context in self.contexts.values():
                self._start(context)
            self._drive()
        finally:
            self.recorder = None

    def _reset(self, replication: int, recorder: Recorder | None) -> None:
        self.key = blake2b(f"{self._cell}{replication}".encode(), digest_size=32).digest()
        raw = self.key.hex()
        self.id_head = f"{raw[:8]}-{raw[8:12]}-4{raw[12:15]}-8{raw[15:18]}-"
        self.id_bare = raw[:20]
        self.now_us, self.serials = 0, count(1)
        self.finished, self.recorder = False, recorder
        self.heap.clear()
        self._fifo.clear()
        self.questions.clear()
        self.waiting.clear()
        for context in self.contexts.values():
            context.reset()
        self._link_streams.clear()
        for link in self._imperfect:
            link.reset()
        for begin in self.on_begin:
            begin()

    def _start(self, context: ActorContext) -> None:
        if self.recorder is not None:
            context.record = self.recorder.start(self.now_us, context.name, context.boot)
        try:
            context.actor.on_start(context)
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            self._explain(error, context, "its start")

    def _arm(self) -> None:
        """Set the time-outs of this instant's questions that are still open."""
        for envelope in self._fifo:
            if envelope.id in self.questions:
                self._wait_for(envelope)

    def _wait_for(self, question: Envelope[Any]) -> None:
        due_us = self.now_us + self.questions.pop(question.id)
        serial = question.id & _SERIALS  # as old as the question
        self.waiting[question.id] = question
        heappush(self.heap, [due_us, serial, None, question.id, question.cause, None])

    def _drive(self) -> None:  # noqa: C901, PLR0912, PLR0915  a call a turn costs 5 %
        """Take what is due, one turn after another."""
        fifo, heap, contexts = self._fifo, self.heap, self.contexts
        questions, waiting = self.questions, self.waiting
        recorder, serials = self.recorder, self.serials
        context: Any = None
        turn: Any = None
        try:
            while True:
                for turn in fifo:  # turns add to it; no pop and no test of it: 4 %
                    context = contexts[turn.target]
                    reply_to = turn.reply_to
                    if (
                        reply_to
                        and questions.pop(reply_to, None) is None
                        and waiting.pop(reply_to, None) is None
                    ):
                        self._late(turn)
                        continue
                    if recorder is not None:
                        context.record = recorder.message(self.now_us, turn)
                    answer = context.handlers[type(turn.body)](context, turn)
                    if answer is not None:  # as `reply` does: the call would cost 2 %
                        source, number = turn.source, next(context.numbers)
                        context.links[source](
                            Envelope(number, turn.target, source, turn.id, context.record, answer)
                        )
                if questions:
                    self._arm()
                fifo.clear()
                try:
                    due = heap[0]
                except IndexError:
                    self._sleep_forever()
                due_us, _, context, turn, cause, again = due
                if again is not None:
                    self.now_us = due_us
                    period_us, post, target, body, timeout_us = again
                    due[0], due[1] = due_us + period_us, next(serials)
                    heapreplace(heap, due)
                    if recorder is not None:
                        context.record = recorder.timer(due_us, context.name, cause, turn)
                    number = next(context.numbers)
                    questions[number] = timeout_us
                    post(Envelope(number, context.name, target, 0, context.record, body))
                elif context is not None:
                    self.now_us = due_us
                    heappop(heap)
                    del context.timers[turn]
                    if recorder is not None:
                        context.record = recorder.timer(due_us, context.name, cause, turn)
                    on_timer = context.on_timer  # a slot's callable: faster in two steps
                    on_timer(context, turn)
                else:
                    heappop(heap)
                    if self.finished:
                        return
                    if type(turn) is not int:
                        self._arrive(due_us, turn)
                        continue
                    if turn not in waiting:
                        continue  # answered
                    self.now_us = due_us
                    context = contexts[waiting[turn].source]
                    self._time_out(context, turn, cause)
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a turn raises is told in the scenario's terms
            self._explain(error, context, turn)

    def _arrive(self, due_us: int, what: Any) -> None:
        """Deliver a message or call an action; a timer that was taken back is neither."""
        if what is None:
            return
        self.now_us = due_us
        if type(what) is Envelope:
            self._fifo.append(what)
        else:
            what()

    def _time_out(self, context: ActorContext, turn: int, cause: int) -> None:
        question = self.waiting.pop(turn).body
        if self.recorder is not None:
            context.record = self.recorder.unanswered(self.now_us, context.name, cause, turn)
        body = Unanswered(question)
        handler = context.handlers[Unanswered]
        handler(context, Envelope(0, context.name, context.name, turn, context.record, body))

    def _late(self, envelope: Envelope[Any]) -> None:
        if self.recorder is not None:
            self.recorder.late(self.now_us, envelope)

    # When it can't go on

    def _sleep_forever(self) -> NoReturn:
        raise WouldSleepForeverError(
            f"nothing is due after {self.now_us / 1e6:g} s, and the replication has not ended: "
            "no timer is set, no message is under way"
        )

    def _explain(self, error: Exception, context: ActorContext, turn: Any) -> NoReturn:
        """Raise what became of a turn in the terms of its scenario."""
        if isinstance(error, SimulationError):
            raise error
        where = describe_turn(turn)
        if isinstance(error, KeyError) and error.args:
            missing = error.args[0]
            if missing is Unanswered or (isinstance(turn, Envelope) and missing is type(turn.body)):
                raise UnhandledMessageError(
                    f"{context.name} has no handler for {missing.__name__}: name it in `handlers`"
                ) from error
            if (
                isinstance(missing, str)
                and missing not in context.links
                and raised_in(error, _SENDERS)
            ):
                raise UnknownActorError(
                    f"{context.name} sent to {missing!r} on {where}, "
                    f"but there are only {', '.join(self.contexts)}"
                ) from error
        raise ActorFailedError(context.name, where, self.now_us) from error


# A KeyError of theirs is a look-up of a link, and none of the actor's own.
_LOOKS_UP = (ActorContext.send, ActorContext.request, ActorContext.reply, Ways.__missing__)
_SENDERS = {method.__code__ for method in _LOOKS_UP}


def _both(first: Watcher, second: Watcher) -> Watcher:
    def both(now_us: int, fields: dict[str, Any]) -> None:
        first(now_us, fields)
        second(now_us, fields)

    return both
