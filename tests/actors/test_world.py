"""The trio host keeps the simulator's contract: turns, timers, questions, chance and ids."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.errors import (
    ActorFailedError,
    LimitReachedError,
    SimulationError,
    UnhandledMessageError,
    UnknownActorError,
    WouldSleepForeverError,
)
from actors.guarded import simulator
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import EVERY_HOST, Hosted, MakeHost, by_actor, whole_cell
from tests.actors.puppets import Note, Puppet, Say, asks, replies, say
from transports.envelope import SERIAL_BITS, Envelope

# Timers


@EVERY_HOST
def test_a_timer_that_is_set_again_is_replaced_and_one_taken_back_never_fires(
    host: MakeHost,
) -> None:
    def start(context: Any) -> None:
        for delay_us in (5, 50, 20):
            context.set_timer("t", delay_us)
        context.set_timer("other", 20)
        context.set_timer("gone", 30)
        context.cancel_timer("gone")
        context.cancel_timer("never set")

    assert Hosted(host, a={"start": start}, b={"start": lambda c: c.set_timer("t", 7)}).run() == [
        (7, "b", "timer", "t"),
        (20, "a", "timer", "t"),
        (20, "a", "timer", "other"),
    ]


@EVERY_HOST
def test_a_timer_of_no_delay_wakes_at_the_same_instant(host: MakeHost) -> None:
    def again(context: Any, timer: str) -> None:
        if timer == "1":
            context.set_timer("2", 0)

    world = Hosted(host, a={"start": lambda c: c.set_timer("1", 0), "timer": again})
    assert world.run() == [(0, "a", "timer", "1"), (0, "a", "timer", "2")]


@EVERY_HOST
def test_a_timer_that_another_turn_of_its_instant_takes_back_does_not_fire(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.set_timer("first", 10)
        context.set_timer("second", 10)

    world = Hosted(host, a={"start": start, "timer": lambda c, _: c.cancel_timer("second")})
    assert world.run() == [(10, "a", "timer", "first")]


@EVERY_HOST
def test_a_question_is_asked_every_so_often_until_its_timer_is_cancelled(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.request_every("t", 10, "b", Say("again"), 5)
        context.set_timer("stop", 35)

    world = Hosted(
        host,
        a={"start": start, "timer": lambda context, _: context.cancel_timer("t")},
        b={"say": lambda context, _: Say("yes") if context.now_us < 30 else None},
    )
    assert world.run() == [
        (10, "b", "again"),
        (10, "a", "yes"),
        (20, "b", "again"),
        (20, "a", "yes"),
        (30, "b", "again"),
        (35, "a", "timer", "stop"),
        (35, "a", "unanswered", "again"),
    ]


@EVERY_HOST
def test_at_one_instant_actions_come_first_then_messages_then_arrivals_then_timers(
    host: MakeHost,
) -> None:
    def start(context: Any) -> None:
        context.set_timer("t", 10)
        context.request("far", Say("question"), 10)
        context.set_timer("u", 10)
        context.send("far", Say("delayed 1"))
        context.send("far", Say("delayed 2"))

    def answer(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "delayed 1":
            context.send("near", Say("at once"))

    links = {("near", "far"): lambda: 10}
    world = Hosted(host, links, near={"start": start}, far={"say": answer})
    world.at(10, lambda: world.seen.append(("action",)))
    assert world.run() == [
        ("action",),
        (10, "far", "question"),
        (10, "far", "delayed 1"),
        (10, "near", "at once"),
        (10, "far", "delayed 2"),
        (10, "near", "timer", "t"),
        (10, "near", "unanswered", "question"),
        (10, "near", "timer", "u"),
    ]


@EVERY_HOST
def test_messages_of_the_last_instant_still_arrive_and_nothing_later_does(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.set_timer("last", 10)
        context.set_timer("later", 11)

    def timer(context: Any, name: str) -> None:
        world.sim.finish()
        context.send("b", Say(name))

    heard = say("a", "heard")
    world = Hosted(host, a={"start": start, "timer": timer}, b={"say": lambda c, _: heard(c)})
    assert world.run() == [(10, "a", "timer", "last"), (10, "b", "last"), (10, "a", "heard")]
    assert world.sim.now_us == 10


# Questions


@EVERY_HOST
def test_an_answered_question_is_never_unanswered(host: MakeHost) -> None:
    world = Hosted(host, a={"start": asks(10)}, b={"say": replies()})
    assert world.run() == [(0, "b", "question"), (0, "a", "answer 0")]


@EVERY_HOST
@pytest.mark.parametrize("timeout_us", [0, 10])
def test_a_question_without_an_answer_is_told_at_its_time(host: MakeHost, timeout_us: int) -> None:
    numbers = []

    def start(context: Any) -> None:
        numbers.append(context.request("b", Say("question"), timeout_us))

    world = Hosted(
        host,
        a={"start": start, "unanswered": lambda _, envelope: numbers.append(envelope.reply_to)},
        b={},
    )
    assert world.run() == [(0, "b", "question"), (timeout_us, "a", "unanswered", "question")]
    assert numbers[0] == numbers[1]


@EVERY_HOST
def test_an_answer_counts_at_the_very_end_of_its_time_and_is_late_after_it(host: MakeHost) -> None:
    trace = Trace()
    world = Hosted(host, {("b", "a"): lambda: 10}, a={"start": asks(10)}, b={"say": replies()})
    assert world.run(recorder=trace) == [(0, "b", "question"), (10, "a", "answer 0")]
    assert not trace.kinds("late")
    world = Hosted(host, {("b", "a"): lambda: 11}, a={"start": asks(10)}, b={"say": replies()})
    assert world.run(recorder=trace) == [(0, "b", "question"), (10, "a", "unanswered", "question")]
    [late] = trace.kinds("late")
    assert (late[2:4], late[4].body) == ((11, "a"), Say("answer 0"))


@EVERY_HOST
def test_a_second_answer_is_late(host: MakeHost) -> None:
    trace = Trace()
    world = Hosted(host, a={"start": asks(10)}, b={"say": replies(2)})
    assert world.run(recorder=trace) == [(0, "b", "question"), (0, "a", "answer 0")]
    assert [record[4].body for record in trace.kinds("late")] == [Say("answer 1")]


@EVERY_HOST
def test_what_a_handler_returns_answers_after_all_that_it_sent(host: MakeHost) -> None:
    def heard(context: Any, _envelope: Envelope[Say]) -> Say:
        context.send("a", Say("by the way"))
        return Say("answer")

    world = Hosted(host, a={"start": asks(10)}, b={"say": heard})
    assert world.run() == [(0, "b", "question"), (0, "a", "by the way"), (0, "a", "answer")]


@EVERY_HOST
def test_an_actor_may_ask_itself(host: MakeHost) -> None:
    def heard(_context: Any, envelope: Envelope[Say]) -> Say | None:
        return Say("answer") if envelope.body.text == "question" else None

    world = Hosted(host, a={"start": asks(10, "a"), "say": heard})
    assert world.run() == [(0, "a", "question"), (0, "a", "answer")]


@EVERY_HOST
@given(delays=st.lists(st.integers(0, 40), min_size=1, max_size=6), lost=st.integers(0, 7))
@settings(max_examples=25, deadline=None)
def test_every_question_has_exactly_one_end(host: MakeHost, delays: list[int], lost: int) -> None:
    ends: Counter[int] = Counter()
    asked: list[int] = []

    def ask(context: Any, _timer: str) -> None:
        asked.append(context.request("b", Say("question"), 30))
        context.set_timer("t", 10)

    def end(_context: Any, envelope: Envelope[Any]) -> None:
        ends[envelope.reply_to] += 1

    def answer(context: Any, envelope: Envelope[Say]) -> None:
        for _ in range(len(asked) % 3 if len(asked) % 8 != lost else 0):
            context.reply(envelope, Say("answer"))

    turns = iter(delays * 1000)
    ways = {pair: lambda: next(turns) for pair in (("a", "b"), ("b", "a"))}
    world = Hosted(
        host,
        ways,
        a={"start": lambda c: c.set_timer("t", 0), "timer": ask, "say": end, "unanswered": end},
        b={"say": answer},
        until_us=400,
    )
    world.run()
    assert set(ends.values()) == {1}
    assert len(asked) == 40
    assert len(asked) - len(ends) <= 4, "only the last ones are still under way"
    assert set(asked[:-4]) <= set(ends)


# Chance, ids, time


def test_chance_and_new_ids_are_the_simulators() -> None:
    def told(host: MakeHost) -> list[Any]:
        made: list[Any] = []

        def start(context: Any) -> None:
            made.append((context.name, context.random("x").random(), context.new_id("gs")))
            made.append((context.random("y").random(), context.new_id(), context.stamp_us))

        world = Hosted(host, a={"start": start}, b={"start": start})
        for replication in range(2):
            world.run(replication)
            made.append(world.sim.stream("link/a/b").random())
        return made

    on_trio = told(TrioWorld)
    assert on_trio == told(simulator)
    assert len({str(each) for each in on_trio}) == len(on_trio)
    assert re.fullmatch(r"gs_[0-9a-f]{32}", on_trio[0][2])


def test_ids_are_boot_and_serial_and_never_repeat() -> None:
    trace = Trace()
    world = Hosted(TrioWorld, a={"start": lambda c: [say("b", str(n))(c) for n in range(3)]}, b={})
    world.at(10, world.sim.kill, "a", "it")
    world.at(20, world.sim.revive, "a", "it")
    world.run(recorder=trace)
    ids = [record[4].id for record in trace.kinds("message")]
    assert [number >> SERIAL_BITS for number in ids] == [0, 0, 0, 1, 1, 1]
    assert ids == sorted(set(ids))


def observed(trace: Trace) -> Counter[Any]:
    """What a log says without what ties decide: numbers, and order at one instant."""
    seen: Counter[Any] = Counter()
    for _, kind, at_us, actor, *more in trace.records:
        if kind == "event":
            seen[at_us, actor, repr(more[1:])] += 1
        elif kind in ("message", "late", "drop"):
            envelope = more[-1]
            seen[at_us, actor, kind, envelope.source, repr(envelope.body)] += 1
        elif kind != "send":  # which the simulator leaves out
            seen[at_us, actor, kind, more[-1] if kind == "timer" else ""] += 1
    return seen


@given(seed=st.integers(0, 1000), replication=st.integers(0, 50))
@settings(max_examples=15, deadline=None)
def test_a_cell_of_real_actors_does_what_it_does_in_the_simulator(
    seed: int, replication: int
) -> None:
    def trace_of(host: MakeHost) -> Counter[Any]:
        sim = whole_cell(host, seed)
        trace = Trace()
        sim.run(replication, trace)
        return observed(trace)

    assert trace_of(TrioWorld) == trace_of(simulator)


@EVERY_HOST
def test_a_replication_leaves_nothing_to_the_next(host: MakeHost) -> None:
    def start(context: Any) -> None:
        context.request_every("t", 30, "b", Say("again"), 1000)
        context.random("x").random()

    world = Hosted(host, {("a", "b"): lambda: 7}, a={"start": start}, b={}, until_us=100)
    traces = []
    for replication in (3, 4, 3):
        traces.append(Trace())
        world.run(replication, traces[-1])
    assert observed(traces[0]) == observed(traces[2])
    assert world.sim.serial > 0


# When it can't go on


@EVERY_HOST
def test_a_world_where_nothing_is_due_says_so(host: MakeHost) -> None:
    sim = host(1, "")
    sim.add("a", Puppet([], start=lambda c: c.set_timer("t", 2_500_000)))
    sim.connect(lambda _source, _target: None)
    with pytest.raises(WouldSleepForeverError) as caught:
        sim.run(0)
    assert str(caught.value) == (
        "nothing is due after 2.5 s, and the replication has not ended: "
        "no timer is set, no message is under way"
    )


@EVERY_HOST
def test_a_message_without_a_handler_names_actor_and_type(host: MakeHost) -> None:
    world = Hosted(host, a={"start": lambda c: c.send("b", Note("hello"))}, b={})
    with pytest.raises(UnhandledMessageError) as caught:
        world.run()
    assert str(caught.value) == "b has no handler for Note: name it in `handlers`"


@EVERY_HOST
def test_an_actor_that_asks_must_handle_unanswered(host: MakeHost) -> None:
    class Asks(Puppet):
        def __init__(self) -> None:
            super().__init__([], start=asks(10, "a"))
            self.handlers = {Say: self.on_say}

    sim = host(1, "")
    sim.add("a", Asks())
    sim.connect(lambda _source, _target: None)
    with pytest.raises(UnhandledMessageError, match="a has no handler for Unanswered"):
        sim.run(0)


@EVERY_HOST
def test_a_message_to_nobody_names_who_there_is(host: MakeHost) -> None:
    world = Hosted(host, a={"start": say("b", "go")}, b={"say": lambda c, _e: say("sever", "x")(c)})
    with pytest.raises(UnknownActorError) as caught:
        world.run()
    assert str(caught.value) == "b sent to 'sever' on Say from a, but there are only a, b"


@EVERY_HOST
def test_an_actor_that_raises_ends_the_replication(host: MakeHost) -> None:
    def timer(_context: Any, _name: str) -> None:
        raise ValueError("no such thing")

    world = Hosted(host, a={"start": lambda c: c.set_timer("t", 1 * S), "timer": timer}, b={})
    with pytest.raises(ActorFailedError, match=r"^a failed on timer 't' at 1 s$") as caught:
        world.run()
    assert repr(caught.value.__cause__) == "ValueError('no such thing')"
    assert world.sim.now_us == 1 * S


@EVERY_HOST
def test_an_error_of_an_action_is_raised_as_it_is(host: MakeHost) -> None:
    def too_long() -> None:
        raise LimitReachedError("it took too long")

    world = Hosted(host, a={})
    world.at(5, too_long)
    with pytest.raises(LimitReachedError, match="it took too long"):
        world.run()


def test_a_message_that_has_no_bytes_is_its_senders_mistake() -> None:
    world = Hosted(TrioWorld, a={"start": say("b", "\ud800")}, b={})
    with pytest.raises(ActorFailedError, match="a failed on its Say to b at 0 s") as caught:
        world.run()
    assert "cannot be encoded" in str(caught.value.__cause__)


def test_an_interrupt_wins_over_what_else_went_wrong() -> None:
    def interrupt(_context: Any, _timer: str) -> None:
        raise KeyboardInterrupt

    world = Hosted(TrioWorld, a={"start": lambda c: c.set_timer("t", 1), "timer": interrupt}, b={})
    with pytest.raises(KeyboardInterrupt):
        world.run()
    with pytest.raises(RuntimeError, match="must be called from async context"):
        trio.lowlevel.current_task()


def test_after_an_error_the_world_runs_again() -> None:
    def timer(_context: Any, _name: str) -> None:
        if world.sim.replication == 0:
            raise ValueError

    world = Hosted(TrioWorld, a={"start": lambda c: c.set_timer("t", 1), "timer": timer})
    with pytest.raises(SimulationError):
        world.run(0)
    assert by_actor(world.run(1), "a") == [(1, "timer", "t")]
