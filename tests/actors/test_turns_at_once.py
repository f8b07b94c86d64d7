"""A message to an idle actor is taken at once by whoever reads it; no promise is weaker for that.

Turns of one actor never overlap, each link keeps its order, alarms come before mail, and failures,
kills and halts do what they do in the actor's own task.
"""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.errors import ActorFailedError
from actors.host import finish_now
from actors.supervisor import GaveUpError, RestartPolicy
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import Hosted, MakeHost, by_actor
from tests.actors.puppets import Puppet, Say, asks, say
from transports.local import MemoryTransport, TcpTransport, Transport, UnixTransport


def real(transport: type[Transport] = TcpTransport, **how: Any) -> MakeHost:
    return lambda seed, cell: TrioWorld(
        seed, cell, transport=transport(), clock=None, speed=1000, **how
    )


class Steps(trio.abc.Instrument):
    """Counts what the scheduler does."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


@pytest.mark.parametrize("transport", [TcpTransport, UnixTransport])
def test_a_round_trip_over_sockets_takes_two_steps_of_the_scheduler(
    transport: type[Transport],
) -> None:
    steps = Steps()
    counts = []

    def again(context: Any, _envelope: Any) -> None:
        counts.append(steps.count)
        if len(counts) == 200:
            world.sim.finish()
        else:
            asks(1000 * S)(context)

    def start(context: Any) -> None:
        trio.lowlevel.add_instrument(steps)
        asks(1000 * S)(context)

    world = Hosted(
        real(transport),
        a={"start": start, "say": again},
        b={"say": lambda *_: Say("yes")},
        until_us=100_000 * S,
    )
    world.run()
    took = Counter(after - before for before, after in pairwise(counts))
    assert took.most_common(1)[0][0] == 2
    assert took[2] > 180, "one step for each of the two reads"


class Watched(Puppet):
    """Takes no turn before the one before has ended, and leaves what it heard from each."""

    def __init__(self, heard: dict[str, list[int]], blocking: bool) -> None:
        super().__init__([], timer=self.work, say=self.work)
        self.blocking = blocking
        self.heard = heard
        self.at_work = False
        self.timers = 0

    def work(self, context: Any, what: Any) -> None:
        assert not self.at_work, "turns of one actor never overlap"
        self.at_work = True
        if isinstance(what, str):
            self.timers += not what.startswith("hub")
        else:
            self.heard.setdefault(what.source, []).append(int(what.body.text))
            context.log("heard")
            context.set_timer(f"{what.source} {what.body.text}", 0)
            if what.body.text.endswith("3"):
                context.send(context.name, Say("-1"))  # a self-made message goes by the mailbox
        self.at_work = False


def talks(counts: list[int]) -> dict[str, Any]:
    """An actor that sends so many messages at each of its ticks, numbered throughout."""
    sent: list[int] = []

    def tick(context: Any, name: str) -> None:
        count = counts[int(name)]
        for _ in range(count):
            context.send("hub", Say(str(len(sent))))
            sent.append(0)
        if int(name) + 1 < len(counts):
            context.set_timer(str(int(name) + 1), 2)

    def start(context: Any) -> None:
        sent.clear()
        context.set_timer("0", 1)

    return {"start": start, "timer": tick}


@given(
    plans=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=3),
    blocking=st.booleans(),
    limit=st.sampled_from([1, 3, 256]),
)
@settings(max_examples=40, deadline=None)
def test_links_keep_their_order_and_turns_never_overlap(
    plans: list[list[int]], blocking: bool, limit: int
) -> None:
    heard: dict[str, list[int]] = {}
    hub = Watched(heard, blocking)
    names = [f"t{number}" for number in range(len(plans))]
    puppets: Any = {name: talks(plan) for name, plan in zip(names, plans, strict=True)}
    world = Hosted(
        lambda seed, cell: TrioWorld(seed, cell, mailbox_limit=limit),
        until_us=100,
        **puppets,
    )
    world.sim.add("hub", hub)
    world.sim.connect(lambda _source, _target: None)
    world.run()
    for name, plan in zip(names, plans, strict=True):
        assert heard.get(name, []) == list(range(sum(plan)))
    assert hub.timers == sum(map(sum, plans)), "each timer is told, in spite of the mail"


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("transport", [MemoryTransport, TcpTransport])
def test_order_and_turns_hold_on_a_real_clock(blocking: bool, transport: type[Transport]) -> None:
    plans = [[0, 9, 1, 5], [7, 7, 1, 1], [30, 0, 0, 2]]
    heard: dict[str, list[int]] = {}
    hub = Watched(heard, blocking)
    names = [f"t{number}" for number in range(len(plans))]
    puppets: Any = {name: talks(plan) for name, plan in zip(names, plans, strict=True)}
    world = Hosted(
        real(transport, mailbox_limit=4),
        until_us=100_000 * S,
        **puppets,
    )
    world.sim.add("hub", hub)
    world.sim.connect(lambda _source, _target: None)

    def count(_now_us: int, _fields: Any) -> None:
        if sum(len(heard.get(name, [])) for name in names) == sum(map(sum, plans)):
            world.sim.finish()

    world.sim.watch("heard", count)
    world.run()
    assert [heard[name] for name in names] == [list(range(sum(plan))) for plan in plans]


def test_a_turn_that_may_block_is_taken_by_no_reader_so_none_overlaps_it() -> None:
    another = threading.Event()
    threads, at_work = [], []

    class Slow(Puppet):
        blocking = True

    def slow(context: Any, _envelope: Any) -> None:
        threads.append(threading.current_thread())
        at_work.append(context.name)
        if len(at_work) > 1:
            another.set()
        assert not another.wait(0.1), "nobody else has a turn meanwhile"
        at_work.pop()
        context.log("heard")

    def soon(name: str) -> dict[str, Any]:
        return {
            "start": lambda c: c.set_timer("t", 20 * S),
            "timer": lambda c, _: say("b", name)(c),
        }

    world = Hosted(real(), a=soon("1"), c=soon("2"), until_us=100_000 * S)
    world.sim.add("b", Slow([], say=slow))
    world.sim.connect(lambda _source, _target: None)
    world.sim.watch("heard", lambda *_: world.sim.finish())
    world.run()
    assert threading.main_thread() not in threads


def test_an_actor_is_told_what_waits_for_the_end_of_its_turn_in_a_thread() -> None:
    began, broken_off = threading.Event(), threading.Event()
    waited: list[bool] = []

    class Computing(Puppet):
        blocking = True

        def hurry(self, body: Any) -> None:
            assert threading.current_thread() is threading.main_thread()
            if body.text == "2":  # the first may arrive while the actor starts
                broken_off.set()

    def compute(context: Any, _envelope: Any) -> None:
        began.set()
        waited.append(broken_off.wait(30))
        context.log("heard")

    class Second(Puppet):
        """Speaks once the other's turn goes on."""

        def on_timer(self, context: Any, timer: str) -> None:
            if began.is_set():
                say("b", "2")(context)
            else:
                context.set_timer("t", S)

    first = {"start": say("b", "1")}
    world = Hosted(real(), a=first, until_us=1_000_000 * S)
    world.sim.add("b", Computing([], say=compute))
    world.sim.add("c", Second([], start=lambda c: c.set_timer("t", S)))
    world.sim.connect(lambda _source, _target: None)
    world.sim.watch("heard", lambda *_: len(waited) > 1 and world.sim.finish())
    world.run()
    assert waited == [True, True]


def test_a_turn_that_is_taken_as_one_step_must_not_wait() -> None:
    done: list[str] = []

    async def turn(waits: bool) -> None:
        try:
            if waits:
                await trio.lowlevel.checkpoint()
            done.append("turn")
        finally:
            done.append("end")

    async def main() -> None:
        finish_now(turn(False))
        with pytest.raises(AssertionError, match="must not wait"):
            finish_now(turn(True))

    trio.run(main)
    assert done == ["turn", "end", "end"]


def test_a_flood_between_two_actors_holds_up_no_third() -> None:
    """Fifty messages go to and fro until it is heard, so no reader of theirs waits for long."""
    stopped: list[int] = []
    counts: Counter[str] = Counter()

    def start(context: Any) -> None:
        for number in range(50):
            context.send("b", Say(str(number)))

    def back(context: Any, envelope: Any) -> None:
        counts[context.name] += 1
        if counts["a"] == 200:
            context.send("c", Say("go"))
        if envelope.body.text == "stop":
            stopped.append(counts["a"])
            context.log("stopped")
        elif not stopped:
            context.send(envelope.source, envelope.body)

    world = Hosted(
        real(),
        a={"start": start, "say": back},
        b={"say": back},
        c={"say": lambda c, _: c.set_timer("t", S), "timer": lambda c, _: say("b", "stop")(c)},
        until_us=100_000 * S,
    )
    world.sim.watch("stopped", lambda *_: world.sim.finish())
    world.run()
    assert len(stopped) == 1
    assert stopped[0] >= 200, "it went on meanwhile"


# Failures


def failing(texts: str) -> Any:
    """What raises at some messages."""

    def heard(_context: Any, envelope: Any) -> None:
        if envelope.body.text in texts:
            raise ValueError(envelope.body.text)

    return heard


@pytest.mark.parametrize("host", [TrioWorld, real(), real(MemoryTransport)])
def test_an_actor_that_fails_ends_the_world_and_not_its_link(host: MakeHost) -> None:
    trace = Trace()

    def many(context: Any) -> None:
        for text in "12345":
            context.send("b", Say(text))

    world = Hosted(
        host, a={"start": many}, c={"start": many}, b={"say": failing("1")}, until_us=1000 * S
    )
    with pytest.raises(ActorFailedError, match=r"^b failed on Say from [ac] at") as caught:
        world.run(recorder=trace)
    assert repr(caught.value.__cause__) == "ValueError('1')"
    assert [text for _, text in by_actor(world.seen, "b")] == ["1"], "it takes no more turns"
    assert trace.kinds("drop") == [], "no link broke by it"


def test_an_actor_that_is_supervised_goes_on_with_the_next_message() -> None:
    trace = Trace()

    def many(context: Any) -> None:
        for text in "12345":
            context.send("b", Say(text))

    def world_of(restarts: int) -> Hosted:
        policy = RestartPolicy(restarts=restarts)
        return Hosted(
            real(restart=policy), a={"start": many}, b={"say": failing("24")}, until_us=60 * S
        )

    world = world_of(2)
    assert [text for _, text in by_actor(world.run(recorder=trace), "b")] == list("12345")
    assert [record[3:] for record in trace.kinds("start")] == [
        ("a", 0), ("b", 0), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert len(trace.kinds("undone")) == 2
    world = world_of(1)
    with pytest.raises(GaveUpError):
        world.run()
    assert [text for _, text in by_actor(world.seen, "b")] == list("1234")


# What a turn does to its own actor


@pytest.mark.parametrize("host", [TrioWorld, real()])
@pytest.mark.parametrize("revived", [False, True])
def test_an_actor_whose_own_turn_kills_it_ends_and_may_come_back(
    host: MakeHost, revived: bool
) -> None:
    trace = Trace()

    def many(context: Any, _timer: str = "") -> None:
        for text in "12345":
            context.send("b", Say(text))

    def die(context: Any, envelope: Any) -> None:
        if context.boot == 0 and envelope.body.text == "3":
            context.log("it.dies")
        context.send("a", Say(envelope.body.text))

    def killed(_now_us: int, _fields: Any) -> None:
        world.sim.kill("b", "it")
        if revived:
            world.sim.revive("b", "it")

    def start(context: Any) -> None:
        many(context)
        context.set_timer("t", 30 * S)

    world = Hosted(host, a={"start": start, "timer": many}, b={"say": die}, until_us=60 * S)
    world.sim.watch("it.dies", killed)
    heard = [text for _, text in by_actor(world.run(recorder=trace), "b")]
    lost = [record[5].body.text for record in trace.kinds("drop")]
    assert heard[:3] == list("123")
    assert sorted(heard + lost) == sorted("1234512345")
    if revived:
        assert heard[-5:] == list("12345")
        assert [record[3:] for record in trace.kinds("start")][2:] == [("b", 1)]
    else:
        assert len(heard) == 3
    echoed = [what[1] for what in by_actor(world.seen, "a") if what[1] != "timer"]
    assert echoed == heard, "what it sent in its last turn arrives too"


def test_an_actor_whose_own_turn_suspends_it_takes_no_other_before_it_goes_on() -> None:
    def many(context: Any) -> None:
        for text in "12345":
            context.send("b", Say(text))

    def sleepy(context: Any, envelope: Any) -> None:
        if envelope.body.text == "2":
            context.log("it.sleeps")

    world = Hosted(real(), a={"start": many}, b={"say": sleepy}, until_us=60 * S)
    world.sim.watch("it.sleeps", lambda *_: world.sim.suspend("b", "it", False))
    heard: list[int] = []
    world.at(30 * S, lambda: heard.append(len(by_actor(world.seen, "b"))))
    world.at(30 * S, world.sim.resume, "b", "it")
    assert [text for _, text in by_actor(world.run(), "b")] == list("12345")
    assert heard == [2]
