"""Turns that fail: errors in a scenario's words, and commits that undo what a turn did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from actors.actor import Commit, Handler
from actors.errors import (
    ActorFailedError,
    SimulationError,
    UnhandledMessageError,
    UnknownActorError,
    WouldSleepForeverError,
)
from actors.guarded import CommitHook, simulator
from actors.messages import GetGraphRun, GraphRun, RunGraphSession
from actors.simulator import ActorContext
from actors.stores.memory import Undo
from tests.actors.harness import Trace, make_cell
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
    replies,
    say,
)
from transports.clock import EPOCH_US
from transports.envelope import SERIAL_BITS, Envelope

# When it can't go on


@BOTH_LOOPS
def test_an_actor_that_asks_must_handle_unanswered(hook: CommitHook | None) -> None:
    class Asks(Puppet):
        def __init__(self) -> None:
            super().__init__([], start=asks(10, "a"))
            self.handlers = {Say: self.on_say}

    sim = simulator(1, "", hook)
    sim.add("a", Asks())
    sim.connect(lambda _source, _target: None)
    with pytest.raises(UnhandledMessageError, match="a has no handler for Unanswered"):
        sim.run(0)


@BOTH_LOOPS
def test_a_message_to_nobody_names_who_there_is(hook: CommitHook | None) -> None:
    world = World(hook, a={"start": say("b", "go")}, b={"say": lambda c, _e: say("sever", "x")(c)})
    with pytest.raises(UnknownActorError) as caught:
        world.run()
    assert str(caught.value).startswith("b sent to 'sever' on ")
    assert str(caught.value).endswith("but there are only a, b")


def test_the_turn_of_a_failure_is_in_words() -> None:
    cases: dict[str, dict[str, Any]] = {
        "its start": {"start": lambda _c: 1 // 0},
        "Say from a": {"start": say("a", "x"), "say": lambda _c, _e: 1 // 0},
        "timer 't'": {"start": lambda c: c.set_timer("t", 5), "timer": lambda _c, _n: 1 // 0},
        "a time-out": {"start": asks(5, "z"), "unanswered": lambda _c, _e: 1 // 0},
    }
    for turn, acts in cases.items():
        with pytest.raises(ActorFailedError) as caught:
            World(a=acts, z={}).run()
        at = "0 s" if turn in {"its start", "Say from a"} else "5e-06 s"
        assert str(caught.value) == f"a failed on {turn} at {at}"
        assert (caught.value.actor, caught.value.turn) == ("a", turn)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_turn_of_a_failure_is_in_words_where_commits_may_fail() -> None:
    with pytest.raises(ActorFailedError, match="a failed on timer 't' at"):
        World(
            done, a={"start": lambda c: c.set_timer("t", 5), "timer": lambda _c, _n: 1 // 0}
        ).run()


@BOTH_LOOPS
def test_an_actor_s_own_key_error_is_its_failure(hook: CommitHook | None) -> None:
    table: dict[str, int] = {}

    def reply(context: Any, envelope: Envelope[Say]) -> None:
        context.store.table(NOTES).put("n", Note(str(table[envelope.body.text])))

    world = World(hook, a={"start": say("a", "x"), "say": reply})
    with pytest.raises(ActorFailedError):
        world.run()


# Commits that fail


def fails_once(turn: int, verdict: Commit, actor: str = "a") -> CommitHook:
    """A hook that lets one turn of an actor, counted from 1, end so."""
    turns = [0]

    def hook(context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        turns[0] += context.name == actor
        return verdict if context.name == actor and turns[0] == turn else Commit.DONE

    return hook


def busy_turn(context: Any, envelope: Envelope[Say]) -> None:
    """Do one of everything."""
    if envelope.body.text != "go":
        return
    notes = context.store.table(NOTES)
    notes.put("n", Note("new"))
    notes.delete("old")
    context.send("b", Say("sent"))
    context.request("b", Say("asked"), 10)
    context.set_timer("turn", 5)
    context.cancel_timer("start")
    context.log("turn.happened")
    context.done()


def write_old(context: Any) -> None:
    context.store.table(NOTES).insert_unique("old", Note("old"))
    context.set_timer("start", 5)


@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_a_turn_that_did_not_commit_never_was(verdict: Commit) -> None:
    trace = Trace()
    world = World(
        fails_once(1, verdict),
        a={"start": write_old, "say": busy_turn},
        c={"start": say("a", "go")},
        b={},
    )
    seen = world.run(recorder=trace)
    assert seen == [(0, "a", "go"), (5, "a", "timer", "start")]
    notes = world.sim.contexts["a"].store.table(NOTES)
    assert (notes.get("n"), notes.get("old")) == (None, Note("old"))
    assert notes.count("text") == 1
    assert trace.kinds("unanswered") == []
    assert trace.events("turn.happened") == []
    (undone,) = trace.kinds("undone")
    go = next(record for record in trace.kinds("message"))
    assert undone[2:] == (0, "a", go[0], verdict.value)


@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_what_was_logged_and_finished_in_such_a_turn_reaches_nobody(verdict: Commit) -> None:
    heard: list[str] = []
    world = World(
        fails_once(1, verdict),
        a={"start": write_old, "say": busy_turn},
        c={"start": say("a", "go")},
        b={},
    )
    world.sim.watch("turn.happened", lambda _now_us, _fields: heard.append("event"))
    world.sim.on_done = heard.append
    world.run()
    assert heard == []


@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_what_a_start_wrote_and_said_stays_when_the_first_turn_fails(verdict: Commit) -> None:
    def start(context: Any) -> None:
        notes = context.store.table(NOTES)
        notes.put(f"start {notes.count('text') + 1}", Note("started"))
        context.log("actor.started")

    heard: list[int] = []
    world = World(
        fails_once(1, verdict),
        c={"start": say("a", "go")},
        a={"start": start},
        until_us=10,
    )
    world.sim.watch("actor.started", lambda now_us, _fields: heard.append(now_us))
    world.run()
    notes = world.sim.contexts["a"].store.table(NOTES)
    assert (notes.get("start 1"), notes.get("start 2")) == (Note("started"), Note("started"))
    assert heard == [0, 0]


def test_the_same_turn_in_full_when_it_commits() -> None:
    world = World(done, a={"start": write_old, "say": busy_turn}, c={"start": say("a", "go")}, b={})
    assert world.run() == [
        (0, "a", "go"),
        (0, "b", "sent"),
        (0, "b", "asked"),
        (5, "a", "timer", "turn"),
        (10, "a", "unanswered", "asked"),
    ]


def test_a_crash_begins_a_boot_and_a_failure_does_not() -> None:
    boots: dict[Commit, Any] = {}
    for verdict in (Commit.CRASHED, Commit.FAILED):
        trace = Trace()
        world = World(
            fails_once(2, verdict),
            a={
                "start": lambda c: c.set_timer("t", 7),
                "timer": lambda c, _: [say("b", "x")(c), c.set_timer("t", 7)],
            },
            b={},
            until_us=30,
        )
        stamps: list[int] = []
        world.sim.on_begin.append(
            lambda world=world, stamps=stamps: world.sim.at(  # type: ignore[misc]  # both are bound
                20, lambda: stamps.append(world.sim.contexts["a"].stamp_us - EPOCH_US)
            )
        )
        seen = world.run(recorder=trace)
        ids = [record[4].id for record in trace.kinds("message")]
        assert len(ids) == len(set(ids))
        starts = [record[2:5] for record in trace.kinds("start") if record[3] == "a"]
        boots[verdict] = (starts, [i >> SERIAL_BITS for i in ids], seen, stamps)
    starts, boots_of_ids, seen, stamps = boots[Commit.CRASHED]
    assert starts == [(0, "a", 0), (14, "a", 1)]
    assert boots_of_ids == [0, 1, 1]
    assert [entry[0] for entry in seen if entry[1] == "a"] == [7, 14, 7, 14], (
        "its clock starts anew"
    )
    assert stamps == [20], "the wall clock goes on"
    starts, boots_of_ids, seen, _ = boots[Commit.FAILED]
    assert starts == [(0, "a", 0), (14, "a", 0)]
    assert boots_of_ids == [0, 0, 0]
    assert [entry[0] for entry in seen if entry[1] == "a"] == [7, 14, 21, 28]


@pytest.mark.parametrize("verdict", [Commit.CRASHED, Commit.FAILED])
def test_questions_and_timers_of_before_are_gone_with_the_actor(verdict: Commit) -> None:
    def start(context: Any) -> None:
        if not context.store.table(NOTES).get("began"):
            context.request("b", Say("slow"), 50)
            context.set_timer("old", 40)
            context.set_timer("write", 5)
        else:
            context.set_timer("new", 60)

    def timer(context: Any, name: str) -> None:
        if name == "write":
            context.store.table(NOTES).put("began", Note(""))
            context.set_timer("crash", 5)

    trace = Trace()
    world = World(
        fails_once(2, verdict),
        {("b", "a"): lambda: 30},
        a={"start": start, "timer": timer},
        b={"say": replies()},
    )
    names = [entry[3] for entry in world.run(recorder=trace) if entry[2] == "timer"]
    assert names == ["write", "crash", "new"]
    assert len(trace.kinds("late")) == 1, "the answer finds nobody who asked"


def test_other_actors_don_t_notice_a_crash() -> None:
    world = World(
        fails_once(1, Commit.CRASHED, "b"),
        a={"start": lambda c: [c.set_timer("t", 9), asks(10)(c), say("b", "again")(c)]},
        b={"say": replies()},
    )
    assert world.run() == [
        (0, "b", "question"),
        (0, "b", "again"),
        (9, "a", "timer", "t"),
        (10, "a", "unanswered", "question"),
    ]


def test_the_hook_sees_who_wrote_what() -> None:
    calls: list[tuple[str, int]] = []

    def hook(context: ActorContext, writes: Sequence[Undo]) -> Commit:
        calls.append((context.name, len(writes)))
        return Commit.DONE

    World(
        hook,
        a={"start": say("b", "x")},
        b={"say": lambda c, _e: c.store.table(NOTES).put("k", Note("v"))},
    ).run()
    assert calls == [("b", 1)]


def test_messages_reach_their_wrappers_in_a_rebuilt_actor() -> None:
    count = [0]

    def wrapper(handler: Handler) -> Handler:
        def wrapped(context: Any, envelope: Envelope[Any]) -> Any:
            count[0] += 1
            return handler(context, envelope)

        return wrapped

    cell = make_cell(commit_hook=CrashHook(17))
    cell.wrap(GetGraphRun, wrapper)
    cell.on_done = lambda _: cell.finish()
    trace = Trace()
    cell.run(0, trace)
    assert count[0] == len(trace.bodies(GetGraphRun)) > 0
    assert trace.bodies(GraphRun)
    assert len(trace.bodies(RunGraphSession)) >= 1


def test_every_error_of_a_simulation_is_of_one_kind() -> None:
    for kind in (
        WouldSleepForeverError,
        UnhandledMessageError,
        UnknownActorError,
        ActorFailedError,
    ):
        assert issubclass(kind, SimulationError)
