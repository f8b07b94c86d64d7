"""Failed write: a commit fails once."""

from __future__ import annotations

from typing import Any

from actors.actor import Commit
from tests.actors.harness import Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import NOTES, Note, World, say
from tests.contracts.fault import CommitContract, FakeWorld
from transports.faults.failed_write import FailedWrite


class TestFailedWrite(CommitContract):
    """The suite on failed write."""

    kind = FailedWrite

    def test_only_turns_that_write_count(self) -> None:
        world = FakeWorld()
        self.works(world=world, nth=1)
        assert world.hooks[0]("relay", False) is None
        assert world.hooks[0]("relay", True) is Commit.FAILED


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
