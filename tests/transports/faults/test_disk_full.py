"""Disk full: nothing can be written while it lasts."""

from __future__ import annotations

from typing import Any, cast

from actors.actor import Commit
from tests.actors.harness import S, Trace
from tests.actors.hosts import COMMITTING_HOST, MakeHost
from tests.actors.puppets import NOTES, Note, World, say
from tests.contracts.fault import CommitContract, FakeWorld
from transports.faults.disk_full import DiskFull
from transports.units import Duration


class TestDiskFull(CommitContract):
    """The suite on disk full."""

    kind = DiskFull

    def test_the_store_says_so_while_it_lasts_and_reads_go_on(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, **cast(dict[str, Any], {"for": "20s"}))
        assert world.hooks[0]("relay", False) is None
        assert world.hooks[0]("relay", True) is Commit.FAILED
        world.until(100 * S)
        assert world.done == [(0, "full", "relay"), (20 * S, "writable", "relay")]
        assert working.healed_us == 20 * S


@COMMITTING_HOST
def test_writes_fail_until_it_ends(host: MakeHost) -> None:
    said: list[tuple[int, bool]] = []

    def heard(context: Any, envelope: Any) -> None:
        said.append((context.now_us, context.store.writable))
        if envelope.body.text != "read":
            context.store.table(NOTES).put("n", Note(envelope.body.text))
        say("a", envelope.body.text)(context)

    def timer(context: Any, name: str) -> None:
        say("b", name)(context)

    full = DiskFull(name="full", actor="b", at=Duration(1 * S), lasts=Duration(9 * S))
    times = {"one": 2 * S, "read": 3 * S, "two": 4 * S, "three": 10 * S}
    world = World(
        host=host,
        faults=[full],
        a={"start": lambda c: [c.set_timer(*each) for each in times.items()], "timer": timer},
        b={"say": heard},
    )
    trace = Trace()
    heard_of = [
        entry[2] for entry in world.run(0, trace) if entry[1] == "a" and entry[2] != "timer"
    ]
    assert heard_of == ["read", "three"]
    assert said == [(2 * S, True), (3 * S, False), (4 * S, False), (10 * S, True)]
    assert [record[2:] for record in trace.kinds("fault")] == [
        (2 * S, "b", "full", "unwritable"),
        (10 * S, "b", "full", "writable"),
    ]
