"""A deployed process, replayed: its stores at the start, its clock, its disk, its last turns."""

from __future__ import annotations

import os
import signal
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import TableSpec
from actors.checkpoints import lanes_of
from actors.graphs.noted import VM_FAILED
from actors.graphs.seam import VmLimitError, VmLimits
from actors.recorded import (
    STORE_ROWS,
    KeptRow,
    RecordedProcess,
    RecordedStore,
    SteppedProcess,
    unknown_turns,
)
from actors.replayer import Difference, Script
from actors.stores.sqlite import SqliteStore
from logs.keep import MemoryRecorder
from logs.read import record_of
from logs.record import EventRecord, FaultRecord, Record
from logs.write import lines_of
from scenarios.service import world as service_world
from scenarios.service.clock import WallClock
from scenarios.service.world import ServiceWorld
from tests.actors.graphs.fake_vm import FakeVmPort
from tests.actors.harness import S
from tests.actors.puppet_store import PuppetStore, failed
from tests.actors.puppets import NOTES, Note, Puppet, Say
from transports.envelope import Envelope

HOUR = 3_600 * S
Act = Callable[[Any, Envelope[Say]], Any]


def busy(context: Any, envelope: Envelope[Say]) -> Say:
    """Use all that a turn may depend on, and say it."""
    notes = context.store.table(NOTES)
    name = context.new_id("note")
    drawn = context.random("luck").random()
    context.log("drew", drawn=drawn, stamp_us=context.stamp_us, writable=context.store.writable)
    notes.put(name, Note(envelope.body.text))
    context.set_timer(f"later {name}", int(drawn * 2_000))
    if envelope.body.text == "poison":
        raise KeyError("poison")
    told = [note.text for note in notes.scan("text", limit=99)]
    return Say(f"{name} at {context.now_us}: {' '.join(told)}")


def remind(context: Any, timer: str) -> None:
    context.send("far", Say(f"{timer}, {len(context.store.table(NOTES).scan('text', limit=99))}"))


class Outside:
    """Brings in texts, one by one or all at once, and ends the process when all were taken."""

    idle = True

    def __init__(self, world: ServiceWorld, texts: Sequence[str], apart: bool) -> None:
        self.world, self.texts, self.apart = world, texts, apart

    async def open(self) -> None:
        """Nothing is needed."""

    async def live(self) -> None:
        for text in self.texts:
            number = self.world.number()
            await self.world.enter(Envelope(number, "far", "here", 0, 0, Say(text)))
            while self.apart and not self.world.contexts["here"].mailbox.idle:  # noqa: ASYNC110  its rest is no event
                await trio.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)

    def take(self, envelope: Envelope[Any]) -> bool:
        return envelope.target == "far"

    def stop_reading(self) -> None:
        """Everything has been brought in."""


class Recorded:
    """What a process with one puppet wrote, and how it was begun."""

    def __init__(
        self,
        texts: Sequence[str],
        store: Any = None,
        say: Act = busy,
        *,
        apart: bool = False,
        wall: WallClock | None = None,
    ) -> None:
        world = ServiceWorld("test", lambda _: None)
        world.wall = wall or world.wall
        world.house("here", Puppet([], say=say, timer=remind), store)
        world.edges.append(Outside(world, texts, apart))
        world.snapshot_limit_bytes = 1 << 20
        recorder = MemoryRecorder()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service_world, "AGAIN_S", 0.0)
            world.serve(recorder)
        self.seed, self.epoch_us = world.seed, world.epoch_us
        lines = lines_of(recorder.records).splitlines()
        self.records: list[Record] = [record_of(line, "here") for line in lines]

    def host(self, say: Act = busy, kind: type[RecordedProcess] = RecordedProcess) -> Any:
        host = kind(self.seed, "test", self.epoch_us)
        host.house("here", Puppet([], say=say, timer=remind))
        return host

    def differences(self, say: Act = busy) -> list[Difference]:
        host = self.host(say)
        host.begin(7, Script(self.records))
        return [found for one in self.records if (found := host.take(one)) is not None]

    def said(self, event: str) -> list[EventRecord]:
        events = [one for one in self.records if isinstance(one, EventRecord)]
        return [one for one in events if one.event == event]

    def count(self, kind: str) -> int:
        return sum(one.__struct_config__.tag == kind for one in self.records)


def kept_in(folder: Path, *texts: str) -> Recorded:
    """A process whose store is a file that is there again for the next."""
    store = SqliteStore(folder / "here.db")
    try:
        return Recorded(texts, store)
    finally:
        store.close()


@given(
    texts=st.lists(st.sampled_from(["a", "b", "poison"]), min_size=1, max_size=12),
    at_commit=st.sets(st.integers(2, 6)),
    at_turn=st.sets(st.integers(2, 9)),
)
@settings(max_examples=30, deadline=None)
def test_what_a_process_did_is_done_again(
    texts: list[str], at_commit: set[int], at_turn: set[int]
) -> None:
    store = PuppetStore(dict.fromkeys(at_commit, failed()), dict.fromkeys(at_turn, failed()))
    assert Recorded(texts, store).differences() == []


def test_a_turn_that_the_disk_broke_off_draws_nothing() -> None:
    """How far it came is in no log: here before its id, while a replay goes to its end."""
    broken = [False]

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        if envelope.body.text == "full" and not broken[0]:
            broken[0] = True
            raise failed()
        return busy(context, envelope)

    it = Recorded(["a", "full", "b", "c"], PuppetStore(), say)
    assert it.count("undone") >= 1
    assert it.differences(busy) == []


def test_what_another_program_does_is_a_difference() -> None:
    def other(context: Any, envelope: Envelope[Say]) -> Say:
        answer = busy(context, envelope)
        return Say("another") if envelope.body.text == "b" else answer

    [found] = Recorded(["a", "b"]).differences(other)[:1]
    assert found.why == "the turn did something else"
    assert found.made[-1].fields["text"] == "another"


def test_it_begins_with_what_its_store_held(tmp_path: Path) -> None:
    assert kept_in(tmp_path, "a", "b").differences() == []
    it = kept_in(tmp_path, "c", "d")
    assert it.differences() == []
    [rows] = it.said(STORE_ROWS)
    assert [row[1] for row in rows.fields["rows"]] == [{"text": "a"}, {"text": "b"}]
    without = [one for one in it.records if one is not rows]
    it.records = without
    assert it.differences() != []


@pytest.mark.parametrize("by_us", [8 * HOUR, -HOUR])
def test_the_wall_clock_jumps_where_it_did(by_us: int) -> None:
    ahead_us = [0]

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        ahead_us[0] = by_us
        return busy(context, envelope)

    wall = WallClock(lambda: time.time_ns() + ahead_us[0] * 1000)
    it = Recorded(["a", "b", "c"], say=say, apart=True, wall=wall)
    acts = [one.act for one in it.records if isinstance(one, FaultRecord)]
    assert all(act.startswith("clock ") for act in acts)
    stamps = [one.fields["stamp_us"] for one in it.said("drew")]
    assert stamps == sorted(stamps)
    if by_us > 0:
        assert len(acts) == 1
        assert stamps[-1] - stamps[0] >= by_us
    assert it.differences() == []


def test_a_clock_that_is_behind_is_caught_up_with_as_it_was() -> None:
    """Time goes at half its rate meanwhile: the log has each step of it that counts."""
    steady_us = [0]

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        steady_us[0] += HOUR
        return busy(context, envelope)

    wall = WallClock(lambda: HOUR * 1000, lambda: steady_us[0] * 1000)
    wall.go_on_from(10 * HOUR)
    it = Recorded(["a", "b", "c"], say=say, apart=True, wall=wall)
    stamps = [one.fields["stamp_us"] for one in it.said("drew")]
    assert stamps == sorted(stamps)
    assert it.differences() == []


def test_a_disk_that_refuses_is_seen_where_it_was() -> None:
    store = PuppetStore()

    def say(context: Any, envelope: Envelope[Say]) -> Say:
        answer = busy(context, envelope)
        store.writable = envelope.body.text != "full"  # as of the commit
        return answer

    it = Recorded(["full", "a", "b"], store, say, apart=True)
    acts = [one.act for one in it.records if isinstance(one, FaultRecord)]
    assert acts == ["unwritable", "writable"]
    drew = [one.fields["writable"] for one in it.said("drew")]
    assert drew == [True, False, True]
    assert it.differences() == []


def test_of_a_kill_the_last_turns_are_unknown_and_the_rest_is_the_same() -> None:
    whole = Recorded(["a", "b", "c", "d", "e"], PuppetStore())
    records = whole.records
    for length in range(1, len(records)):
        whole.records = records[:length]
        assert whole.differences() == [], length


def test_only_turns_behind_the_last_that_said_something_are_unknown() -> None:
    records = Recorded(["a", "b"]).records
    script = Script(records)
    turns = [one.n for one in records if one.n in script.sent or one.n in script.said]
    assert unknown_turns(script) == {turns[-1]}


# Stores


class Odd(msgspec.Struct, frozen=True):
    """A row that JSON can't hold."""

    number: float


ODD = TableSpec("odd", Odd)


def test_rows_get_their_types_when_their_table_is_opened() -> None:
    store = RecordedStore([])
    data = msgspec.msgpack.encode(Odd(float("inf")))
    store.begin_with("odd", [["a", None, b64encode(data).decode()], [["b", "c"], {"number": 1.5}]])
    before = store.snapshot()
    assert {type(row) for row in before["odd"].values()} == {KeptRow}
    for _ in range(2):
        table = store.table(ODD)
        assert dict(table) == {"a": Odd(float("inf")), ("b", "c"): Odd(1.5)}
        table.delete("a")
        store.restore(before)
    store.reset()
    store.begin_with("odd", [["d", {"number": 2}]])
    assert dict(store.table(ODD)) == {"d": Odd(2.0)}


# Scripts


def test_a_script_fails_where_it_did() -> None:
    host = RecordedProcess(1, "test", 0)
    host.house("here", Puppet([]))
    context = host.contexts["here"]
    fields = {"call": 2, "limit": "wall", "error": "too slow"}
    host.begin(0, Script([EventRecord(3, 0, "here", 2, VM_FAILED, fields)]))
    host.run_scripts("here", FakeVmPort())
    assert host.vm is not None
    context.record = 2
    host.vm.open(VmLimits())
    with pytest.raises(VmLimitError, match="too slow") as raised:
        host.vm.open(VmLimits())
    assert raised.value.kind == "wall"
    host.vm.open(VmLimits())


def test_actors_can_go_back_to_what_their_store_held(tmp_path: Path) -> None:
    kept_in(tmp_path, "a")
    it = kept_in(tmp_path, "b", "c")
    lanes = lanes_of(it.records, Script(it.records), lambda: it.host(kind=SteppedProcess), 0)
    lane = lanes["here"]
    for _ in range(2):
        lane.go_to(it.records[-1].n)
        assert sorted(row.text for row in lane.tables["notes"].values()) == ["a", "b", "c"]
        assert lane.differences == {}
        lane.go_to(0)
