"""Clocks that go wrong, one actor's at a time: what it sees, when it wakes, what the log says."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.clocks import JUMP_US
from actors.guarded import simulator
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, Hosted, MakeHost, by_actor
from tests.actors.puppets import Puppet, Say, asks, say
from tests.contracts.clock import WrongClockContract
from transports.clock import EPOCH_US

DOUBLE = 2_000_000
HALF = 500_000
RIGHT = 1_000_000


class DrivenContext:
    """An actor's context as a clock, on a host whose time a test moves by hand."""

    def __init__(self, host: MakeHost) -> None:
        self.sim = host(1, "")
        self.sim.add("a", Puppet([]))
        self.clock = self.sim.contexts["a"]
        self.lasts_us = self.clock.lasts_us
        self.sim._changed = trio.Event()

    def pass_time(self, by_us: int) -> None:
        self.sim.now_us += by_us
        if isinstance(self.sim, TrioWorld):
            self.clock.turn_us = self.sim.now_us

    def shift(self, by_us: int) -> None:
        assert self.sim.shift_clock("a", "it", by_us)

    def set_rate(self, rate_ppm: int) -> None:
        assert self.sim.set_clock_rate("a", "it", rate_ppm)

    def reboot(self) -> None:
        self.clock.begin_boot() if isinstance(self.sim, TrioWorld) else self.clock.reboot()


class TestGuardedContext(WrongClockContract):
    """The suite on what an actor sees in the guarded simulator."""

    def drive(self) -> DrivenContext:
        return DrivenContext(lambda seed, cell: simulator(seed, cell, guarded=True))


class TestHostContext(WrongClockContract):
    """The suite on what an actor sees on the trio host."""

    def drive(self) -> DrivenContext:
        return DrivenContext(TrioWorld)


# Waking


def timers(*delays_us: int) -> dict[str, Any]:
    return {"start": lambda c: [c.set_timer(str(delay_us), delay_us) for delay_us in delays_us]}


def told(world: Hosted, actor: str = "a") -> list[tuple[Any, ...]]:
    """What an actor saw: its own time, the world's, and what it was."""
    times: list[int] = []
    puppet = world.sim.contexts[actor].actor
    see = puppet.see

    def seen(context: Any, *what: Any) -> None:
        times.append(world.sim.now_us)
        see(context, *what)

    puppet.see = seen
    world.seen.clear()
    entries = by_actor(world.run(), actor)
    return [(own, at, *what) for (own, *what), at in zip(entries, times, strict=True)]


@COMMITTING_HOST
def test_timers_come_by_the_actor_s_own_clock_also_those_set_before(host: MakeHost) -> None:
    world = Hosted(host, a=timers(10, 100, 300))
    world.at(50, world.sim.set_clock_rate, "a", "it", DOUBLE)
    world.at(100, world.sim.set_clock_rate, "a", "it", RIGHT)
    assert told(world) == [
        (10, 10, "timer", "10"),
        (100, 75, "timer", "100"),
        (300, 250, "timer", "300"),
    ]
    assert told(world) == told(world), "another replication begins with clocks that are right"


@COMMITTING_HOST
def test_a_timer_is_set_by_the_clock_of_its_time(host: MakeHost) -> None:
    world = Hosted(
        host,
        a={
            "start": lambda c: c.set_timer("first", 10),
            "timer": lambda c, name: c.set_timer("then", 10) if name == "first" else None,
        },
    )
    world.at(0, world.sim.set_clock_rate, "a", "it", HALF)
    assert told(world) == [(10, 20, "timer", "first"), (20, 40, "timer", "then")]


@COMMITTING_HOST
def test_time_outs_go_by_the_asker_s_clock_and_nobody_else_s(host: MakeHost) -> None:
    for victim, expected in (("a", (10, 20)), ("b", (10, 10))):
        world = Hosted(host, a={"start": asks(10)}, b={})
        world.at(0, world.sim.set_clock_rate, victim, "it", HALF)
        assert told(world) == [(*expected, "unanswered", "question")]


@COMMITTING_HOST
def test_a_question_that_is_asked_by_a_wrong_clock_times_out_by_it(host: MakeHost) -> None:
    asking = asks(10)
    acts = {"start": lambda c: c.set_timer("ask", 10), "timer": lambda c, _: asking(c)}
    world = Hosted(host, a=acts, b={})
    world.at(0, world.sim.set_clock_rate, "a", "it", HALF)
    assert told(world) == [(10, 20, "timer", "ask"), (20, 40, "unanswered", "question")]


@COMMITTING_HOST
def test_a_repeated_question_is_asked_by_the_clock(host: MakeHost) -> None:
    world = Hosted(
        host,
        a={"start": lambda c: c.request_every("t", 10, "b", Say("again"), 1000)},
        b={},
        until_us=68,
    )
    world.at(5, world.sim.set_clock_rate, "a", "it", HALF)
    world.at(45, world.sim.set_clock_rate, "a", "it", RIGHT)
    assert [at for at, *_ in by_actor(world.run(), "b")] == [15, 35, 50, 60]


@COMMITTING_HOST
def test_a_step_wakes_nobody_earlier_or_later(host: MakeHost) -> None:
    world = Hosted(host, a={**timers(100), "timer": lambda c, _: stamps.append(c.stamp_us)})
    stamps: list[int] = []
    world.at(50, world.sim.shift_clock, "a", "it", S)
    assert told(world) == [(100, 100, "timer", "100")]
    assert stamps == [EPOCH_US + 100 + S]


@COMMITTING_HOST
@pytest.mark.parametrize("clock_stops", [True, False])
def test_a_rate_that_changes_while_an_actor_sleeps(host: MakeHost, clock_stops: bool) -> None:
    world = Hosted(host, a=timers(30, 50, 100))
    world.at(20, world.sim.suspend, "a", "it", clock_stops)
    world.at(40, world.sim.set_clock_rate, "a", "drift", DOUBLE)
    world.at(60, world.sim.resume, "a", "it")
    stopped = [(30, 65, "timer", "30"), (50, 75, "timer", "50"), (100, 100, "timer", "100")]
    went_on = [(80, 60, "timer", "30"), (80, 60, "timer", "50"), (100, 70, "timer", "100")]
    assert told(world) == (stopped if clock_stops else went_on)


@COMMITTING_HOST
def test_clocks_outlive_a_kill_and_the_monotonic_one_starts_anew(host: MakeHost) -> None:
    seen: list[tuple[int, int]] = []

    def start(context: Any) -> None:
        seen.append((context.now_us, context.stamp_us - EPOCH_US))
        context.set_timer("t", 10)

    world = Hosted(host, a={"start": start})
    world.at(5, world.sim.kill, "a", "it")
    world.at(10, world.sim.set_clock_rate, "a", "drift", DOUBLE)
    world.at(20, world.sim.shift_clock, "a", "step", -15)
    world.at(30, world.sim.revive, "a", "it")
    assert told(world) == [(10, 35, "timer", "t")]
    assert seen == [(0, 0), (0, 30 + 20 - 15)]


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.integers(0, 200), min_size=1, max_size=5),
    changes=st.lists(st.tuples(st.integers(0, 150), st.integers(100_000, 10**7)), max_size=5),
    sleep=st.tuples(st.integers(0, 100), st.integers(1, 100), st.booleans()),
)
def test_nobody_is_woken_early_or_more_than_a_moment_late_and_hosts_agree(
    delays: list[int], changes: list[tuple[int, int]], sleep: tuple[int, int, bool]
) -> None:
    def play(host: MakeHost, sleeps: bool) -> list[tuple[Any, ...]]:
        world = Hosted(host, a=timers(*dict.fromkeys(delays)), until_us=10_000)
        for at_us, rate_ppm in changes:
            world.at(at_us, world.sim.set_clock_rate, "a", "it", rate_ppm)
        if sleeps:
            world.at(sleep[0], world.sim.suspend, "a", "lid", sleep[2])
            world.at(sleep[0] + sleep[1], world.sim.resume, "a", "lid")
        return sorted(told(world))

    def guarded(seed: int, cell: str) -> Any:
        return simulator(seed, cell, guarded=True)

    awake = play(guarded, sleeps=False)
    assert len(awake) == len(set(delays))
    for own_us, _, _, delay in awake:
        assert int(delay) <= own_us <= int(delay) + 10 * (1 + len(changes))
    asleep = play(guarded, sleeps=True)
    assert all(own_us >= int(delay) for own_us, _, _, delay in asleep)
    assert play(TrioWorld, sleeps=False) == awake
    assert play(TrioWorld, sleeps=True) == asleep


# What the log says


@COMMITTING_HOST
def test_the_log_has_each_change_and_each_jump_ahead_by_over_an_hour(host: MakeHost) -> None:
    trace = Trace()
    world = Hosted(host, a={}, until_us=3 * JUMP_US)
    shifts = {1: JUMP_US, 2: JUMP_US + 1, 3: -3 * JUMP_US, 4: 2 * JUMP_US}
    for at_us, by_us in shifts.items():
        world.at(at_us, world.sim.shift_clock, "a", "step", by_us)
    world.at(6, world.sim.set_clock_rate, "a", "drift", 1_010_000)
    world.at(7, world.sim.set_clock_rate, "a", "drift", RIGHT)
    world.at(8, world.sim.suspend, "a", "lid", True)
    world.at(8 + 2 * JUMP_US, world.sim.resume, "a", "lid")
    world.run(recorder=trace)
    acts = [record[5] for record in trace.kinds("fault")]
    assert acts == [
        *("clock +1h", "clock +1h0.000001s", "clock -3h", "clock +2h"),
        *("rate 1.01", "rate 1", "suspend", "resume"),
    ]
    jumps = [(record[2], record[6]["by_us"]) for record in trace.kinds("event")]
    assert [record[5] for record in trace.kinds("event")] == ["clock.jumped"] * len(jumps)
    assert jumps == [
        (2, JUMP_US + 1),
        (4, JUMP_US + 4),  # since the last stamp, from which the clock went back
        (8 + 2 * JUMP_US, 2 * JUMP_US),
    ]


def test_a_turn_in_a_thread_keeps_its_clock_and_what_it_asked_for_goes_by_the_new_one() -> None:
    seen: list[tuple[int, int]] = []

    def heard(context: Any, _envelope: Any) -> None:
        before = context.now_us, context.stamp_us
        trio.from_thread.run_sync(world.sim.shift_clock, "a", "it", S)
        trio.from_thread.run_sync(world.sim.set_clock_rate, "a", "it", 10_000_000)
        assert (context.now_us, context.stamp_us) == before
        context.set_timer("t", 100 * S)
        seen.append(before)

    def timer(context: Any, _name: str) -> None:
        seen.append((context.now_us, context.stamp_us))

    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, clock=None, speed=200.0),
        until_us=20 * S,
        a={"say": heard, "timer": timer},
        c={"start": say("a", "go")},
    )
    world.sim.contexts["a"].blocking = True
    world.run()
    (began_us, began_at_us), (now_us, stamp_us) = seen
    assert now_us >= began_us + 99 * S, "ten times as fast as the world, which ends after 20 s"
    assert stamp_us - began_at_us == now_us - began_us + S
