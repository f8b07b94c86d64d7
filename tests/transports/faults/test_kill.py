"""Kill: an actor is gone, and comes back in a new boot."""

from __future__ import annotations

from typing import Any

from actors.chance import Durations
from tests.actors.harness import S, Trace
from tests.actors.puppets import NOTES, Note, World, asks, say
from tests.contracts.fault import FakeWorld, StrikingContract
from transports.faults.kill import Kill
from transports.units import Duration


class TestKill(StrikingContract):
    """The suite on kill."""

    kind = Kill
    act = "kill"

    def test_it_is_started_again_after_its_time(self) -> None:
        world = FakeWorld()
        self.works(world=world, at="1s", down="20s")
        world.until(100 * S)
        assert world.done == [(1 * S, "kill", "relay"), (21 * S, "revive", "relay")]


def test_for_is_how_long_it_goes_on() -> None:
    world = FakeWorld()
    fields: dict[str, Any] = {"at": "10s", "every": "30s", "for": "1m"}
    working = TestKill().works(world=world, **fields)
    world.until(1_000 * S)
    assert [at for at, act, _ in world.done if act == "kill"] == [10 * S, 40 * S]
    assert working.healed_us == 40 * S


def kill(at_s: int, down: str) -> Kill:
    return Kill(name="killer", actor="b", at=Duration(at_s * S), down=Durations.parse(down))


def test_what_comes_while_it_is_down_is_lost_and_what_it_sent_arrives() -> None:
    world = World(
        faults=[kill(5, "10s")],
        links={("b", "a"): lambda: 3 * S},
        a={
            "start": lambda c: [c.set_timer(str(at), at * S) for at in (4, 6, 15)],
            "timer": lambda c, name: say("b", name)(c),
        },
        b={"say": lambda c, envelope: say("a", f"heard {envelope.body.text}")(c)},
    )
    trace = Trace()
    told = [entry for entry in world.run(0, trace) if entry[2] != "timer"]
    assert told == [
        (4 * S, "b", "4"),
        (7 * S, "a", "heard 4"),  # sent before it died
        (0, "b", "15"),  # its clock has begun anew
        (18 * S, "a", "heard 15"),
    ]
    assert [record[4] for record in trace.kinds("drop")] == ["down"]
    assert [record[2:] for record in trace.kinds("fault")] == [
        (5 * S, "b", "killer", "kill"),
        (15 * S, "b", "killer", "start"),
    ]


def test_timers_and_questions_die_with_it_and_the_store_stays() -> None:
    kept: list[bool] = []

    def start(context: object) -> None:
        table = context.store.table(NOTES)  # type: ignore[attr-defined]  # a context
        kept.append(table.get("n") is not None)
        table.put("n", Note("here"))
        if len(kept) == 1:
            context.set_timer("never", 8 * S)  # type: ignore[attr-defined]  # likewise
            asks(8 * S, "a")(context)

    world = World(faults=[kill(5, "1s")], a={}, b={"start": start})
    assert [entry for entry in world.run() if entry[1] == "b"] == []
    assert kept == [False, True]
