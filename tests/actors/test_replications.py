"""Replications: each the same alone as after others, and what a scenario hangs on them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Handler, Step
from actors.agent import Agent
from actors.chance import Durations
from actors.errors import ActorFailedError, SimulationError
from actors.guarded import CommitHook
from actors.polls import parse_polls
from actors.relay import Relay
from actors.server import Server
from actors.simulator import Simulator
from tests.actors.harness import SESSION, S, Trace, make_cell
from tests.actors.puppets import (
    BOTH_LOOPS,
    NOTES,
    CrashHook,
    Note,
    Puppet,
    Say,
    World,
    asks,
    done,
    say,
)
from transports.envelope import Envelope
from transports.memory import Link
from transports.verdict import LOST, Verdict

# From replication to replication


def busy_cell(hook: CommitHook | None = None) -> Simulator:
    """Everything at once: three runs, cancels, an owner, jitter, latency, and losses."""
    steps = (
        Step(at_us=30 * S, act="unshare", session=SESSION.id),
        Step(at_us=50 * S, act="share", session=SESSION.id),
    )
    cells: list[Simulator] = []

    def latency_us() -> int:
        return int(cells[0].now_us * 7919 % 90_001)

    class Loses:
        name = "every third id"

        def judge(self, envelope: Envelope[Any]) -> Verdict | None:
            return LOST if envelope.id % 3 == 0 else None

    def link(sim: Simulator, source: str, target: str) -> Link | None:
        cells[:] = [sim]
        if {source, target} != {"relay", "server"}:
            return None
        return sim.new_link(latency_us=latency_us, judges=[Loses()] if source == "relay" else ())

    return make_cell(
        server=Server.Config(reconcile=True, hints=True),
        relay=Relay.Config(presence=True, strict_consent=True, jitter="window"),
        agent=Agent.Config(
            runs=3,
            every_us=Durations.parse("20s"),
            cancel_us=Durations.parse("uniform(0s, 200s)"),
            poll=parse_polls("hinted"),
        ),
        steps=steps,
        commit_hook=hook,
        link=link,
    )


def trace_of(cell: Simulator, *replications: int) -> list[tuple[Any, ...]]:
    """The trace of the last of these replications, run one after another for ten minutes each."""
    cell.on_begin.append(lambda: cell.at(600 * S, cell.finish))
    trace = Trace()
    for replication in replications:
        trace = Trace()
        cell.run(replication, trace)
    return trace.records


@BOTH_LOOPS
def test_a_replication_is_the_same_alone_as_after_others(hook: CommitHook | None) -> None:
    alone = trace_of(busy_cell(hook), 5)
    assert len(alone) > 100
    assert {record[1] for record in alone} >= {"drop", "unanswered", "event", "timer", "message"}
    assert trace_of(busy_cell(hook), 0, 1, 2, 3, 4, 5) == alone
    assert trace_of(busy_cell(hook), 4) != alone


def crashing_cell() -> Simulator:
    hook = CrashHook(31)
    cell = busy_cell(hook)
    cell.on_begin.append(lambda: setattr(hook, "turns", 0))
    return cell


def test_a_replication_with_crashes_leaves_nothing_behind() -> None:
    alone = trace_of(crashing_cell(), 3)
    assert {"start", "undone"} <= {record[1] for record in alone}
    assert trace_of(crashing_cell(), 0, 1, 2, 3) == alone


def test_a_replication_that_raised_leaves_nothing_behind() -> None:
    cell = busy_cell()

    def fail() -> None:
        raise SimulationError("enough")

    cell.on_begin.append(lambda: cell.at(77 * S, fail))
    with pytest.raises(SimulationError, match="enough"):
        trace_of(cell, 0)
    cell.on_begin.clear()
    assert trace_of(cell, 1) == trace_of(busy_cell(), 1)


@BOTH_LOOPS
def test_a_turn_that_raised_leaves_nothing_to_the_next_replication(
    hook: CommitHook | None,
) -> None:
    fails = [True]

    def timer(context: Any, _name: str) -> None:
        context.store.table(NOTES).put("n", Note("half done"))
        context.log("turn.began")
        context.send("b", Say("half done"))
        context.request("b", Say("question"), 5)
        context.set_timer("later", 7)
        if fails.pop():
            for number in range(3):
                context.request("b", Say(f"question {number}"), 4)
                context.send("a", Say(f"to itself {number}"))
            raise LookupError("enough")
        fails.append(False)

    def world() -> World:
        return World(
            hook,
            {("a", "b"): lambda: 3},
            a={"start": lambda c: c.set_timer("t", 5), "timer": timer},
            b={},
            until_us=20,
        )

    heard: list[int] = []
    failing, fresh = world(), world()
    failing.sim.watch("turn.began", lambda now_us, _fields: heard.append(now_us))
    with pytest.raises(ActorFailedError):
        failing.run(0)
    fails.append(False)
    heard.clear()
    traces = Trace(), Trace()
    assert failing.run(1, traces[0]) == fresh.run(1, traces[1])
    assert traces[0].records == traces[1].records
    assert heard == [5, 12, 19]


def test_a_commit_hook_that_changes_nothing_changes_nothing() -> None:
    for replication in range(5):
        assert trace_of(busy_cell(done), replication) == trace_of(busy_cell(), replication)


def test_a_link_s_stream_goes_on_within_a_replication_and_is_new_in_the_next() -> None:
    world = World(a={})
    drawn: list[list[float]] = []
    for replication in (0, 0, 1):
        world.run(replication)
        numbers = [world.sim.link_stream("a to b").random() for _ in range(3)]
        assert len(set(numbers)) == 3
        drawn.append(numbers)
    assert drawn[0] == drawn[1] != drawn[2]
    assert world.sim.link_stream("b to a").random() not in drawn[2]


# What scenarios hang on


def test_on_begin_is_called_for_each_replication_with_all_reset() -> None:
    calls: list[int] = []
    world = World(a={"start": lambda c: c.set_timer("t", 5)})
    world.sim.on_begin.append(lambda: calls.append(world.sim.now_us))
    world.run(0)
    world.run(1)
    assert calls == [0, 0]


def test_at_calls_its_actions_in_order() -> None:
    order: list[tuple[int, str]] = []
    world = World(a={})
    sim = world.sim

    def plan() -> None:
        for due_us, text in ((20, "c"), (10, "a"), (10, "b")):
            sim.at(due_us, lambda text=text: order.append((sim.now_us, text)))  # type: ignore[misc]  # it is bound

    sim.on_begin.append(plan)
    world.run()
    assert order == [(10, "a"), (10, "b"), (20, "c")]


def test_watchers_see_each_event_with_its_time() -> None:
    heard: list[Any] = []
    world = World(
        a={
            "start": lambda c: c.set_timer("t", 5),
            "timer": lambda c, _name: c.log("thing.happened", number=7),
        }
    )
    world.sim.watch(
        "thing.happened", lambda now_us, fields: heard.append(("first", now_us, fields))
    )
    world.sim.watch(
        "thing.happened", lambda now_us, fields: heard.append(("second", now_us, fields))
    )
    world.sim.watch("other", lambda _now_us, _fields: heard.append("never"))
    world.run()
    assert heard == [("first", 5, {"number": 7}), ("second", 5, {"number": 7})]


@BOTH_LOOPS
def test_a_wrapper_sees_each_delivery_at_its_targets_alone(hook: CommitHook | None) -> None:
    world = World(
        hook,
        a={"start": lambda c: [say("a", "to a")(c), say("b", "to b")(c)]},
        b={"start": asks(10, "a")},
    )
    seen: list[str] = []

    def wrapper(handler: Handler) -> Handler:
        def wrapped(context: Any, envelope: Envelope[Any]) -> Any:
            seen.append(envelope.body.text)
            return handler(context, envelope)

        return wrapped

    world.sim.wrap(Say, wrapper, ["b"])
    world.sim.wrap(Note, wrapper)
    world.run()
    assert seen == ["to b"]
    world.sim.wrap(Say, wrapper)
    seen.clear()
    world.run()
    assert sorted(seen) == ["question", "to a", "to b", "to b"]


def test_a_loss_is_told_to_who_observes_that_type() -> None:
    class Loses:
        name = "all"

        def judge(self, envelope: Envelope[Any]) -> Verdict | None:
            return LOST

    sim = Simulator(1, "")
    seen: list[tuple[Any, ...]] = []
    sim.add("a", Puppet(seen, start=say("b", "hello")))
    sim.add("b", Puppet(seen))
    sim.connect(lambda _source, target: sim.new_link(judges=[Loses()]) if target == "b" else None)
    lost: list[Any] = []
    sim.observe_drops(Say, lambda now_us, envelope: lost.append((now_us, envelope.body)))
    sim.observe_drops(Note, lambda _now_us, _envelope: lost.append("never"))
    sim.on_begin.append(lambda: sim.at(1, sim.finish))
    sim.run(0)
    assert (lost, seen) == ([(0, Say("hello"))], [])


def test_done_is_told_to_the_scenario() -> None:
    finished: list[str] = []
    world = World(a={"start": lambda c: c.done()})
    world.sim.on_done = finished.append
    world.run()
    assert finished == ["a"]


def test_the_recorder_is_given_back_after_a_run() -> None:
    world = World(a={"start": lambda c: c.log("hello")})
    first = Trace()
    world.run(0, first)
    count = len(first.records)
    world.run(1)
    assert len(first.records) == count == 2
    assert world.sim.recorder is None


def test_causes_name_the_turn_that_brought_it_about() -> None:
    trace = Trace()

    def start(context: Any) -> None:
        context.send("b", Say("hello"))
        context.set_timer("t", 5)
        context.request("b", Say("silence"), 9)

    World(
        a={"start": start, "timer": lambda c, _: say("b", "later")(c)},
        b={"say": lambda c, _e: c.log("heard")},
    ).run(recorder=trace)
    start_of_a = trace.kinds("start")[0][0]
    hello, silence, later = trace.kinds("message")
    (timer,) = trace.kinds("timer")
    assert (hello[4].cause, silence[4].cause, timer[4]) == (start_of_a,) * 3
    assert trace.kinds("unanswered")[0][4] == start_of_a
    assert later[4].cause == timer[0]
    assert [event[4] for event in trace.kinds("event")] == [hello[0], silence[0], later[0]]
