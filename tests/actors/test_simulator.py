"""The simulation host: turns and their order, timers, questions, chance and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from actors.errors import UnknownActorError
from actors.guarded import CommitHook, simulator
from actors.simulator import JOINED_LIMIT, Simulator
from actors.world import TrioWorld
from tests.actors.harness import Trace
from tests.actors.puppets import (
    BOTH_LOOPS,
    Puppet,
    Say,
    World,
    replies,
    say,
)
from transports.envelope import SERIAL_BITS, Envelope
from transports.memory import Link

# The order of turns


@BOTH_LOOPS
def test_messages_of_one_instant_come_in_the_order_of_sending(hook: CommitHook | None) -> None:
    def fan_out(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "go":
            context.send("b", Say("1"))
            context.send("c", Say("2"))

    def pass_on(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "1":
            context.send("c", Say("3"))
            context.send("b", Say("4"))

    world = World(
        hook,
        a={"start": say("a", "go"), "say": fan_out},
        b={"say": pass_on},
        c={"start": say("b", "0")},
    )
    want = [
        (0, "a", "go"),
        (0, "b", "0"),
        (0, "b", "1"),
        (0, "c", "2"),
        (0, "c", "3"),
        (0, "b", "4"),
    ]
    assert world.run() == want


@BOTH_LOOPS
def test_timers_and_time_outs_of_one_instant_come_in_the_order_of_asking(
    hook: CommitHook | None,
) -> None:
    def ask(context: Any) -> None:
        context.request("b", Say("first"), 10)
        context.send("b", Say("second"))

    def set_timer(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "second":
            context.set_timer("third", 10)

    world = World(hook, a={"start": ask}, b={"say": set_timer})
    assert world.run()[2:] == [(10, "a", "unanswered", "first"), (10, "b", "timer", "third")]


@BOTH_LOOPS
def test_messages_of_the_last_instant_still_arrive_and_nothing_later_does(
    hook: CommitHook | None,
) -> None:
    def start(context: Any) -> None:
        context.set_timer("last", 10)
        context.set_timer("later", 11)

    def timer(context: Any, name: str) -> None:
        world.sim.finish()
        context.send("a", Say(name))

    world = World(hook, a={"start": start, "timer": timer})
    assert world.run() == [(10, "a", "timer", "last"), (10, "a", "last")]


# Timers


@BOTH_LOOPS
def test_a_timer_that_is_set_again_is_replaced(hook: CommitHook | None) -> None:
    def start(context: Any) -> None:
        for delay_us in (5, 50, 20):
            context.set_timer("t", delay_us)
        context.set_timer("other", 20)

    world = World(hook, a={"start": start}, b={"start": lambda c: c.set_timer("t", 7)})
    assert world.run() == [
        (7, "b", "timer", "t"),
        (20, "a", "timer", "t"),
        (20, "a", "timer", "other"),
    ]


@BOTH_LOOPS
def test_a_timer_can_be_taken_back_and_set_once_more(hook: CommitHook | None) -> None:
    def start(context: Any) -> None:
        context.cancel_timer("never set")
        context.set_timer("t", 5)
        context.cancel_timer("t")
        context.set_timer("u", 5)
        context.cancel_timer("u")
        context.set_timer("u", 5)

    world = World(hook, a={"start": start})
    assert world.run() == [(5, "a", "timer", "u")]


@BOTH_LOOPS
def test_a_repeated_question_may_be_replaced_or_taken_back_by_its_answer(
    hook: CommitHook | None,
) -> None:
    def answered(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "yes t" and context.now_us == 20:
            context.set_timer("t", 3)
        if envelope.body.text == "yes u" and context.now_us == 22:
            context.cancel_timer("u")

    def start(context: Any) -> None:
        context.request_every("t", 10, "b", Say("t"), 5)
        context.request_every("u", 11, "b", Say("u"), 5)

    world = World(
        hook,
        a={"start": start, "say": answered},
        b={"say": lambda _, envelope: Say(f"yes {envelope.body.text}")},
    )
    told = [(at, *what) for at, who, *what in world.run() if who == "a"]
    assert told == [
        (10, "yes t"),
        (11, "yes u"),
        (20, "yes t"),
        (22, "yes u"),
        (23, "timer", "t"),
    ]


@BOTH_LOOPS
def test_a_timer_takes_the_place_of_a_repeated_question(hook: CommitHook | None) -> None:
    def start(context: Any) -> None:
        context.request_every("t", 10, "b", Say("t"), 5)
        context.set_timer("t", 15)

    assert World(hook, a={"start": start}, b={}).run() == [(15, "a", "timer", "t")]


# Questions


@BOTH_LOOPS
def test_an_answer_names_its_question(hook: CommitHook | None) -> None:
    asked, answered = [], []

    def start(context: Any) -> None:
        asked.append(context.request("b", Say("question"), 10))

    world = World(
        hook,
        a={"start": start, "say": lambda _, envelope: answered.append(envelope.reply_to)},
        b={"say": replies()},
    )
    world.run()
    assert asked == answered


@BOTH_LOOPS
def test_every_question_has_exactly_one_end(hook: CommitHook | None) -> None:
    ends: dict[int, int] = {}

    def ask(context: Any, _timer: str) -> None:
        number = context.request("b", Say("question"), 300)
        assert number not in ends
        ends[number] = 0
        context.set_timer("t", 100)

    def end(_context: Any, envelope: Envelope[Any]) -> None:
        ends[envelope.reply_to] += 1

    def maybe(context: Any, envelope: Envelope[Say]) -> None:
        if context.random("answers").random() < 0.8:
            context.reply(envelope, Say("answer"))

    draws: list[Any] = []
    world = World(
        hook,
        {pair: lambda: int(draws[-1].random() * 300) for pair in (("a", "b"), ("b", "a"))},
        a={"start": lambda c: c.set_timer("t", 0), "timer": ask, "say": end, "unanswered": end},
        b={"say": maybe},
        until_us=100_000,
    )
    world.sim.on_begin.append(lambda: draws.append(world.sim.stream("links")))
    seen = world.run()
    assert {"answer", "unanswered"} <= {entry[2] for entry in seen}
    open_at_the_end = [number for number, count in ends.items() if count == 0]
    assert set(ends.values()) == {0, 1}
    assert len(open_at_the_end) <= 4, "only the last ones are still under way"
    assert sorted(ends)[-len(open_at_the_end) :] == open_at_the_end


# Ids, chance, time


def test_ids_are_boot_and_serial() -> None:
    trace = Trace()
    World(a={"start": lambda c: [say("b", str(n))(c) for n in range(3)]}, b={}).run(recorder=trace)
    ids = [record[4].id for record in trace.kinds("message")]
    assert [number >> SERIAL_BITS for number in ids] == [0, 0, 0]
    assert ids == sorted(set(ids))


def test_new_ids_are_uuids_and_no_two_are_alike() -> None:
    made: list[str] = []

    def start(context: Any) -> None:
        made.extend(context.new_id() for _ in range(3))

    for seed in (1, 2):
        world = World(seed=seed, a={"start": start}, b={"start": start})
        for replication in range(3):
            world.run(replication)
    assert len(set(made)) == len(made) == 2 * 3 * 2 * 3
    form = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(form.fullmatch(each) for each in made)


def test_new_ids_with_a_prefix_have_32_hex_digits() -> None:
    made: list[str] = []
    world = World(a={"start": lambda c: made.extend(c.new_id("gs") for _ in range(2))})
    world.run()
    assert all(re.fullmatch(r"gs_[0-9a-f]{32}", each) for each in made)
    assert len(set(made)) == 2


def draws_of(
    seed: int, replication: int, order: Sequence[tuple[str, str]]
) -> dict[Any, list[float]]:
    """What actors draw when they draw in this order, as (actor, purpose)."""
    found: dict[Any, list[float]] = {}

    def start(context: Any) -> None:
        for actor, purpose in order:
            if actor == context.name:
                number = context.random(purpose).random()
                found.setdefault((actor, purpose), []).append(number)

    World(seed=seed, a={"start": start}, b={"start": start}).run(replication)
    return found


def test_a_draw_for_one_purpose_never_shifts_another() -> None:
    alone = draws_of(1, 0, [("a", "x")] * 20)
    mixed = draws_of(1, 0, [("a", "y"), ("a", "x"), ("b", "x"), ("a", "z")] * 20)
    assert mixed["a", "x"] == alone["a", "x"]


def test_streams_differ_by_actor_purpose_seed_and_replication() -> None:
    both = [("a", "x"), ("a", "y"), ("b", "x")]
    numbers = [
        tuple(found)
        for seed in (1, 2)
        for replication in (0, 1)
        for found in draws_of(seed, replication, both).values()
    ]
    assert len(set(numbers)) == len(numbers) == 12


def test_a_stream_goes_on_from_turn_to_turn() -> None:
    numbers: list[float] = []

    def timer(context: Any, _name: str) -> None:
        numbers.append(context.random("x").random())
        if len(numbers) < 3:
            context.set_timer("t", 1)

    World(a={"start": lambda c: c.set_timer("t", 1), "timer": timer}).run()
    assert numbers == draws_of(1, 0, [("a", "x")] * 3)["a", "x"]


# Many actors

HOSTS = pytest.mark.parametrize(
    "host",
    [simulator, partial(simulator, guarded=True), TrioWorld],
    ids=["fast", "guarded", "trio"],
)


@HOSTS
def test_among_many_actors_only_the_ways_that_are_taken_are_made(
    host: Callable[[int, str], Simulator],
) -> None:
    made: list[tuple[str, str]] = []
    seen: list[tuple[Any, ...]] = []
    sim = host(1, "cell")
    sim.add("a", Puppet(seen, start=say("b-0", "hello")))
    for number in range(JOINED_LIMIT):
        sim.add(f"b-{number}", Puppet(seen))

    def link(source: str, target: str) -> Link:
        made.append((source, target))
        return sim.new_link(latency_us=lambda: 5)

    sim.connect(link)
    sim.on_begin.append(lambda: sim.at(10, sim.finish))
    for replication in (0, 1):
        seen.clear()
        sim.run(replication)
        assert seen == [(5, "b-0", "hello")]
    assert made == [("a", "b-0")]


@HOSTS
def test_among_many_actors_too_nobody_writes_to_a_stranger(
    host: Callable[[int, str], Simulator],
) -> None:
    sim = host(1, "cell")
    sim.add("a", Puppet([], start=say("nobody", "hello")))
    for number in range(JOINED_LIMIT):
        sim.add(f"b-{number}", Puppet([]))
    sim.connect(lambda _source, _target: None)
    with pytest.raises(UnknownActorError, match="a sent to 'nobody' on its start"):
        sim.run(0)
