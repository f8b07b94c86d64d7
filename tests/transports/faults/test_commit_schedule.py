"""Commit schedule: the turns of a list fail, and those alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from actors.actor import Commit
from tests.actors.harness import S, Trace
from tests.actors.puppets import NOTES, Note, World
from tests.contracts.fault import ActorFaultContract, Chance, FakeWorld
from transports.faults.commit_schedule import CommitSchedule


class TestCommitSchedule(ActorFaultContract):
    """The suite on commit_schedule."""

    kind = CommitSchedule
    fields: Mapping[str, Any] = {"actor": "relay", "failed": [2, 3]}

    def test_the_turns_of_its_list_fail_whether_they_write_or_not(self) -> None:
        world = FakeWorld()
        working = self.works(world=world)
        (hook,) = world.hooks
        assert [hook("relay", wrote) for wrote in (True, False, True, True)] == [
            None,
            Commit.FAILED,
            Commit.FAILED,
            None,
        ]
        assert [hook("server", True) for _ in range(3)] == [None] * 3, "not its victim"
        assert working.fired == 2
        assert working.healed_us == 0
        working.start(Chance())
        assert [hook("relay", True) for _ in range(2)] == [None, Commit.FAILED]

    def test_the_store_is_full_from_the_first_turn_that_fails_for_it(self) -> None:
        world = FakeWorld()
        self.works(world=world, failed=[1, 2], full_us=[[5 * S, 9 * S]])
        (hook,) = world.hooks
        hook("relay", True)
        assert world.done == [], "it failed before"
        world.until(6 * S)
        hook("relay", True)
        world.until(20 * S)
        assert [(at, act) for at, act, _ in world.done] == [(6 * S, "full"), (9 * S, "writable")]

    @pytest.mark.parametrize("fields", [{"failed": [0]}, {"failed": 1}, {"full_us": [[1]]}])
    def test_what_is_no_list_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(**fields)


def test_a_turn_that_fails_leaves_nothing_and_a_start_is_no_turn() -> None:
    def tick(context: Any, _timer: str) -> None:
        notes = context.store.table(NOTES)
        written = notes.get("k")
        notes.put("k", Note("x" if written is None else written.text + "x"))
        context.set_timer("t", S)

    trace = Trace()
    fault = CommitSchedule(name="it", actor="a", failed=(2, 4), full_us=((2 * S, 3 * S),))
    world = World(
        faults=[fault],
        until_us=7 * S,
        a={"start": lambda context: context.set_timer("t", S), "timer": tick},
    )
    seen = world.run(0, trace)
    assert [at // S for at, *_ in seen] == [1, 2, 3, 4, 5, 6]
    assert [record[2] // S for record in trace.kinds("undone")] == [2, 4]
    note = world.sim.contexts["a"].store.table(NOTES).get("k")
    assert note == Note("xxxx")
    assert [record[2:] for record in trace.kinds("fault")] == [
        (2 * S, "a", "it", "unwritable"),
        (3 * S, "a", "it", "writable"),
    ]
