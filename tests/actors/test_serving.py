"""The trio host on the machine's clock: speed, sockets, signals, and an end without a rest."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import pytest
import trio

from actors.errors import LimitReachedError, WouldSleepForeverError
from actors.world import TrioWorld
from scenarios.watchdog import Stop, StuckError, watchdog
from tests.actors.harness import S, Trace
from tests.actors.hosts import Hosted, MakeHost, by_actor
from tests.actors.puppets import Puppet, Say, asks, replies, say
from transports.local import TcpTransport


def over_tcp(speed: float = 200) -> MakeHost:
    return lambda seed, cell: TrioWorld(
        seed, cell, transport=TcpTransport(), clock=None, speed=speed
    )


def on_a_real_clock(seed: int, cell: str) -> TrioWorld:
    """A fast world in memory."""
    return TrioWorld(seed, cell, clock=None, speed=1000)


def sockets() -> int:
    """How many sockets this process has open."""
    gc.collect()
    found = 0
    for number in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():  # noqa: PTH112, PTH208  names of numbers
        try:
            found += os.readlink(f"/proc/self/fd/{number}").startswith("socket:")  # noqa: PTH115  likewise
        except OSError:
            continue  # the folder's own, closed since
    return found


def no_task_runs() -> bool:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return True
    return False


# Time at a speed, over sockets


def test_actors_talk_over_sockets_and_time_goes_at_its_speed() -> None:
    def start(context: Any) -> None:
        context.request("b", Say("question"), 10 * S)
        context.set_timer("t", 4 * S)

    world = Hosted(over_tcp(), a={"start": start}, b={"say": replies()}, c={}, until_us=6 * S)
    seen = world.run()
    assert [one[1:] for one in seen] == [
        ("b", "question"),
        ("a", "answer 0"),
        ("a", "timer", "t"),
    ]
    assert seen[1][0] < 4 * S <= seen[2][0]
    assert world.sim.now_us >= 6 * S


def test_a_question_that_nobody_answers_is_told_and_a_late_answer_is_dropped() -> None:
    trace = Trace()
    world = Hosted(
        over_tcp(),
        {("b", "a"): lambda: 8 * S},
        a={"start": asks(2 * S)},
        b={"say": replies()},
        until_us=14 * S,
    )
    assert [one[1:] for one in world.run(recorder=trace)] == [
        ("b", "question"),
        ("a", "unanswered", "question"),
    ]
    assert len(trace.kinds("late")) == 1


def test_records_come_in_the_order_of_time() -> None:
    trace = Trace()

    def ping(context: Any, envelope: Any) -> None:
        context.send(envelope.source, Say("ping"))
        context.log("pinged")

    world = Hosted(
        over_tcp(), a={"start": say("b", "ping"), "say": ping}, b={"say": ping}, until_us=2 * S
    )
    world.run(recorder=trace)
    times = [record[2] for record in trace.records]
    assert len(times) > 10
    assert times == sorted(times)
    assert times[-1] <= world.sim.now_us, "the end is not before the last turn"


def test_the_end_is_when_it_was_said_not_when_all_was_quiet() -> None:
    told: list[int] = []

    def finish() -> None:
        world.sim.finish()
        told.append(world.sim.now_us)

    world = Hosted(on_a_real_clock, a={})
    world.at(S, finish)
    world.run()
    assert S <= world.sim.now_us <= told[0]


def test_a_real_transport_wants_a_real_clock() -> None:
    world = TrioWorld(1, "", transport=TcpTransport())
    with pytest.raises(ValueError, match="give clock=None, and a speed"):
        world.run(0)


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan")])
def test_a_speed_is_more_than_nothing(speed: float) -> None:
    with pytest.raises(ValueError, match="give more than 0"):
        TrioWorld(1, "", speed=speed)


def test_a_virtual_clock_may_have_a_speed_too() -> None:
    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, speed=8),
        a={"start": lambda c: c.set_timer("t", 7)},
    )
    assert world.run() == [(7, "a", "timer", "t")]


# Nothing is left


def fail(_context: Any, _timer: str) -> None:
    raise LimitReachedError("it took too long")


def interrupt(_context: Any, _timer: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("act", "error"), [(None, None), (fail, LimitReachedError), (interrupt, KeyboardInterrupt)]
)
def test_however_it_ends_no_socket_and_no_task_is_left(act: Any, error: Any) -> None:
    before = sockets(), threading.active_count()
    world = Hosted(
        over_tcp(1000),
        a={"start": lambda c: c.set_timer("t", S), "timer": act or (lambda *_: None)},
        b={},
        c={},
        until_us=2 * S,
    )
    if error is None:
        world.run()
    else:
        with pytest.raises(error):
            world.run()
    assert sockets() == before[0]
    assert threading.active_count() <= before[1], "one that was idle before may have ended since"
    assert no_task_runs()


def test_an_alarm_never_hits_a_scheduler_that_ends() -> None:
    """As a watchdog's may: it would be told of as an exception that nobody can catch."""
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: None)
    over = threading.Event()
    other = threading.Thread(target=over.wait)  # which takes an alarm as well as ours does
    other.start()
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        for _ in range(200):
            Hosted(TrioWorld, until_us=1, a={}).run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        over.set()
        other.join()


def test_an_interrupt_from_outside_ends_it() -> None:
    def timer(_context: Any, _name: str) -> None:
        signal.raise_signal(signal.SIGINT)

    world = Hosted(over_tcp(1000), a={"start": lambda c: c.set_timer("t", S), "timer": timer}, b={})
    before = sockets()
    with pytest.raises(KeyboardInterrupt):
        world.run()
    assert sockets() == before


def test_a_world_without_anything_due_says_so_on_a_real_clock() -> None:
    sim = over_tcp(1000)(1, "")
    sim.add("a", Puppet([]))
    sim.connect(lambda _source, _target: None)
    with pytest.raises(WouldSleepForeverError):
        sim.run(0)


# The watchdog


def test_the_watchdog_ends_a_turn_that_never_ends() -> None:
    def timer(_context: Any, _name: str) -> None:
        while True:
            pass

    world = Hosted(TrioWorld, a={"start": lambda c: c.set_timer("t", 5), "timer": timer}, b={})
    told = r"a on timer 't' at 5e-06 s did not end within 0.1 s"
    with pytest.raises(StuckError, match=told), watchdog(world.sim, 0.1):
        world.run()


def test_what_halts_a_world_is_raised_in_the_next_turn() -> None:
    heard = []

    def ping(context: Any, envelope: Any) -> None:
        heard.append(context.name)
        context.send(envelope.source, Say("ping"))
        if len(heard) == 5:
            world.sim.halt(Stop())

    world = Hosted(TrioWorld, a={"start": say("b", "ping"), "say": ping}, b={"say": ping})
    with pytest.raises(Stop):
        world.run()
    assert len(heard) == 5
    heard += ["", "", "", "", ""]
    world.sim.on_begin.append(lambda: world.sim.at(0, world.sim.finish))
    world.sim.contexts["b"].handlers[Say] = lambda *_: None
    world.run()


def test_the_watchdog_lets_a_real_clock_be_idle() -> None:
    world = Hosted(over_tcp(20), a={}, b={}, until_us=6 * S)
    with watchdog(world.sim, 0.25):
        world.run()


# Drained


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_what_waits(number: signal.Signals) -> None:
    trace = Trace()

    def stop(context: Any, _timer: str) -> None:
        for text in ("1", "2", "3"):
            context.send("a", Say(text))
        signal.raise_signal(number)

    world = Hosted(
        on_a_real_clock,
        a={
            "start": lambda c: c.set_timer("stop", S),
            "timer": stop,
            "say": lambda c, e: say("b", f"got {e.body.text}")(c),
        },
        b={},
    )
    world.sim.serve(trace)
    assert [what[1:] for what in by_actor(world.seen, "a")] == [
        ("timer", "stop"),
        ("1",),
        ("2",),
        ("3",),
    ]
    assert trace.kinds("drop") == []


def test_a_drain_waits_for_a_turn_in_a_thread_and_begins_nothing_new() -> None:
    class Slow(Puppet):
        blocking = True

    released = threading.Event()
    seen: list[tuple[Any, ...]] = []
    said: list[str] = []

    def slow(context: Any, _envelope: Any) -> Say:
        os.kill(os.getpid(), signal.SIGTERM)
        assert released.wait(5)
        context.log("done.slowly")
        return Say("answer")

    def start(context: Any) -> None:
        context.request("b", Say("question"), 1000 * S)
        context.set_timer("never", 50 * S)

    sim = TrioWorld(1, "", clock=None, speed=1000)
    sim.add("a", Puppet(seen, start=start))
    sim.add("b", Slow(seen, say=slow))
    sim.connect(lambda _source, _target: None)
    sim.watch("done.slowly", lambda _now, _fields: said.append("done"))
    sim.on_begin.append(lambda: sim.at(100 * S, released.set))
    sim.serve()
    assert [one[1:] for one in seen] == [("b", "question")], "no timer, and nothing is read"
    assert said == ["done"]


def test_a_second_signal_does_not_wait() -> None:
    def stop(context: Any, _timer: str) -> None:
        signal.raise_signal(signal.SIGTERM)
        context.send("a", Say("again"))

    def again(context: Any, _envelope: Any) -> None:
        if len(world.seen) == 50:
            signal.raise_signal(signal.SIGTERM)
        context.send("a", Say("again"))

    world = Hosted(
        on_a_real_clock,
        a={"start": lambda c: c.set_timer("stop", S), "timer": stop, "say": again},
    )
    world.sim.serve(grace_s=3)
    assert 50 <= len(world.seen) < 1000, "one more second would be thousands"


def test_a_drain_ends_after_its_grace_time() -> None:
    def stop(context: Any, _timer: str) -> None:
        signal.raise_signal(signal.SIGTERM)
        context.send("a", Say("again"))

    def again(context: Any, _envelope: Any) -> None:
        context.send("a", Say("again"))

    world = Hosted(
        on_a_real_clock,
        a={"start": lambda c: c.set_timer("stop", S), "timer": stop, "say": again},
    )
    world.sim.serve(grace_s=0.05)
    assert len(world.seen) > 2
