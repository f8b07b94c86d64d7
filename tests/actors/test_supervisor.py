"""Restart policies, and what becomes of an actor on the trio host whose turns raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.supervisor import GaveUpError, RestartPolicy, Supervisor
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import Hosted, MakeHost, by_actor
from tests.actors.puppets import NOTES, Note, Say, asks, say
from transports.envelope import Envelope


def test_so_many_restarts_within_so_long() -> None:
    supervisor = Supervisor(RestartPolicy(restarts=2, within_us=10))
    told = [supervisor.allows("a", at_us) for at_us in (0, 5, 10, 11, 15, 16)]
    assert told == [True, True, False, True, False, True]
    assert supervisor.allows("b", 16), "each actor has its own"
    supervisor.reset()
    assert supervisor.allows("a", 16)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 4), st.integers(0, 50))
def test_never_more_than_the_policy_allows(gaps: list[int], restarts: int, within: int) -> None:
    supervisor = Supervisor(RestartPolicy(restarts=restarts, within_us=within))
    at_us, allowed = 0, []
    for gap in gaps:
        at_us += gap
        if supervisor.allows("a", at_us):
            allowed.append(at_us)
    assert not restarts or not gaps or allowed, "the first is allowed"
    for first in allowed:
        assert sum(first <= one <= first + within for one in allowed) <= restarts


def restarting(restarts: int = 3) -> MakeHost:
    policy = RestartPolicy(restarts=restarts, within_us=60 * S)
    return lambda seed, cell: TrioWorld(seed, cell, restart=policy)


def fails(world: list[Hosted], times: int = 1) -> Any:
    """A turn that raises the first few times, after it wrote, sent, set and said things."""
    count: list[int] = []

    def turn(context: Any, _what: Any) -> None:
        if len(count) < times:
            count.append(world[0].sim.now_us)
            context.store.table(NOTES).put("k", Note("half done"))
            context.send("b", Say("never sent"))
            context.set_timer("never set", 1)
            context.log("said.never")
            context.done()
            raise ValueError("no such thing")
        context.send("b", Say("sent"))

    return turn


def test_a_failed_turn_never_was_and_the_actor_starts_again_from_its_store() -> None:
    trace = Trace()
    worlds: list[Hosted] = []
    finished: list[str] = []

    def start(context: Any) -> None:
        notes = context.store.table(NOTES)
        found = notes.get("k")
        context.log("started", found=None if found is None else found.text, now=context.now_us)
        if found is None:
            notes.put("k", Note("written"))
        context.set_timer("t", 5)

    world = Hosted(restarting(), a={"start": start, "timer": fails(worlds)}, b={}, until_us=100)
    worlds.append(world)
    world.sim.on_done = finished.append
    assert world.run(recorder=trace) == [
        (5, "a", "timer", "t"),
        (5, "a", "timer", "t"),  # of the second boot, at 10 us
        (10, "b", "sent"),
    ]
    assert finished == []
    assert trace.events("started") == [{"found": None, "now": 0}, {"found": "written", "now": 0}]
    assert trace.events("said.never") == []
    assert [record[2:] for record in trace.kinds("start")] == [
        (0, "a", 0),
        (0, "b", 0),
        (5, "a", 1),
    ]
    [undone] = trace.kinds("undone")
    assert undone[2:4] == (5, "a")
    assert undone[5] == "the turn failed: ValueError: no such thing"


def test_what_it_asked_before_is_answered_to_nobody_after_a_restart() -> None:
    trace = Trace()
    worlds: list[Hosted] = []
    started: list[bool] = []

    def start(context: Any) -> None:
        if not started:
            started.append(True)
            context.request("b", Say("question"), 50)
            context.set_timer("t", 5)

    world = Hosted(
        restarting(),
        {("b", "a"): lambda: 20},
        a={"start": start, "timer": fails(worlds)},
        b={"say": lambda *_: Say("answer")},
    )
    worlds.append(world)
    assert by_actor(world.run(recorder=trace), "a") == [(5, "timer", "t")]
    [late] = trace.kinds("late")
    assert late[2] == 20


def test_others_and_the_mailbox_go_on() -> None:
    worlds: list[Hosted] = []
    world = Hosted(
        restarting(),
        a={"say": fails(worlds)},
        b={"start": lambda c: [say("a", str(n))(c) for n in range(3)]},
    )
    worlds.append(world)
    seen = world.run()
    assert by_actor(seen, "a") == [(0, "0"), (0, "1"), (0, "2")]
    assert by_actor(seen, "b") == [(0, "sent"), (0, "sent")]


def test_more_restarts_than_the_policy_allows_end_the_replication() -> None:
    worlds: list[Hosted] = []

    def start(context: Any) -> None:
        context.set_timer("t", 10 * S)

    world = Hosted(restarting(2), a={"start": start, "timer": fails(worlds, 9)}, b={})
    worlds.append(world)
    with pytest.raises(GaveUpError) as caught:
        world.run()
    assert str(caught.value) == (
        "a failed on timer 't' at 30 s, and is not started again: "
        "its restart policy allows 2 restarts within 1m"
    )
    assert (caught.value.actor, caught.value.now_us) == ("a", 30 * S)
    assert repr(caught.value.__cause__) == "ValueError('no such thing')"


def test_an_actor_that_cannot_start_gives_up_too() -> None:
    def start(_context: Any) -> None:
        raise ValueError("never")

    with pytest.raises(
        GaveUpError, match=r"a failed on its start at 0 s, .* allows 1 restart within 1m"
    ):
        Hosted(restarting(1), a={"start": start}).run()


def test_a_mistake_of_the_scenario_is_not_restarted() -> None:
    def heard(context: Any, _envelope: Envelope[Any]) -> None:
        context.send("nobody", Say("x"))

    world = Hosted(restarting(), a={"start": asks(10)}, b={"say": heard})
    with pytest.raises(Exception, match="b sent to 'nobody'"):
        world.run()
