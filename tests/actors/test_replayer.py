"""The replay host: recorded inputs give recorded outputs, and what differs is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit
from actors.guarded import GuardedSimulator
from actors.messages import GraphRun, RunGraphSession
from actors.replayer import Difference, Output, Replayer, Script
from actors.world import TrioWorld
from logs.keep import MemoryRecorder
from logs.record import (
    EventRecord,
    MessageRecord,
    Record,
    SendRecord,
    StartRecord,
    TimerRecord,
    UnansweredRecord,
)
from tests.actors.harness import S
from tests.actors.hosts import EVERY_HOST, MakeHost, whole_cell

NAMES = ("server", "relay", "engine")


def recorded(host: MakeHost, seed: int = 1, replication: int = 0, **faults: Any) -> list[Record]:
    """The records of a whole cell, one in which something happens to its actors."""
    sim = whole_cell(host, seed)
    for name, (at_us, do) in faults.items():
        sim.on_begin.append(
            lambda at_us=at_us, do=do, name=name: sim.at(at_us, lambda: do(sim, name))
        )
    recorder = MemoryRecorder()
    sim.run(replication, recorder)
    return recorder.records


def differences(
    records: list[Record], seed: int = 1, replication: int = 0, truncated: bool = False
) -> list[Difference]:
    """All that differs when they are replayed."""
    return told(whole_cell(Replayer, seed), records, replication, truncated)


def told(
    replayer: Replayer, records: list[Record], replication: int = 0, truncated: bool = False
) -> list[Difference]:
    replayer.begin(replication, Script(records, truncated=truncated))
    return [found for record in records if (found := replayer.take(record)) is not None]


@EVERY_HOST
@given(seed=st.integers(0, 1000), replication=st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_what_a_host_recorded_is_done_again(host: MakeHost, seed: int, replication: int) -> None:
    records = recorded(host, seed, replication)
    assert len(records) > 20
    assert differences(records, seed, replication) == []


@pytest.mark.parametrize("host", [GuardedSimulator, TrioWorld])
@pytest.mark.parametrize("clock_stops", [True, False])
def test_death_and_sleep_are_done_again(host: MakeHost, clock_stops: bool) -> None:
    def nap(sim: Any, name: str) -> None:
        assert sim.suspend(name, "lid", clock_stops)
        sim.at(sim.now_us + 7 * S, lambda: sim.resume(name, "lid"))

    def die(sim: Any, name: str) -> None:
        sim.kill(name, "axe")
        sim.at(sim.now_us + 3 * S, lambda: sim.revive(name, "axe"))

    records = recorded(host, relay=(2 * S, nap), server=(20 * S, die))
    assert {type(one).__name__ for one in records} >= {"FaultRecord", "StartRecord"}
    assert sum(isinstance(one, StartRecord) for one in records) == 5
    assert differences(records) == []


def test_what_its_chance_decided_depends_on_the_seed() -> None:
    records = recorded(TrioWorld, seed=1)
    assert differences(records, seed=2) != []
    assert differences(records, replication=1) != []


# What differs


def test_a_message_that_has_another_field_is_shown_in_both_versions() -> None:
    replayer = whole_cell(Replayer, 1)
    context = replayer.contexts["server"]
    handler = context.handlers[RunGraphSession]

    def other(server: Any, envelope: Any) -> Any:
        return msgspec.structs.replace(handler(server, envelope), status="running")

    context.handlers[RunGraphSession] = other
    records = recorded(TrioWorld)
    first = told(replayer, records)[0]
    assert isinstance(first.record, MessageRecord)
    assert isinstance(first.record.envelope.body, RunGraphSession)
    assert first.why == "the turn did something else"
    assert first.index is not None
    logged, made = first.logged[first.index], first.made[first.index]
    assert (logged.name, made.name, made.target) == ("GraphRun", "GraphRun", "agent")
    assert (logged.fields["status"], made.fields["status"]) == ("queued", "running")
    assert str(made) == "sends GraphRun to agent"


@pytest.mark.parametrize("host", [GuardedSimulator, TrioWorld])
def test_what_is_said_besides_or_no_longer_is_found(host: MakeHost) -> None:
    records = recorded(host)
    said = next(one for one in records if isinstance(one, EventRecord))
    [first] = differences([one for one in records if one is not said])
    assert (first.record.n, first.index) == (said.cause, 0)
    assert first.made[0] == Output(said.event, "", said.fields)
    more = [*records, msgspec.structs.replace(said, n=len(records) + 1)]
    [second] = differences(more)
    assert (second.record.n, len(second.logged)) == (said.cause, len(first.made) + 1)


def test_on_trio_a_message_that_nobody_sent_is_found_and_in_the_simulator_it_was_under_way() -> (
    None
):
    records = recorded(TrioWorld)
    sent = next(one for one in records if isinstance(one, SendRecord))
    lacks = [one for one in records if getattr(one, "envelope", None) != sent.envelope]
    first = differences(lacks)[0]
    assert first.record.n == sent.cause
    assert str(first.made[0]).startswith("sends ")
    records = recorded(GuardedSimulator)
    ticket = next(
        one
        for one in records
        if isinstance(one, MessageRecord) and isinstance(one.envelope.body, GraphRun)
    )
    before = records[: records.index(ticket)]
    assert differences(before) == []


def test_a_turn_that_raises_is_told_with_its_error() -> None:
    replayer = whole_cell(Replayer, 1)

    def fail(_context: Any, timer: str) -> None:
        raise ValueError(f"no {timer}")

    replayer.contexts["relay"].actor.on_timer = fail
    found = told(replayer, recorded(TrioWorld))
    assert isinstance(found[0].record, TimerRecord)
    assert found[0].why == f"the turn raised ValueError: no {found[0].record.timer}"


def test_an_input_that_the_actor_could_not_have_had_is_told() -> None:
    records = recorded(TrioWorld)
    timer = next(one for one in records if isinstance(one, TimerRecord))
    [found] = differences([msgspec.structs.replace(timer, timer="nap")])
    assert found.why == "the timer 'nap' was not set"
    [found] = differences([UnansweredRecord(1, 0, "agent", 0, 7)])
    assert found.why == "no question of this id was open"
    answer = next(
        one for one in records if isinstance(one, MessageRecord) and one.envelope.reply_to
    )
    [found] = differences([answer])
    assert found.why == "it answers a question that was not open"
    foreign = msgspec.structs.replace(answer.envelope, body={"type": "Nonsense"})
    [found] = differences([msgspec.structs.replace(answer, envelope=foreign)])
    assert found.why == "its Nonsense is no message of this version"
    lost = msgspec.structs.replace(answer.envelope, target="engine", reply_to=0)
    [found] = differences([MessageRecord(1, 0, "engine", 0, lost)])
    assert found.why == f"it has no handler for {type(lost.body).__name__}"


def test_bodies_may_be_as_json_has_them() -> None:
    records = recorded(TrioWorld)
    read = [
        msgspec.structs.replace(
            one,
            envelope=msgspec.structs.replace(
                one.envelope, body=msgspec.json.decode(msgspec.json.encode(one.envelope.body))
            ),
        )
        if isinstance(one, MessageRecord | SendRecord)
        else one
        for one in records
    ]
    assert differences(read) == []


def test_what_an_edge_does_is_an_input_of_others_and_no_turn() -> None:
    records = recorded(TrioWorld)
    replayer = whole_cell(Replayer, 1)
    lame = [one for one in records if not (isinstance(one, TimerRecord) and one.actor == "relay")]
    assert told(replayer, lame)[0].record.actor == "relay"
    replayer.edges = frozenset({"relay"})
    assert told(replayer, lame) == []


def test_records_of_strangers_count_as_nothing() -> None:
    assert differences([TimerRecord(1, 0, "nobody", 0, "t")]) == []


# What is not known


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_of_a_log_that_was_cut_the_last_turns_may_lack_something(cut: int) -> None:
    records = recorded(TrioWorld)[:-cut]
    assert differences(records, truncated=True) == []


@pytest.mark.parametrize("verdict", [Commit.FAILED, Commit.CRASHED, Commit.SILENCED])
@pytest.mark.parametrize("which", range(3, 40, 4))
def test_a_turn_that_did_not_commit_is_done_again_too(verdict: Commit, which: int) -> None:
    turns = iter(range(1, 10_000))

    def hook(context: Any, _writes: Any) -> Commit:
        hit = context.name != "agent" and next(turns) == which
        return verdict if hit else Commit.DONE

    sim = whole_cell(lambda seed, cell: GuardedSimulator(seed, cell, hook), 1)
    sim.on_begin.append(lambda: sim.at(200 * S, lambda: [sim.revive(n, "up") for n in NAMES]))
    sim.on_begin.append(lambda: sim.at(2000 * S, sim.finish))
    recorder = MemoryRecorder()
    sim.run(0, recorder)
    happened = {getattr(one, "why", getattr(one, "fault", "")) for one in recorder.records}
    assert verdict.value in happened
    assert differences(recorder.records) == []
