"""The trio host of a deployed process: its edges, its clock, its stores, and how it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import ActorFailedError
from actors.network import DISCONNECTED
from actors.stores.failures import DamagedStoreError, StoreError, StoreFailedError
from actors.stores.sqlite import SqliteStore
from scenarios.service import world as service_world
from scenarios.service.clock import WallClock
from scenarios.service.world import CLOCK_STEP_US, ServiceWorld
from tests.actors.harness import S, Trace
from tests.actors.puppet_store import HERE, PuppetStore, failed
from tests.actors.puppets import NOTES, Note, Puppet, Say
from transports.envelope import Envelope

HOUR = 3_600 * S
SLACK_US = CLOCK_STEP_US + 2 * S  # a busy machine waits long within a test

Act = Callable[[Any, Envelope[Say]], Any]


class FakeEdge:
    """Brings in what a test gives, and ends the process once it has heard as many answers."""

    def __init__(self, texts: list[str], until: int) -> None:
        self.texts, self.until = texts, until
        self.heard: list[str] = []
        self.idle = True
        self.stopped = False
        self.world: ServiceWorld | None = None

    async def open(self) -> None:
        """Nothing is needed."""

    async def live(self) -> None:
        assert self.world is not None
        for text in self.texts:
            number = self.world.number()
            await self.world.enter(Envelope(number, "far", "here", 0, 0, Say(text)))
        if not self.until:
            stop()

    def take(self, envelope: Envelope[Any]) -> bool:
        if envelope.target != "far":
            return False
        self.heard.append(envelope.body.text)
        if len(self.heard) == self.until:
            stop()
        return True

    def stop_reading(self) -> None:
        self.stopped = True


def stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def answer(_context: Any, envelope: Envelope[Say]) -> Say:
    return Say(f"answer to {envelope.body.text}")


class Process:
    """A process with one puppet and one edge; `said` is what it told whoever runs it."""

    def __init__(
        self, *texts: str, until: int = 1, store: Any = None, say: Act = answer, **turns: Any
    ) -> None:
        self.said: list[str] = []
        self.seen: list[tuple[Any, ...]] = []
        self.edge = FakeEdge(list(texts), until)
        self.world = ServiceWorld("test", self.said.append)
        self.edge.world = self.world
        self.world.house("here", Puppet(self.seen, say=say, **turns), store)
        self.world.edges.append(self.edge)
        self.trace = Trace()

    def keep_time_by(self, wall: WallClock) -> None:
        """Have another wall clock from before the process began."""
        self.world.wall = wall
        self.world.epoch_us, _ = wall.tell()

    def serve(self) -> Process:
        self.world.serve(self.trace)
        return self

    @property
    def texts(self) -> list[Any]:
        return [one[2] for one in self.seen]


def keep(context: Any, envelope: Envelope[Say]) -> Say:
    """Keep what is said, and answer with all that is kept."""
    notes = context.store.table(NOTES)
    notes.put(envelope.body.text, Note(envelope.body.text))
    return Say(" ".join(note.text for note in notes.scan("text", limit=99)))


# Edges


def test_what_an_edge_brings_in_is_answered_over_it() -> None:
    it = Process("one", "two", until=2).serve()
    assert it.edge.heard == ["answer to one", "answer to two"]
    assert it.edge.stopped, "it was told to hear nobody any more"


def test_who_is_nowhere_gets_nothing_and_that_is_recorded() -> None:
    def say(context: Any, _envelope: Envelope[Say]) -> Say:
        context.send("nobody", Say("hello"))
        return Say("sent")

    it = Process("one", say=say).serve()
    [drop] = it.trace.kinds("drop")
    assert DISCONNECTED in drop
    assert it.edge.heard == ["sent"]


def test_what_waits_in_a_mailbox_is_finished_before_the_end() -> None:
    it = Process(*(str(number) for number in range(50)), until=0).serve()
    assert it.edge.heard == [f"answer to {number}" for number in range(50)]


def test_an_edge_that_can_not_begin_ends_the_process_before_any_turn() -> None:
    it = Process("one")

    async def fail() -> None:
        raise StoreFailedError(HERE, "no port")

    it.edge.open = fail  # type: ignore[method-assign]  # as a port that is in use
    with pytest.raises(StoreFailedError, match="no port"):
        it.serve()
    assert it.seen == []


def test_its_records_are_written_before_anything_leaves() -> None:
    order: list[str] = []
    it = Process("one")
    take = it.edge.take

    def taken(envelope: Envelope[Any]) -> bool:
        order.append("queued")
        return take(envelope)

    it.edge.take = taken  # type: ignore[method-assign]  # to see when
    it.world.serve(it.trace, flush=lambda: order.append("written"))
    assert order[-2:] == ["queued", "written"], "a connection's own task writes later"


# Time


def test_the_wall_clock_never_goes_back() -> None:
    now = [1_000 * S]
    stamps: list[int] = []

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        stamps.append(context.stamp_us)
        now[0] += int(envelope.body.text) * S
        stamps.append(context.stamp_us)
        return Say("x")

    it = Process("5", "-60", "0", until=3, say=say)
    it.keep_time_by(WallClock(lambda: now[0] * 1000, lambda: 0))
    it.serve()
    assert stamps[::2] == stamps[1::2], "it stands still within a turn"
    assert stamps == sorted(stamps)
    for stamp_us, second in zip(stamps[::2], (1_000, 1_005, 1_005), strict=True):
        assert abs(stamp_us - second * S) < SLACK_US


def test_nor_does_it_in_the_next_process(tmp_path: Path) -> None:
    """The clock is set back by an hour while the process is down."""
    stamps: list[int] = []

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        stamps.append(context.stamp_us)
        return keep(context, envelope)

    for hour in (10, 9, 12):
        store = SqliteStore(tmp_path / "here.db")
        it = Process("one", store=store, say=say)
        it.keep_time_by(WallClock(partial(int, hour * HOUR * 1000)))
        it.serve()
        store.close()
        behind = [line for line in it.said if "clock is 1h behind" in line]
        assert len(behind) == (hour == 9)
    assert abs(stamps[0] - 10 * HOUR) < SLACK_US
    assert stamps[0] <= stamps[1] < 11 * HOUR
    assert abs(stamps[2] - 12 * HOUR) < SLACK_US


def test_a_jump_ahead_is_in_the_log() -> None:
    now = [HOUR]

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        now[0] += int(envelope.body.text)
        return Say(str(context.stamp_us))

    it = Process(str(2 * HOUR), "5", until=2, say=say)
    it.keep_time_by(WallClock(lambda: now[0] * 1000, lambda: 0))
    it.serve()
    [jump] = it.trace.events("clock.jumped")
    assert abs(jump["by_us"] - 2 * HOUR) < SLACK_US


def test_every_start_makes_other_ids() -> None:
    made: list[str] = []

    def say(context: Any, _envelope: Envelope[Say]) -> Say:
        made.append(context.new_id("x"))
        return Say("x")

    for _ in range(2):
        Process("one", say=say).serve()
    assert len(set(made)) == 2


# Stores


def test_what_is_kept_is_there_in_the_next_process(tmp_path: Path) -> None:
    for text, told in (("one", "one"), ("two", "one two")):
        store = SqliteStore(tmp_path / "here.db")
        it = Process(text, store=store, say=keep).serve()
        store.close()
        assert it.edge.heard == [told]


def test_a_turn_that_is_not_committed_never_was_and_the_process_goes_on() -> None:
    store = PuppetStore(at_commit={2: failed()})  # the first is the start's
    it = Process("lost", "kept", store=store, say=keep)
    it.world.enter = one_by_one(it.world, it.world.enter)  # type: ignore[method-assign]  # no group
    it.serve()
    assert it.edge.heard == ["kept"]
    assert len(it.trace.kinds("undone")) == 1
    assert it.said == [
        "here's store: the disk is full; nothing is lost, and new work is refused",
        "here's store can be written again",
    ]


def one_by_one(world: ServiceWorld, enter: Any) -> Any:
    """Bring each message in once the one before has had its turn."""

    async def entering(envelope: Envelope[Any]) -> None:
        await enter(envelope)
        while not world.contexts["here"].mailbox.idle:  # noqa: ASYNC110  its rest is no event
            await trio.sleep(0.001)

    return entering


def test_a_first_start_that_can_not_be_kept_is_told_at_once() -> None:
    with pytest.raises(StoreError, match="the disk is full"):
        Process("one", store=PuppetStore(at_commit={1: failed()})).serve()


def test_later_starts_are_tried_until_the_disk_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_world, "AGAIN_S", 0.0)
    tries = 2_000  # more than a stack has frames
    store = PuppetStore(at_commit={number: failed() for number in range(2, tries)})
    it = Process("lost", "kept", store=store, say=keep, until=1)
    it.world.enter = one_by_one(it.world, it.world.enter)  # type: ignore[method-assign]  # no group
    it.serve()
    assert it.edge.heard == ["kept"]
    assert store.tried >= tries


def test_a_damaged_store_ends_the_process() -> None:
    store = PuppetStore(at_commit={2: DamagedStoreError(HERE, "the file is damaged")})
    with pytest.raises(DamagedStoreError):
        Process("one", store=store, say=keep).serve()


# Turns that raise


def test_a_message_that_an_actor_fails_at_is_dropped_however_often_it_comes() -> None:
    def say(_context: Any, envelope: Envelope[Say]) -> Say:
        if envelope.body.text == "poison":
            raise KeyError("poison")
        return Say("well")

    it = Process(*["poison"] * 30, "one", say=say).serve()
    assert it.edge.heard == ["well"]
    assert len(it.trace.kinds("undone")) == 30
    short = [line for line in it.said if "is undone" in line]
    assert short == ["here failed on Say from far, which is undone: KeyError('poison')"] * 30
    assert sum(line.startswith("Traceback") for line in it.said) == 1, "in full now and then"


def test_a_timer_that_always_fails_ends_the_process() -> None:
    def timer(_context: Any, _timer: str) -> None:
        raise KeyError("always")

    it = Process(until=1, start=lambda context: context.set_timer("t", 0), timer=timer)
    with pytest.raises(ActorFailedError, match="not started again"):
        it.serve()
