"""Checkpoints: wherever one goes, in whatever order, an actor is what it was the first time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors import checkpoints
from actors.actor import Place, TableSpec
from actors.agent import Agent
from actors.checkpoints import Lane, SteppedContext, SteppedReplayer, Write, lanes_of
from actors.engine import Engine
from actors.guarded import GuardedSimulator
from actors.messages import GraphRun
from actors.relay import Relay
from actors.replayer import Script
from actors.server import Server
from actors.world import TrioWorld
from logs.keep import MemoryRecorder
from logs.record import FaultRecord, Record, TimerRecord
from scenarios.step_state import state_of
from tests.actors.harness import SESSION, S
from tests.actors.hosts import MakeHost, whole_cell
from tests.actors.test_replayer import recorded

NAMES = ("server", "relay", "engine", "agent")


@pytest.fixture(autouse=True)
def _close_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many checkpoints in short logs, so few that some are given up."""
    monkeypatch.setattr(checkpoints, "STRIDE", 2)
    monkeypatch.setattr(checkpoints, "CHECKPOINT_LIMIT", 6)


def lanes(records: list[Record], make: Any = None) -> dict[str, Lane]:
    found = lanes_of(
        records, Script(records), make or (lambda: whole_cell(SteppedReplayer, 1)), replication=0
    )
    return dict(found)


def told(lane: Lane) -> Any:
    """All that an actor is, to compare."""
    context = lane.context
    dues = [*context.timers.items(), *context.open_questions.items()]
    return (
        state_of(context.attributes()),
        [(name, due[0], due[3:]) for name, due in dues],
        [due[0] for due in context.frozen],
        context.store.snapshot(),
        list(lane.tables),
        context.store.writable,
        {purpose: stream.drawn for purpose, stream in context.streams.items() if stream.drawn},
        (context.boot, context.ids, context.now_us, context.down, context.suspended_us),
        None if context.clock is None else (context.stamp_us, context.clock.rate_ppm),
    )


def firsts(records: list[Record]) -> dict[str, list[Any]]:
    """What each actor is after each record, going forwards once, without any checkpoint."""
    found = {}
    for name, lane in lanes(records).items():
        found[name] = [told(lane)]
        for _ in lane.records:
            lane.take()
            found[name].append(told(lane))
    return found


def eventful(host: MakeHost) -> list[Record]:
    """Records of a cell whose relay sleeps, whose server dies."""

    def nap(sim: Any, name: str) -> None:
        sim.suspend(name, "lid", True)
        sim.at(sim.now_us + 7 * S, lambda: sim.resume(name, "lid"))

    def die(sim: Any, name: str) -> None:
        sim.kill(name, "axe")
        sim.at(sim.now_us + 3 * S, lambda: sim.revive(name, "axe"))

    def drift(sim: Any, name: str) -> None:
        sim.set_clock_rate(name, "quartz", 1_100_000)
        sim.shift_clock(name, "ntp", -3 * S)
        sim.at(sim.now_us + 9 * S, lambda: sim.set_clock_rate(name, "quartz", 1_000_000))

    records = recorded(host, relay=(2 * S, nap), server=(20 * S, die), agent=(5 * S, drift))
    assert {one.act for one in records if isinstance(one, FaultRecord)} == {
        "kill", "start", "suspend", "resume", "clock -3s", "rate 1.1", "rate 1",
    }  # fmt: skip
    return records


RECORDS = {host: eventful(host) for host in (GuardedSimulator, TrioWorld)}
HOSTS = pytest.mark.parametrize("host", RECORDS)


@HOSTS
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_wherever_one_goes_it_is_as_it_was(host: Any, data: st.DataObject) -> None:
    records = RECORDS[host]
    once, mine = firsts(records), lanes(records)
    ways = data.draw(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, len(records) + 1)), max_size=30)
    )
    for name, number in ways:
        mine[name].go_to(number)
        assert told(mine[name]) == once[name][mine[name].at]
    assert [lane.differences for lane in mine.values()] == [{}] * 4
    for lane in mine.values():  # and it goes on as it did
        lane.go_to(len(records))
        assert told(lane) == once[lane.name][-1]
        assert lane.differences == {}


@HOSTS
@pytest.mark.parametrize("cut", [0, 40])
def test_every_checkpoint_is_whole_and_one_goes_on_from_it(
    host: Any, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "STRIDE", 1)
    monkeypatch.setattr(checkpoints, "CHECKPOINT_LIMIT", 10_000)
    records = RECORDS[host][: len(RECORDS[host]) - cut]
    once = firsts(records)
    for name, lane in lanes(records).items():
        lane.go_to(len(records))
        for at in reversed(range(len(lane.records))):
            lane._restore(at)
            assert told(lane) == once[name][at]
            lane.take()
            assert told(lane) == once[name][at + 1]


def kept_rows(lane: Lane) -> list[bool]:
    """Whether each row that the server remembers is the one that stands in its store."""
    runs: Any = lane.tables.get("runs", {})
    answers = lane.context.attributes().get("answers", {})
    return [row is runs[run] for run, (row, _) in answers.items()]


def test_a_row_that_an_actor_keeps_is_still_the_store_s() -> None:
    lane = lanes(RECORDS[TrioWorld])["server"]
    once = []
    for _ in lane.records:
        lane.take()
        once.append(kept_rows(lane))
    assert [True] in once
    for record in reversed(lane.records):
        lane.go_to(record.n)
        assert kept_rows(lane) == once.pop()


@HOSTS
def test_the_way_back_is_short(host: Any) -> None:
    lane = lanes(RECORDS[host])["server"]
    lane.go_to(len(RECORDS[host]))
    assert 3 <= len(lane._checkpoints) <= 6
    stride = lane._stride
    taken: list[Record] = []
    take = lane._host.take

    def counted(record: Record) -> Any:
        taken.append(record)
        return take(record)

    lane._host.take = counted  # type: ignore[method-assign]  # it is counted
    for record in reversed(lane.records):
        taken.clear()
        lane.go_to(record.n)
        assert len(taken) <= stride
    lane.go_to(lane.records[0].n)
    taken.clear()
    lane.go_to(len(RECORDS[host]))  # forwards too, where it was once
    assert len(taken) <= stride


def test_nothing_of_a_context_is_forgotten() -> None:
    """A new slot must be kept in a checkpoint, or be known to stay what it is between turns."""
    kept = {"timers", "open_questions", "frozen", "clock", "store", "streams", "_boot_us"}
    never = {"_world", "_id_mark", "name", "actor", "handlers", "on_timer", "links"}
    never |= {"watchers", "_heap", "_questions", "blocking", "hurry"}
    tasks = {"mailbox", "lock", "scope", "threaded", "put_off"}  # of hosts that wait
    in_turns = {"effects", "journal", "numbers", "expected", "made", "said", "writes"}
    in_turns |= {"traceparent"}  # set as a turn begins
    known = {*kept, *never, *tasks, *in_turns, *SteppedContext._PLAIN}
    slots = {name for base in SteppedContext.__mro__ for name in vars(base).get("__slots__", ())}
    assert slots - known == set()


def test_it_knows_how_far_it_was() -> None:
    lane = lanes(RECORDS[TrioWorld])["relay"]
    assert lane.missing(0) == 0
    assert not lane.started
    lane.go_to(30)
    lane.go_to(2)
    assert lane.missing(30) == 0
    rest = [one for one in lane.records if one.n > 30]
    assert lane.missing(len(RECORDS[TrioWorld])) == len(rest) > 0
    assert lane.started


def test_what_a_turn_wrote_is_told_once_and_only_what_differs() -> None:
    records = RECORDS[TrioWorld]
    lane = lanes(records)["server"]
    found: dict[tuple[str, Any], Any] = {}
    for _ in lane.records:
        lane.take()
        for write in lane.context.writes:
            assert write.old == found.get((write.table, write.key))
            assert write.old != write.new
            found[write.table, write.key] = write.new
    store = lane.context.store.snapshot()
    assert {(t, k): row for t, rows in store.items() for k, row in rows.items()} == {
        key: row for key, row in found.items() if row is not None
    }


def test_a_turn_that_differs_is_known_however_one_comes_there() -> None:
    records = list(RECORDS[TrioWorld])
    at, timer = next(
        (at, one) for at, one in enumerate(records) if isinstance(one, TimerRecord) and at > 20
    )
    records[at] = TimerRecord(timer.n, timer.t, timer.actor, timer.cause, "nap")
    lane = lanes(records)[timer.actor]
    lane.go_to(timer.n)
    lane.go_to(1)
    lane.go_to(timer.n)
    assert lane.differences[timer.n].why == "the timer 'nap' was not set"


# What can't be copied


class Counting(Relay):
    """A relay that counts with a generator."""

    def on_start(self, context: Any) -> None:
        self.turns = self.count()
        self.count_so_far = next(self.turns)
        super().on_start(context)

    def on_timer(self, context: Any, timer: str) -> None:
        self.count_so_far = next(self.turns)
        super().on_timer(context, timer)

    def count(self) -> Iterator[int]:
        yield from range(1_000_000)


def counting_cell(host: MakeHost) -> Any:
    here = (SESSION,)
    sim = host(1, "")
    sim.add("server", Server(Server.Config(), Place(name="server", sessions=here)))
    sim.add("relay", Counting(Relay.Config(), Place(name="relay", sessions=here)))
    sim.add("engine", Engine(Engine.Config(), Place(name="engine")))
    sim.add("agent", Agent(Agent.Config(), Place(name="agent", sessions=here)))
    sim.connect(lambda _source, _target: None)
    sim.on_done = lambda _name: sim.finish()
    return sim


def test_an_actor_that_cant_be_copied_is_re_executed_from_its_start() -> None:
    records = recorded(GuardedSimulator)
    mine = lanes(records, lambda: counting_cell(SteppedReplayer))
    relay, server = mine["relay"], mine["server"]
    relay.go_to(len(records))
    last = told(relay)[1:]
    timers = relay.context.attributes()["count_so_far"]
    assert timers > 5
    assert relay.uncopyable == "its attribute turns holds a generator"
    relay.go_to(relay.records[2].n)
    assert relay.context.attributes()["count_so_far"] < timers
    relay.go_to(len(records))
    assert relay.context.attributes()["count_so_far"] == timers
    assert told(relay)[1:] == last
    assert (relay.differences, server.uncopyable) == ({}, "")


def test_one_that_can_never_be_copied_begins_in_a_cell_of_its_own() -> None:
    records = recorded(GuardedSimulator)

    def cell() -> Any:
        sim = counting_cell(SteppedReplayer)
        sim.contexts["relay"].actor.early = iter(x for x in "ab")
        return sim

    relay = lanes(records, cell)["relay"]
    first = relay.context
    relay.go_to(len(records))
    timers = relay.context.attributes()["count_so_far"]
    relay.go_to(relay.records[1].n)
    assert relay.context is not first
    assert relay.context.attributes()["count_so_far"] < timers
    relay.go_to(len(records))
    assert relay.context.attributes()["count_so_far"] == timers


class Mark(msgspec.Struct, frozen=True):
    number: int


class Slotted:
    """An actor whose attributes are slots, private ones too."""

    __slots__ = ("__hidden", "handlers", "seen")

    def __init__(self) -> None:
        self.handlers = {GraphRun: self.on_run}

    def on_run(self, context: Any, envelope: Any) -> None:
        """Never called: a replay wants a message that somebody understands."""

    def on_start(self, context: Any) -> None:
        context.store.table(TableSpec("marks", Mark)).put("start", Mark(1))
        self.seen: list[str] = []
        self.__hidden = context.random("chance")
        context.set_timer("tick", S)

    def on_timer(self, context: Any, timer: str) -> None:
        self.seen.append(f"{timer} {self.__hidden.random()}")
        marks = context.store.table(TableSpec("marks", Mark))
        marks.put("start", Mark(1))  # as it was
        marks.put("last", Mark(2))
        marks.put("last", Mark(len(self.seen)))
        marks.put("brief", Mark(3))
        marks.delete("brief")
        context.log("seen", many=len(self.seen), last=self.seen[-1])
        context.set_timer("tick", S)


def slotted_cell(host: MakeHost) -> Any:
    sim = host(1, "")
    sim.add("one", Slotted())
    sim.connect(lambda _source, _target: None)
    sim.on_begin.append(lambda: sim.at(10 * S, sim.finish))
    return sim


def test_slots_and_streams_that_an_actor_keeps_go_back_too() -> None:
    recorder = MemoryRecorder()
    slotted_cell(GuardedSimulator).run(0, recorder)
    lane = lanes(recorder.records, lambda: slotted_cell(SteppedReplayer))["one"]
    assert lane.tables == {}
    for number in (len(recorder.records), 5, 14, 1, len(recorder.records)):
        lane.go_to(number)
        assert len(lane.context.actor.seen) == max(lane.at - 1, 0)  # type: ignore[attr-defined]  # its slot
        stream = lane.context.attributes()["_Slotted__hidden"]
        assert stream.drawn == max(lane.at - 1, 0)
        assert list(lane.tables) == ["marks"]
    lane.go_to(lane.records[3].n - 1)
    lane.take()
    assert lane.context.writes == [Write("marks", "last", Mark(2), Mark(3))]
    assert (lane.differences, lane.uncopyable) == ({}, "")
