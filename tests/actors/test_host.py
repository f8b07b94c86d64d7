"""One actor on the trio host: killed and revived, suspended and resumed, and turns that block."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio

from actors.errors import WouldSleepForeverError
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, Hosted, MakeHost, by_actor
from tests.actors.puppets import NOTES, Note, Puppet, Say, asks, say
from transports.clock import EPOCH_US
from transports.envelope import Envelope


def real(speed: float = 1000) -> MakeHost:
    """Worlds on the machine's own clock."""
    return lambda seed, cell: TrioWorld(seed, cell, clock=None, speed=speed)


def every_10(context: Any, timer: str = "t") -> None:
    context.set_timer(timer, 10)


# Killed and revived


def test_nothing_but_the_store_outlives_a_kill() -> None:
    trace = Trace()
    found = []

    def start(context: Any) -> None:
        notes = context.store.table(NOTES)
        found.append((context.now_us, context.stamp_us - EPOCH_US, notes.get("k")))
        notes.put("k", Note("kept"))
        context.set_timer("t", 10)
        context.request_every("again", 7, "b", Say("again"), 100)

    world = Hosted(TrioWorld, {("b", "a"): lambda: 9}, a={"start": start}, b={}, until_us=50)
    world.at(8, world.sim.kill, "a", "it")
    world.at(9, world.sim.kill, "a", "it")  # it is dead already
    world.at(30, world.sim.revive, "a", "it")
    world.at(31, world.sim.revive, "a", "it")  # it lives already
    seen = world.run(recorder=trace)
    assert by_actor(seen, "a") == [(10, "timer", "t")], "at 40 us, in its second boot"
    assert by_actor(seen, "b") == [(7, "again"), (37, "again"), (44, "again")]
    assert found == [(0, 0, None), (0, 30, Note("kept"))]
    assert [record[2:] for record in trace.kinds("start")] == [
        (0, "a", 0),
        (0, "b", 0),
        (30, "a", 1),
    ]
    assert trace.kinds("unanswered") == []


def test_messages_to_a_dead_actor_are_lost_and_what_it_sent_arrives() -> None:
    trace, seen_lost = Trace(), []

    def start(context: Any) -> None:
        every_10(context)
        context.send("a", Say("late"))

    def ticks(context: Any, timer: str) -> None:
        context.send("a", Say("tick"))
        context.set_timer(timer, 10)

    world = Hosted(
        TrioWorld,
        {("a", "b"): lambda: 12, ("b", "a"): lambda: 12},
        a={"start": say("b", "last words"), "say": lambda c, e: c.reply(e, Say("hm"))},
        b={"start": start, "timer": ticks},
        until_us=45,
    )
    world.sim.observe_drops(Say, lambda now, envelope: seen_lost.append((now, envelope.body.text)))
    world.at(5, world.sim.kill, "a", "it")
    world.at(30, world.sim.revive, "a", "it")
    seen = world.run(recorder=trace)
    assert (12, "b", "last words") in seen
    assert by_actor(seen, "a") == [(2, "tick"), (12, "tick")], "of 20 and 30 us, sent before"
    assert seen_lost == [(12, "late"), (22, "tick")]
    assert {(record[3], record[4]) for record in trace.kinds("drop")} == {("a", "down")}


def test_a_kill_loses_the_mailbox() -> None:
    trace = Trace()
    world = Hosted(TrioWorld, a={}, b={"start": every_10, "timer": lambda c, _: say("a", "x")(c)})
    world.at(5, world.sim.suspend, "a", "it", True)
    world.at(20, world.sim.kill, "a", "it")
    world.at(25, world.sim.resume, "a", "it")  # a dead one does not go on
    world.at(30, world.sim.revive, "a", "it")
    assert by_actor(world.run(recorder=trace), "a") == []
    assert [record[2:5] for record in trace.kinds("drop")] == [(20, "a", "down")]


def test_an_answer_to_a_question_of_an_earlier_boot_is_late() -> None:
    trace = Trace()
    world = Hosted(
        TrioWorld,
        {("b", "a"): lambda: 20},
        a={"start": asks(50)},
        b={"say": lambda *_: Say("answer")},
    )
    world.at(5, world.sim.kill, "a", "it")
    world.at(6, world.sim.revive, "a", "it")
    assert by_actor(world.run(recorder=trace), "a") == [(20, "answer")]
    assert [record[2] for record in trace.kinds("late")] == [20]


# Suspended


def test_a_suspended_actor_takes_no_turns_and_its_time_stands_still() -> None:
    stamps = []

    def timer(context: Any, name: str) -> None:
        stamps.append((name, world.sim.now_us, context.stamp_us - EPOCH_US))

    def start(context: Any) -> None:
        context.set_timer("t", 10)
        context.set_timer("u", 40)
        context.set_timer("gone", 12)

    world = Hosted(
        TrioWorld,
        a={"start": start, "timer": timer, "say": lambda c, _: c.cancel_timer("gone")},
        b={"start": every_10, "timer": lambda c, _: say("a", "mail")(c)},
    )
    world.at(4, world.sim.suspend, "a", "it", True)
    world.at(5, world.sim.suspend, "a", "it", True)
    world.at(24, world.sim.resume, "a", "it")
    world.at(25, world.sim.resume, "a", "it")
    assert by_actor(world.run(), "a") == [(4, "mail"), (10, "timer", "t"), (40, "timer", "u")]
    assert stamps == [("t", 30, 30), ("u", 60, 60)]


def test_time_outs_stand_still_too_and_an_answer_that_waits_counts() -> None:
    asked: list[int] = []

    def answer(context: Any, envelope: Envelope[Say]) -> None:
        asked.append(envelope.id)
        if len(asked) == 2:
            context.reply(envelope, Say("answer"))

    world = Hosted(
        TrioWorld,
        {("b", "a"): lambda: 20},
        a={"start": lambda c: [asks(10)(c), asks(30)(c)]},
        b={"say": answer},
    )
    world.at(5, world.sim.suspend, "a", "it", True)
    world.at(100, world.sim.resume, "a", "it")
    assert by_actor(world.run(), "a") == [(5, "answer"), (10, "unanswered", "question")]


def test_a_repeated_question_goes_on_where_it_stood() -> None:
    trace = Trace()
    world = Hosted(
        TrioWorld,
        a={"start": lambda c: c.request_every("t", 10, "b", Say("again"), 5)},
        b={"say": lambda *_: Say("yes")},
        until_us=125,
    )
    world.at(15, world.sim.suspend, "a", "it", True)
    world.at(101, world.sim.resume, "a", "it")
    asked = by_actor(world.run(recorder=trace), "b")
    assert asked == [(10, "again"), (106, "again"), (116, "again")]


@COMMITTING_HOST
@pytest.mark.parametrize(("clock_stops", "beats"), [(True, [10, 60, 70]), (False, [10, 55, 65])])
def test_beats_in_a_sleep_are_not_made_up_for(
    host: MakeHost, clock_stops: bool, beats: list[int]
) -> None:
    def start(context: Any) -> None:
        context.request_every("t", 10, "b", Say("beat"), 100)

    world = Hosted(host, a={"start": start}, b={}, until_us=72)
    world.at(15, world.sim.suspend, "a", "it", clock_stops)
    world.at(55, world.sim.resume, "a", "it")
    assert [at for at, *_ in by_actor(world.run(), "b")] == beats


@COMMITTING_HOST
@pytest.mark.parametrize("clock_stops", [True, False])
def test_after_a_sleep_timers_come_in_the_order_in_which_they_were_due(
    host: MakeHost, clock_stops: bool
) -> None:
    def start(context: Any) -> None:
        context.set_timer("now", 55)
        context.request("b", Say("x"), 35)
        for timer, delay_us in (("late", 30), ("later", 40), ("early", 20)):
            context.set_timer(timer, delay_us)

    world = Hosted(
        host, a={"start": start}, b={"say": lambda _context, _envelope: None}, until_us=110
    )
    world.at(15, world.sim.suspend, "a", "it", clock_stops)
    world.at(55, world.sim.resume, "a", "it")
    came = [what[-1] for what in by_actor(world.run(), "a")]
    assert came == ["early", "late", "x", "later", "now"]


def test_a_full_mailbox_of_a_suspended_actor_stops_reading_and_loses_nothing_at_first() -> None:
    trace = Trace()

    def many(context: Any) -> None:
        for number in range(20):
            context.send("a", Say(str(number)))

    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, mailbox_limit=3),
        a={},
        b={"start": lambda c: c.set_timer("t", 5), "timer": lambda c, _: many(c)},
    )
    world.at(1, world.sim.suspend, "a", "it", True)
    world.at(10, world.sim.resume, "a", "it")
    told = []
    world.at(9, lambda: told.append(len(world.sim.contexts["a"].mailbox)))
    assert [text for _, text in by_actor(world.run(recorder=trace), "a")] == [
        str(number) for number in range(20)
    ]
    assert told == [3]
    assert trace.kinds("drop") == []


# Turns


def test_a_turn_lets_out_what_it_asked_for_in_the_order_of_asking() -> None:
    order: list[str] = []

    def start(context: Any) -> None:
        context.log("said.first", n=1)
        context.send("a", Say("x"))
        context.log("said.second", n=2)
        context.done()
        assert order == [], "nothing is let out before the turn has ended"

    world = Hosted(TrioWorld, a={"start": start})
    for event in ("said.first", "said.second"):
        world.sim.watch(event, lambda _now, fields: order.append(str(fields["n"])))
    world.sim.on_done = order.append
    trace = Trace()
    world.run(recorder=trace)
    assert order == ["1", "2", "a"]
    assert [record[1] for record in trace.records] == [
        "start",
        "event",
        "send",
        "event",
        "message",
    ]
    assert {record[4] for record in trace.kinds("event")} == {1}, "the record of its turn"


def test_a_timer_is_counted_from_the_beginning_of_its_turn() -> None:
    def timer(context: Any, name: str) -> None:
        before = context.now_us
        while world.sim.now_us < before + 3:
            pass
        assert context.now_us == before
        if name == "1":
            context.set_timer("2", 10)

    world = Hosted(
        real(0.01),
        a={"start": lambda c: c.set_timer("1", 0), "timer": timer},
        until_us=100,
    )
    [first, second] = by_actor(world.run(), "a")
    assert first[1:] == ("timer", "1")
    assert second[0] >= first[0] + 10


# Turns that block


class Blocking(Puppet):
    """A puppet whose turns may block."""

    blocking = True


def blocked_world(host: MakeHost, **puppets: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    seen: list[tuple[Any, ...]] = []
    sim = host(1, "cell")
    for name, acts in puppets.items():
        sim.add(name, Blocking(seen, **acts))
    sim.connect(lambda _source, _target: None)
    sim.on_begin.append(lambda: sim.at(100 * S, sim.finish))
    return sim, seen


def test_turns_that_block_run_in_threads_beside_those_of_others() -> None:
    both = threading.Barrier(2, timeout=5)
    threads: list[int] = []

    def timer(_context: Any, _name: str) -> None:
        both.wait()  # broken if these turns come one after the other
        threads.append(threading.get_ident())

    def start(context: Any) -> None:
        threads.append(threading.get_ident())
        context.set_timer("t", S)

    acts = {"start": start, "timer": timer}
    sim, seen = blocked_world(real(), a=acts, b=acts)
    sim.run(0)
    assert sorted(one[1:] for one in seen) == [("a", "timer", "t"), ("b", "timer", "t")]
    assert threading.get_ident() not in threads


def test_turns_of_one_actor_never_overlap() -> None:
    inside: list[str] = []

    def heard(context: Any, _envelope: Envelope[Say]) -> None:
        assert inside == []
        inside.append(context.name)
        context.random("x").random()
        inside.pop()

    sim, seen = blocked_world(
        real(), a={"say": heard}, b={"start": lambda c: [say("a", str(n))(c) for n in range(30)]}
    )
    sim.run(0)
    assert [one[2] for one in seen] == [str(number) for number in range(30)]


def test_under_a_virtual_clock_they_run_inline() -> None:
    threads: list[int] = []
    sim, _ = blocked_world(TrioWorld, a={"start": lambda _: threads.append(threading.get_ident())})
    sim.run(0)
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("revived", [False, True])
def test_a_turn_in_a_thread_whose_actor_is_killed_never_was(revived: bool, raises: bool) -> None:
    found = []

    def start(context: Any) -> None:
        found.append(context.store.table(NOTES).get("k"))
        if not context.boot:
            context.set_timer("t", S)

    def kill() -> None:
        sim.kill("a", "it")
        if revived:
            sim.revive("a", "it")

    def timer(context: Any, _name: str) -> None:
        context.store.table(NOTES).put("k", Note("half done"))
        trio.from_thread.run_sync(kill)
        context.send("b", Say("from beyond"))
        if raises:
            raise ValueError("nobody hears it")

    sim, seen = blocked_world(real(), a={"start": start, "timer": timer}, b={})
    sim.run(0)
    assert seen == [(seen[0][0], "a", "timer", "t")]
    assert found == [None] * (1 + revived)
    assert sim.contexts["a"].store.table(NOTES).get("k") is None


def test_a_timer_is_taken_back_by_a_turn_that_lasts_until_it_is_due() -> None:
    def start(context: Any) -> None:
        context.set_timer("first", S)
        context.set_timer("second", 2 * S)

    def timer(context: Any, _name: str) -> None:
        trio.from_thread.run(trio.sleep, 0.01)
        context.cancel_timer("second")

    sim, seen = blocked_world(real(), a={"start": start, "timer": timer}, b={})
    sim.run(0)
    assert [one[1:] for one in seen] == [("a", "timer", "first")]


def test_a_timer_that_is_set_in_a_turn_of_an_actor_suspended_meanwhile_stands_still() -> None:
    def timer(context: Any, name: str) -> None:
        if name == "1":
            trio.from_thread.run_sync(sim.suspend, "a", "it", True)
            context.set_timer("2", 5 * S)

    sim, seen = blocked_world(
        real(), a={"start": lambda c: c.set_timer("1", S), "timer": timer}, b={}
    )
    sim.on_begin.append(lambda: sim.at(50 * S, lambda: sim.resume("a", "it")))
    sim.run(0)
    [first, second] = seen
    assert second[2:] == ("timer", "2")
    assert second[0] >= first[0] + 5 * S, "by its own clock, which stood still too"


def test_a_dead_actor_keeps_no_world_going() -> None:
    sim = TrioWorld(1, "")
    sim.add("a", Puppet([], start=lambda c: c.request_every("t", 10, "a", Say("again"), 5)))
    sim.connect(lambda _source, _target: None)
    sim.on_begin.append(lambda: sim.at(35, lambda: sim.kill("a", "it")))
    with pytest.raises(WouldSleepForeverError):
        sim.run(0)
    assert sim.now_us == 40, "what was set before is looked at once more"
