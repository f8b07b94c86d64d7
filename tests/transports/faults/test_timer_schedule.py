"""Timer schedule: timers come as late as a list has it, and never early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.actors.harness import S
from tests.actors.puppets import Say, World
from tests.contracts.fault import ActorFaultContract, Chance, FakeWorld
from transports.faults.timer_schedule import TimerSchedule

LATE = {"poll": [3 * S, 7 * S]}


class TestTimerSchedule(ActorFaultContract):
    """The suite on timer_schedule."""

    kind = TimerSchedule
    fields: Mapping[str, Any] = {
        "actor": "relay",
        "timers_us": LATE,
        "end_us": 20 * S,
        "healed_us": 7,
    }

    def test_each_comes_at_its_next_time_and_never_before_it_is_due(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, timeouts_us=[5 * S])
        assert world.keepers == {"relay": working}
        assert working.next_us("poll", 2 * S) == 3 * S
        working.came("poll")
        assert working.next_us("poll", 8 * S) == 8 * S
        working.came("poll")
        assert working.next_us("poll", 8 * S) == 20 * S + 1, "behind the log"
        assert working.next_us("nap", 21 * S) == 21 * S
        assert working.next_us(77, 1 * S) == 5 * S
        working.came(77)
        assert working.next_us(78, 6 * S) == 20 * S + 1
        assert working.fired == 3
        assert working.healed_us == 7
        assert self.works(healed_us=None).healed_us is None
        working.start(Chance())
        assert working.next_us("poll", 0) == 3 * S

    @pytest.mark.parametrize("timers", [{"poll": [-1]}, {"poll": 1}, ["poll"]])
    def test_what_is_no_list_of_times_is_refused(self, timers: Any) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(timers_us=timers)


def played(fault: TimerSchedule, until_us: int, **puppets: Any) -> list[tuple[Any, ...]]:
    return World(None, {}, until_us, faults=[fault], **puppets).run()


def test_a_timer_is_late_and_one_that_was_taken_back_never_comes() -> None:
    fault = TimerSchedule(
        name="late", actor="a", timers_us={"one": (4 * S,), "two": (9 * S,)}, end_us=30 * S
    )

    def start(context: Any) -> None:
        context.set_timer("one", 2 * S)
        context.set_timer("two", 3 * S)
        context.set_timer("three", 5 * S)

    seen = played(fault, 60 * S, a={"start": start, "timer": lambda c, _: c.cancel_timer("two")})
    assert seen == [(4 * S, "a", "timer", "one"), (30 * S + 1, "a", "timer", "three")]


def test_a_repeated_question_keeps_its_beat_though_each_is_late() -> None:
    times = (11 * S, 20 * S, 34 * S)
    fault = TimerSchedule(name="late", actor="a", timers_us={"t": times}, end_us=35 * S)
    start = lambda context: context.request_every("t", 10 * S, "b", Say("x"), 60 * S)  # noqa: E731  one line
    seen = played(fault, 45 * S, a={"start": start}, b={})
    assert seen == [(at, "b", "x") for at in (*times, 40 * S)]


def test_a_question_s_time_is_up_late_and_an_answer_meanwhile_counts() -> None:
    fault = TimerSchedule(name="late", actor="a", timers_us={}, timeouts_us=(9 * S,), end_us=9 * S)

    def start(context: Any) -> None:
        context.request("b", Say("first"), 2 * S)
        context.request("b", Say("second"), 3 * S)

    def answer(_context: Any, envelope: Any) -> Say | None:
        return Say("answer") if envelope.body.text == "first" else None

    links = {("b", "a"): lambda: 5 * S}
    world = World(None, links, 60 * S, faults=[fault], a={"start": start}, b={"say": answer})
    assert [what for what in world.run() if what[1] == "a"] == [
        (5 * S, "a", "answer"),
        (9 * S, "a", "unanswered", "second"),
    ]


def test_two_questions_whose_time_is_up_come_each_at_its_own_time() -> None:
    fault = TimerSchedule(
        name="late", actor="a", timers_us={}, timeouts_us=(9 * S, 12 * S), end_us=20 * S
    )

    def start(context: Any) -> None:
        for number in range(3):
            context.request("b", Say(str(number)), (2 + number) * S)

    assert played(fault, 60 * S, a={"start": start}, b={"say": lambda _context, _envelope: None})[
        -3:
    ] == [
        (9 * S, "a", "unanswered", "0"),
        (12 * S, "a", "unanswered", "1"),
        (20 * S + 1, "a", "unanswered", "2"),
    ]


@pytest.mark.parametrize("clock_stops", [True, False])
def test_what_comes_due_in_a_sleep_takes_one_time_of_the_list(clock_stops: bool) -> None:
    late = TimerSchedule(
        name="late", actor="a", timers_us={"t": (10 * S, 25 * S, 26 * S)}, end_us=30 * S
    )
    again = {
        "start": lambda context: context.set_timer("t", 2 * S),
        "timer": lambda context, _timer: context.set_timer("t", S),
    }
    world = World(None, {}, 27 * S, faults=[late], a=again)
    sim: Any = world.sim
    sim.on_begin.append(lambda: sim.at(5 * S, lambda: sim.suspend("a", "lid", clock_stops)))
    sim.on_begin.append(lambda: sim.at(15 * S, lambda: sim.resume("a", "lid")))
    slept = 10 * S if clock_stops else 0
    assert [what[0] + slept for what in world.run()] == [15 * S, 25 * S, 26 * S]


def test_what_is_put_off_is_not_moved_by_a_sleep() -> None:
    late = TimerSchedule(name="late", actor="a", timers_us={"t": (20 * S,)}, end_us=30 * S)
    world = World(
        None, {}, 60 * S, faults=[late], a={"start": lambda context: context.set_timer("t", 2 * S)}
    )
    sim: Any = world.sim
    sim.on_begin.append(lambda: sim.at(5 * S, lambda: sim.suspend("a", "lid", True)))
    sim.on_begin.append(lambda: sim.at(15 * S, lambda: sim.resume("a", "lid")))
    assert world.run() == [(10 * S, "a", "timer", "t")], "20 s, of which it slept ten"
