"""Commits that fail, on every host that can let them: what a turn did never was, or nobody hears.

The hosts are the guarded simulator and the trio host: under a virtual clock, with turns in worker
threads, and over sockets. On a real clock no exact time is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit
from actors.commits import MEANWHILE
from actors.guarded import simulator
from actors.world import TrioWorld
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, Hosted, MakeHost, by_actor, whole_cell
from tests.actors.puppets import NOTES, Note, Say, asks, replies, say
from transports.envelope import SERIAL_BITS, Envelope
from transports.local import TcpTransport, UnixTransport

SPEED = 100.0  # ten milliseconds a second
RANKED = {"a": 0, "b": 1, "c": 2}


class Threads(TrioWorld):
    """A world whose actors' turns all run in worker threads."""

    def __init__(self, seed: int, cell: str) -> None:
        super().__init__(seed, cell, clock=None, speed=SPEED)

    def add(self, name: str, actor: Any, heard: bool = True) -> None:
        super().add(name, actor, heard)
        self.contexts[name].blocking = True


def sockets(kind: Callable[..., Any]) -> MakeHost:
    return lambda seed, cell: TrioWorld(seed, cell, transport=kind(RANKED), clock=None, speed=SPEED)


HOSTS: dict[str, MakeHost] = {
    "guarded": partial(simulator, guarded=True),
    "trio": TrioWorld,
    "threads": Threads,
    "tcp": sockets(TcpTransport),
}
EVERY = pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
FAILURES = [verdict for verdict in Commit if verdict is not Commit.DONE]
UNDONE = [Commit.FAILED, Commit.CRASHED]


def lets(nth: int, verdict: Commit, actor: str = "a") -> Callable[[str, bool], Commit | None]:
    """A hook that lets one turn of an actor, counted from 1, end so."""
    turns = [0]

    def hook(name: str, _wrote: bool) -> Commit | None:
        turns[0] += name == actor
        return verdict if name == actor and turns[0] == nth else None

    return hook


def play(
    host: MakeHost,
    hook: Callable[[str, bool], Commit | None],
    until_us: int = 20 * S,
    **puppets: Any,
) -> tuple[list[Any], Trace]:
    """What was seen, without times, and the log."""
    trace = Trace()
    world = Hosted(host, until_us=until_us, **puppets)
    world.sim.add_commit_hook(hook)
    return [entry[1:] for entry in world.run(0, trace)], trace


# One turn of each kind


def start(context: Any) -> None:
    context.store.table(NOTES).insert_unique("old", Note("old"))
    context.log("a.started")
    context.set_timer("tick", 3 * S)


def everything(context: Any, envelope: Envelope[Say]) -> None:
    """Do one of everything."""
    if envelope.body.text == "go":
        notes = context.store.table(NOTES)
        notes.put("new", Note("new"))
        notes.delete("old")
        context.send("b", Say("sent"))
        context.request("b", Say("asked"), S)
        context.set_timer("turn", S)
        context.cancel_timer("tick")
        context.log("turn.happened")
        context.done()


def said_to_a(*texts: str) -> dict[str, Any]:
    """An actor that says something to a: at once, then each two seconds."""

    def begin(context: Any) -> None:
        say("a", texts[0])(context)
        for number, text in enumerate(texts[1:], 1):
            context.set_timer(text, 2 * S * number)

    return {"start": begin, "timer": lambda context, text: say("a", text)(context)}


def turn_that_ends(host: MakeHost, verdict: Commit) -> tuple[list[Any], Trace, Any, list[str]]:
    heard: list[str] = []
    trace = Trace()
    world = Hosted(
        host, until_us=14 * S, a={"start": start, "say": everything}, b={}, c=said_to_a("go", "on")
    )
    world.sim.add_commit_hook(lets(1, verdict))
    world.sim.watch("turn.happened", lambda _now_us, _fields: heard.append("event"))
    world.sim.on_done = heard.append
    world.at(8 * S, world.sim.revive, "a", "medic")
    seen = [entry[1:] for entry in world.run(0, trace) if entry[1] != "c"]
    return seen, trace, world.sim, heard


@EVERY
def test_a_turn_whose_hooks_let_it_be_is_whole(host: MakeHost) -> None:
    seen, trace, sim, heard = turn_that_ends(host, Commit.DONE)
    assert sorted(seen) == sorted([
        ("a", "go"), ("b", "sent"), ("b", "asked"), ("a", "timer", "turn"),
        ("a", "unanswered", "asked"), ("a", "on"),
    ])  # fmt: skip
    assert heard == ["event", "a"]
    assert trace.kinds("undone") == trace.kinds("fault") == []
    assert set(sim.contexts["a"].store.snapshot()["notes"]) == {"new"}


@pytest.mark.parametrize("verdict", FAILURES)
@pytest.mark.parametrize("host", [*HOSTS.values(), sockets(UnixTransport)], ids=[*HOSTS, "unix"])
def test_a_turn_that_does_not_commit(host: MakeHost, verdict: Commit) -> None:
    seen, trace, sim, heard = turn_that_ends(host, verdict)
    # Nobody hears of it, and its own timers are those of its new start.
    assert [who for who, *_ in seen if who == "b"] == heard == []
    assert trace.events("turn.happened") == []
    assert trace.kinds("unanswered") == []
    assert [entry[2] for entry in seen if entry[1] == "timer"] == ["tick"]
    # What it wrote is gone, unless it died after its commit; a start writes "old" anew.
    kept = {"new", "old"} if verdict is Commit.SILENCED else {"old"}
    assert set(sim.contexts["a"].store.snapshot()["notes"]) == kept
    turn = next(record for record in trace.kinds("message") if record[4].body.text == "go")
    undone = [record[3:] for record in trace.kinds("undone")]
    assert undone == ([] if verdict is Commit.SILENCED else [("a", turn[0], verdict.value)])
    # It starts again at once, or is down until it is revived, and what comes meanwhile is lost.
    boots = [record[4] for record in trace.kinds("start") if record[3] == "a"]
    assert boots == [0, 0 if verdict is Commit.FAILED else 1]
    assert len(trace.events("a.started")) == 2
    dead = verdict in (Commit.KILLED, Commit.SILENCED)
    faults = [("a", verdict.value, "kill"), ("a", "medic", "start")] if dead else []
    assert [record[3:] for record in trace.kinds("fault")] == faults
    assert [record[4] for record in trace.kinds("drop")] == (["down"] if dead else [])
    assert (("a", "on") in seen) is not dead


@EVERY
@pytest.mark.parametrize("verdict", UNDONE)
def test_its_mail_is_read_by_the_actor_that_was_rebuilt(host: MakeHost, verdict: Commit) -> None:
    texts = [str(number) for number in range(10)]
    seen, _ = play(
        host,
        lets(3, verdict),
        until_us=5 * S,
        a={"say": lambda context, envelope: say("b", envelope.body.text)(context)},
        b={},
        c={"start": lambda context: [say("a", text)(context) for text in texts]},
    )
    assert [text for who, text in seen if who == "a"] == texts
    assert [text for who, text in seen if who == "b"] == [*texts[:2], *texts[3:]]


@EVERY
@pytest.mark.parametrize("verdict", UNDONE)
def test_questions_and_timers_of_before_are_gone_with_the_actor(
    host: MakeHost, verdict: Commit
) -> None:
    def begin(context: Any) -> None:
        if context.store.table(NOTES).get("began"):
            context.set_timer("new", 8 * S)
            return
        context.request("b", Say("slow"), 12 * S)
        context.set_timer("old", 9 * S)
        context.set_timer("write", 1 * S)

    def timer(context: Any, name: str) -> None:
        if name == "write":
            context.store.table(NOTES).put("began", Note(""))
            context.set_timer("bad", S)
        elif name == "new":
            context.done()

    waits: list[Envelope[Any]] = []

    def later(context: Any, envelope: Envelope[Say]) -> None:
        waits.append(envelope)
        context.set_timer("t", 4 * S)

    trace = Trace()
    world = Hosted(
        host,
        until_us=100 * S,
        a={"start": begin, "timer": timer},
        b={"say": later, "timer": lambda context, _: context.reply(waits[0], Say("answer"))},
    )
    world.sim.add_commit_hook(lets(2, verdict))
    world.sim.on_done = lambda _name: world.sim.finish()
    seen = [entry[1:] for entry in world.run(0, trace)]
    names = [entry[2] for entry in seen if entry[:2] == ("a", "timer")]
    assert names == ["write", "bad", "new"]
    assert len(trace.kinds("late")) == 1, "the answer finds nobody who asked"
    assert trace.kinds("unanswered") == []


@COMMITTING_HOST
def test_a_crash_begins_a_boot_and_its_clock_and_a_failure_does_not(host: MakeHost) -> None:
    acts: dict[str, Any] = {
        "start": lambda c: c.set_timer("t", 7),
        "timer": lambda c, _: [say("b", "x")(c), c.set_timer("t", 7)],
    }
    told = {}
    for verdict in UNDONE:
        trace = Trace()
        world = Hosted(host, until_us=30, a=acts, b={})
        world.sim.add_commit_hook(lets(2, verdict))
        seen = by_actor(world.run(0, trace), "a")
        ids = [record[4].id for record in trace.kinds("message")]
        assert ids == sorted(set(ids))
        starts = [record[2:5] for record in trace.kinds("start") if record[3] == "a"]
        told[verdict] = starts, [i >> SERIAL_BITS for i in ids], [entry[0] for entry in seen]
    failed, crashed = told[Commit.FAILED], told[Commit.CRASHED]
    assert failed == ([(0, "a", 0), (14, "a", 0)], [0, 0, 0], [7, 14, 21, 28])
    assert crashed == ([(0, "a", 0), (14, "a", 1)], [0, 1, 1], [7, 14, 7, 14])


# Hooks


@EVERY
def test_hooks_are_asked_after_each_turn_but_the_starts_and_told_whether_it_wrote(
    host: MakeHost,
) -> None:
    calls: list[tuple[str, bool]] = []

    def hook(name: str, wrote: bool) -> None:
        calls.append((name, wrote))

    def heard(context: Any, envelope: Envelope[Say]) -> None:
        if envelope.body.text == "write":
            context.store.table(NOTES).put("k", Note("v"))

    play(
        host,
        hook,
        until_us=5 * S,
        a={"start": start, "say": heard},
        c={"start": lambda c: [say("a", "read")(c), say("a", "write")(c)]},
    )
    assert calls == [("a", False), ("a", True), ("a", False)], "the last is its timer's"


@EVERY
def test_the_first_hook_that_says_something_counts_and_the_others_are_not_asked(
    host: MakeHost,
) -> None:
    asked: list[str] = []

    def second(name: str, _wrote: bool) -> Commit:
        asked.append(name)
        return Commit.DONE

    world = Hosted(host, until_us=3 * S, a={"say": replies()}, c={"start": asks(S, "a")})
    world.sim.add_commit_hook(lets(1, Commit.FAILED))
    world.sim.add_commit_hook(second)
    assert [entry[1:] for entry in world.run()] == [
        ("a", "question"),
        ("c", "unanswered", "question"),
    ]
    assert asked == ["c"]


@EVERY
@pytest.mark.parametrize("verdict", UNDONE)
def test_an_actor_may_fail_again_and_again(host: MakeHost, verdict: Commit) -> None:
    texts = [str(number) for number in range(12)]
    turns = [0]

    def hook(name: str, _wrote: bool) -> Commit | None:
        turns[0] += name == "a"
        return verdict if name == "a" and turns[0] % 3 else None

    seen, trace = play(
        host,
        hook,
        until_us=3 * S,
        a={"say": lambda context, envelope: say("b", envelope.body.text)(context)},
        b={},
        c={"start": lambda context: [say("a", text)(context) for text in texts]},
    )
    assert [text for who, text in seen if who == "b"] == texts[2::3]
    assert len(trace.kinds("undone")) == 8


@EVERY
def test_a_kill_at_a_commit_and_a_revival_at_once(host: MakeHost) -> None:
    heard = say("c", "heard")
    world = Hosted(host, until_us=8 * S, a={"say": lambda c, _: heard(c)}, c=said_to_a("1", "2"))

    def hook(name: str, _wrote: bool) -> Commit | None:
        if name == "a" and not killed:
            killed.append(name)
            world.sim.at(world.sim.now_us, lambda: world.sim.revive("a", "medic"))
            return Commit.KILLED
        return None

    killed: list[str] = []
    world.sim.add_commit_hook(hook)
    seen = [entry[1:] for entry in world.run() if entry[2] != "timer"]
    assert seen == [("a", "1"), ("a", "2"), ("c", "heard")]


@settings(max_examples=12, deadline=None)
@given(
    fates=st.lists(st.tuples(st.integers(1, 12), st.sampled_from(UNDONE)), min_size=1, max_size=4),
    victim=st.sampled_from(["server", "relay", "engine", "agent"]),
    seed=st.integers(0, 100),
)
def test_a_cell_of_real_actors_ends_on_trio_as_in_the_simulator(
    fates: list[tuple[int, Commit]], victim: str, seed: int
) -> None:
    def ending(host: MakeHost) -> Any:
        cell = whole_cell(host, seed)
        turns = [0]

        def hook(name: str, _wrote: bool) -> Commit | None:
            turns[0] += name == victim
            return dict(fates).get(turns[0]) if name == victim else None

        cell.add_commit_hook(hook)
        trace = Trace()
        cell.run(0, trace)
        undone = [record[2:4] for record in trace.kinds("undone")]
        starts = [record[2:] for record in trace.kinds("start")]
        ends = sorted(trace.events("run.terminal"), key=repr)
        return undone, starts, ends, cell.now_us

    assert ending(TrioWorld) == ending(HOSTS["guarded"])


# Stores that can't be written


@EVERY
def test_an_actor_sees_whether_its_store_can_be_written_and_the_log_has_each_change(
    host: MakeHost,
) -> None:
    saw: list[bool] = []
    world = Hosted(
        host,
        until_us=36 * S,
        a={"say": lambda context, _: saw.append(context.store.writable)},
        c={
            "start": lambda context: [context.set_timer(str(n), n * 16 * S) for n in range(3)],
            "timer": lambda context, name: say("a", name)(context),
        },
    )
    for at_us, writable in ((8 * S, False), (8 * S, False), (24 * S, True)):
        world.at(at_us, world.sim.set_writable, "a", "full", writable)
    for _ in range(2):
        trace = Trace()
        saw.clear()
        world.run(0, trace)
        assert saw == [True, False, True]
        assert [record[3:] for record in trace.kinds("fault")] == [
            ("a", "full", "unwritable"),
            ("a", "full", "writable"),
        ]


def test_a_turn_in_a_thread_sees_no_change_before_its_end() -> None:
    saw: list[bool] = []
    trace = Trace()

    def heard(context: Any, _envelope: Envelope[Say]) -> None:
        saw.append(context.store.writable)
        trio.from_thread.run_sync(world.sim.set_writable, "a", "full", False)
        saw.append(context.store.writable)

    world = Hosted(Threads, until_us=6 * S, a={"say": heard}, c=said_to_a("1", "2"))
    world.run(0, trace)
    assert saw == [True, True, False, False]
    assert [record[1] for record in trace.records if record[3] == "a"][1:3] == ["message", "fault"]


@pytest.mark.parametrize("raises", [False, True])
def test_the_log_says_that_a_turn_never_was_whose_actor_was_killed_during_it(raises: bool) -> None:
    trace = Trace()

    def heard(_context: Any, _envelope: Envelope[Say]) -> None:
        trio.from_thread.run_sync(world.sim.kill, "a", "killer")
        if raises:
            raise ValueError("nobody hears it")

    world = Hosted(Threads, until_us=3 * S, a={"say": heard}, c=said_to_a("1"))
    world.sim.add_commit_hook(lets(1, Commit.FAILED))
    world.run(0, trace)
    [turn] = trace.kinds("message")
    assert [record[3:] for record in trace.kinds("undone")] == [("a", turn[0], MEANWHILE)]
    assert len(trace.kinds("start")) == 2, "it stays dead"
