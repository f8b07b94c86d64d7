"""Failed write: a commit fails once."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from actors.actor import Commit
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost, whole_cell
from tests.actors.puppets import NOTES, Note, World, say
from tests.contracts.fault import Chance, CommitContract, FakeWorld
from transports.faults.failed_write import FailedWrite
from transports.units import Duration


class TestFailedWrite(CommitContract):
    """The suite on failed write."""

    kind = FailedWrite

    def test_only_turns_that_write_count(self) -> None:
        world = FakeWorld()
        self.works(world=world, nth=1)
        assert world.hooks[0]("relay", False) is None
        assert world.hooks[0]("relay", True) is Commit.FAILED

    def test_the_third_in_a_row_makes_the_store_unwritable_for_a_second(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, **cast(dict[str, Any], {"for": "10s"}))
        (hook,) = world.hooks
        hook("relay", True)
        hook("relay", True)
        world.now_us = 10 * S
        hook("relay", True)  # it works again
        world.now_us = 9 * S
        hook("relay", True)
        hook("relay", True)
        assert world.done == []
        hook("relay", False)  # no write
        hook("relay", True)
        hook("relay", True)
        assert [what[:2] for what in world.done] == [(9 * S, "full")]
        world.until(20 * S)
        assert [what[:2] for what in world.done] == [(9 * S, "full"), (10 * S, "writable")]
        assert working.healed_us == 10 * S
        working.start(Chance())
        world.now_us = 0
        hook("relay", True)
        hook("relay", True)
        assert len(world.done) == 2, "a new replication counts anew"


@COMMITTING_HOST
@pytest.mark.parametrize(("actor", "at_s"), [("relay", 5), ("engine", 30), ("agent", 0), ("*", 0)])
def test_a_disk_that_takes_nothing_for_minutes_lets_nobody_turn_at_one_instant(
    host: MakeHost, actor: str, at_s: int
) -> None:
    cell = whole_cell(host, 3)
    turns: Counter[int] = Counter()

    def count(_name: str, _wrote: bool) -> None:
        turns[cell.now_us] += 1
        assert turns[cell.now_us] < 60, "they go round"

    cell.add_commit_hook(count)
    fault = FailedWrite(name="it", actor=actor, at=Duration(at_s * S), lasts=Duration(180 * S))
    working = fault.at_work()
    working.attach(cell, list(cell.contexts))
    cell.on_begin.append(lambda: working.start(cell.stream("faults/it")))
    cell.run(0)
    assert working.fired > 0


@COMMITTING_HOST
def test_the_turn_never_was_and_the_same_boot_goes_on(host: MakeHost) -> None:
    kept: list[bool] = []

    def heard(context: Any, envelope: Any) -> None:
        context.store.table(NOTES).put("n", Note(envelope.body.text))
        say("a", f"wrote {envelope.body.text}")(context)

    world = World(
        host=host,
        faults=[FailedWrite(name="bad sector", actor="b", nth=1)],
        a={"start": lambda c: [say("b", "one")(c), say("b", "two")(c)]},
        b={
            "start": lambda c: kept.append(c.store.table(NOTES).get("n") is not None),
            "say": heard,
        },
    )
    trace = Trace()
    seen = [entry[2] for entry in world.run(0, trace) if entry[1] == "a"]
    assert seen == ["wrote two"]
    assert kept == [False, False]
    assert [record[3] for record in trace.kinds("start") if record[3] == "b"] == ["b", "b"]
