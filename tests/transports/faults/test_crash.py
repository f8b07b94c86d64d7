"""Crash: an actor dies at a commit, before or after it."""

from __future__ import annotations

from typing import Any

from actors.actor import Commit
from actors.chance import Durations
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import NOTES, Note, World, say
from tests.contracts.fault import CommitContract, FakeWorld
from transports.faults.crash import Crash


class TestCrash(CommitContract):
    """The suite on crash."""

    kind = Crash

    def test_it_dies_and_is_started_again(self) -> None:
        for point, commit in (("before", Commit.KILLED), ("after", Commit.SILENCED)):
            world = FakeWorld()
            self.works(world=world, point=point, down="20s")
            world.now_us = 3 * S
            assert world.hooks[0]("relay", False) is commit, "a turn that only reads counts too"
            world.until(100 * S)
            assert world.done == [(23 * S, "revive", "relay")]


def story(host: MakeHost, point: Any) -> tuple[list[Any], list[bool], Trace]:
    """B writes what it hears and answers; it dies at the first commit of that, for ten seconds."""
    kept: list[bool] = []

    def heard(context: Any, envelope: Any) -> None:
        context.store.table(NOTES).put("n", Note(envelope.body.text))
        say("a", "done")(context)

    world = World(
        host=host,
        faults=[Crash(name="crash", actor="b", point=point, nth=1, down=Durations.parse("10s"))],
        a={
            "start": lambda c: [say("b", "first")(c), c.set_timer("15", 15 * S)],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={
            "start": lambda c: kept.append(c.store.table(NOTES).get("n") is not None),
            "say": heard,
        },
    )
    trace = Trace()
    seen = [entry for entry in world.run(0, trace) if entry[1] == "a" and entry[2] != "timer"]
    return seen, kept, trace


@COMMITTING_HOST
def test_before_the_commit_nothing_is_left(host: MakeHost) -> None:
    seen, kept, trace = story(host, "before")
    assert kept == [False, False]
    assert seen == [(15 * S, "a", "done")]
    assert [record[5] for record in trace.kinds("undone")] == [Commit.KILLED.value]


@COMMITTING_HOST
def test_after_the_commit_what_was_written_stays_and_nothing_was_sent(host: MakeHost) -> None:
    seen, kept, trace = story(host, "after")
    assert kept == [False, True]
    assert seen == [(15 * S, "a", "done")]
    assert trace.kinds("undone") == [], "the turn was, though nobody heard of it"
