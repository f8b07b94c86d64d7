"""Actors whose turns are functions of a test, and a world of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest

from actors.actor import Commit, Context, Handler, TableSpec, Unanswered
from actors.guarded import CommitHook, simulator
from actors.host import HostedWorld
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from tests.actors.harness import S, Trace, put_to_work
from transports.envelope import Envelope
from transports.faults.byte_fault import ByteWorking
from transports.faults.fault import Fault, LinkWorking, Working
from transports.lines import Host, Lines
from transports.memory import Link
from transports.wire import WireCodec
from transports.wiring import Wiring


class Say(msgspec.Struct, frozen=True):
    """Anything that one puppet says to another."""

    text: str


class Note(msgspec.Struct, frozen=True):
    """A row of a puppet's store."""

    text: str


NOTES = TableSpec("notes", Note, text=("text",))


class Puppet:
    """An actor whose turns are functions of a test. It writes down what it saw, and when."""

    caches = frozenset({"acts", "seen"})  # the test's own: no turn that is undone changes them back

    def __init__(
        self,
        seen: list[tuple[Any, ...]],
        *,
        start: Callable[[Any], None] = lambda _: None,
        say: Callable[[Any, Envelope[Say]], Any] = lambda *_: None,
        timer: Callable[[Any, str], None] = lambda *_: None,
        unanswered: Callable[[Any, Envelope[Unanswered]], None] = lambda *_: None,
    ) -> None:
        self.seen = seen
        self.acts = (start, say, timer, unanswered)
        self.handlers: Mapping[type[Any], Handler] = {
            Say: self.on_say,
            Unanswered: self.on_unanswered,
        }

    def see(self, context: Context, *what: Any) -> None:
        self.seen.append((context.now_us, context.name, *what))

    def on_start(self, context: Context) -> None:
        self.acts[0](context)

    def on_say(self, context: Context, envelope: Envelope[Say]) -> Say | None:
        self.see(context, envelope.body.text)
        answer = self.acts[1](context, envelope)
        return answer if isinstance(answer, Say) else None  # not the id that a lambda asked under

    def on_timer(self, context: Context, timer: str) -> None:
        self.see(context, "timer", timer)
        self.acts[2](context, timer)

    def on_unanswered(self, context: Context, envelope: Envelope[Unanswered]) -> None:
        self.see(context, "unanswered", envelope.body.question.text)
        self.acts[3](context, envelope)


class World:
    """A simulator of puppets that ends at a set time."""

    def __init__(
        self,
        hook: CommitHook | None = None,
        links: Mapping[tuple[str, str], Callable[[], int]] | None = None,
        until_us: int = 100 * S,
        seed: int = 1,
        faults: Sequence[Fault] = (),
        host: Callable[[int, str], Any] | None = None,
        **puppets: Any,
    ) -> None:
        self.seen: list[tuple[Any, ...]] = []
        guarded = any(one.needs_world for one in faults)
        self.sim: Simulator = (
            simulator(seed, "cell", hook, guarded=guarded) if host is None else host(seed, "cell")
        )
        self.faults = [fault.at_work() for fault in faults]
        for name, acts in puppets.items():
            self.sim.add(name, Puppet(self.seen, **acts))
        latencies = links or {}
        self.wiring, self.lines = wired(self.sim, self.faults)

        def link(source: str, target: str) -> Link | None:
            latency_us = latencies.get((source, target))
            judges = [
                working
                for fault, working in zip(faults, self.faults, strict=True)
                if isinstance(working, LinkWorking) and fault.acts_on(source, target)
            ]
            carrier = None if self.lines is None else self.lines.carrier(source, target)
            if latency_us is None and not judges and carrier is None:
                return None
            way = self.sim.new_link(latency_us=latency_us, judges=judges)
            return way if carrier is None else way.over(carrier)

        self.sim.connect(link)
        self.sim.on_begin.append(self._unwire)
        for working in self.faults:
            put_to_work(working, self.sim)
        self.sim.on_begin.append(lambda: self.sim.at(until_us, self.sim.finish))

    def _unwire(self) -> None:
        """Begin without connections, before the faults do."""
        for one in (self.wiring, self.lines):
            if one is not None:
                one.reset()

    def run(self, replication: int = 0, recorder: Trace | None = None) -> list[tuple[Any, ...]]:
        self.seen.clear()
        self.sim.run(replication, recorder)
        return list(self.seen)


def wired(sim: Simulator, faults: Sequence[Working]) -> tuple[Wiring | None, Lines | None]:
    """Return what byte faults act on, as a scenario has it."""
    working = [fault for fault in faults if isinstance(fault, ByteWorking)]
    if not working:
        return None, None
    host = cast(Host, sim)
    wiring = Wiring(host, working)
    if isinstance(sim, HostedWorld) and sim.interpose(wiring):
        return wiring, None
    return wiring, Lines(host, wiring, WireCodec([Say]), {})


def done(_context: ActorContext, _writes: Sequence[Undo]) -> Commit:
    """A commit hook that lets every turn be."""
    return Commit.DONE


BOTH_LOOPS = pytest.mark.parametrize("hook", [None, done], ids=["fast", "guarded"])


def say(target: str, text: str) -> Callable[[Any], None]:
    return lambda context: context.send(target, Say(text))


def asks(timeout_us: int, target: str = "b") -> Callable[[Any], None]:
    return lambda context: context.request(target, Say("question"), timeout_us)


def replies(times: int = 1) -> Callable[[Any, Envelope[Say]], None]:
    def reply(context: Any, envelope: Envelope[Say]) -> None:
        for number in range(times):
            context.reply(envelope, Say(f"answer {number}"))

    return reply


class CrashHook:
    """Lets every so-manieth turn of a replication fail, by turns in both ways."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.turns = 0

    def __call__(self, context: ActorContext, writes: Sequence[Undo]) -> Commit:
        self.turns += 1
        kinds = {0: Commit.CRASHED, self.every // 2: Commit.FAILED}
        return kinds.get(self.turns % self.every, Commit.DONE)
