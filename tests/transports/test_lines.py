"""Connections as a model: what breaks them, what that loses, and when they are there again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.actor import Commit
from actors.chance import Durations, Sizes
from actors.guarded import simulator
from tests.actors.harness import S, Trace
from tests.actors.puppets import Say, World, asks, say
from transports.connection import Timings
from transports.envelope import Envelope
from transports.faults.black_hole import BlackHole
from transports.faults.byte_fault import ByteFault, Piece, Site, Stage, Step
from transports.faults.close_after import CloseAfter
from transports.faults.corrupt import Corrupt
from transports.faults.half_close import HalfClose
from transports.faults.reorder import Reorder
from transports.faults.reset import Reset
from transports.faults.slice import Slice
from transports.faults.throttle import Throttle
from transports.faults.truncate import Truncate
from transports.frames import pack
from transports.lines import QUEUE_LIMIT
from transports.units import Duration, Size
from transports.wire import WireCodec

MS = S // 1_000
TIMINGS = Timings()


def both(at_us: int) -> dict[str, Any]:
    """Two puppets that say "there" and "back" at a time."""

    def at(target: str, text: str) -> dict[str, Any]:
        return {
            "start": lambda context: context.set_timer("t", at_us),
            "timer": lambda context, _timer: say(target, text)(context),
        }

    return {"a": at("b", "back"), "b": at("a", "there")}


def every(period_us: int, target: str = "a") -> dict[str, Any]:
    """A puppet that says the time in seconds, again and again."""

    def tick(context: Any, _timer: str = "t") -> None:
        context.set_timer("t", period_us)
        if context.now_us:
            say(target, f"{context.now_us / S:g}")(context)

    return {"start": tick, "timer": tick}


def played(world: World) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What puppets heard, and what a log has of losses, as (time, what lost it, text)."""
    trace = Trace()
    heard = [one for one in world.run(0, trace) if len(one) == 3]
    drops = [record for record in trace.records if record[1] == "drop"]
    return heard, [(drop[2], drop[4], drop[5].body.text) for drop in drops]


def at_1(*texts: str) -> dict[str, Any]:
    """A puppet that says texts to a, all after a second."""
    return {
        "start": lambda context: context.set_timer("t", S),
        "timer": lambda context, _timer: [say("a", text)(context) for text in texts],
    }


def ends(world: World) -> list[float]:
    """When connections were ended by faults, in seconds."""
    trace = Trace()
    world.run(0, trace)
    return [record[2] / S for record in trace.records if record[1] == "fault"]


LATE = {("a", "b"): lambda: 3 * S, ("b", "a"): lambda: 3 * S}


# What is under way


def test_a_reset_loses_what_is_under_way_both_ways() -> None:
    world = World(faults=[Reset(name="cut", at=Duration(4 * S), nth=1)], links=LATE, **both(2 * S))
    heard, lost = played(world)
    assert heard == []
    assert sorted(lost) == [(4 * S, "cut", "back"), (4 * S, "cut", "there")]
    assert world.faults[0].healed_us == 4 * S


@pytest.mark.parametrize("kind", [HalfClose, CloseAfter])
def test_where_one_way_ends_what_came_before_on_it_arrives(
    kind: Callable[..., ByteFault],
) -> None:
    cut = kind(name="cut", source="b", at=Duration(4 * S), nth=1)
    heard, lost = played(World(faults=[cut], links=LATE, **both(2 * S)))
    assert heard == [(5 * S, "a", "there")]
    assert lost == [(4 * S, "cut", "back")]


def test_a_truncated_message_is_lost_and_what_came_before_it_arrives() -> None:
    cut = Truncate(name="cut", source="b", chunk=2, nth=1)
    world = World(
        faults=[cut],
        links=LATE,
        a={},
        b=at_1("one", "two", "three"),
    )
    heard, lost = played(world)
    assert heard == [(4 * S, "a", "one")]
    assert {text: fault for _, fault, text in lost} == {"two": "cut", "three": "disconnected"}


@pytest.mark.parametrize("fault", [Throttle(rate=Size(5)), Slice(size=Sizes.parse("2B"))])
def test_what_is_under_way_when_stages_come_is_not_held_up(fault: ByteFault) -> None:
    late = type(fault)(**{f: getattr(fault, f) for f in fault.__struct_fields__} | {"at": 4 * S})
    heard, lost = played(World(faults=[late], links=LATE, **both(2 * S)))
    assert (sorted(heard), lost) == ([(5 * S, "a", "there"), (5 * S, "b", "back")], [])


# Broken and joined again


def test_while_there_is_no_connection_messages_are_lost_and_the_next_comes_soon() -> None:
    world = World(
        faults=[Reset(name="cut", at=Duration(2 * S), nth=1)],
        a={},
        b=every(50 * MS),
        until_us=4 * S,
    )
    heard, lost = played(world)
    gone = [at_us for at_us, fault, _ in lost if fault == "disconnected"]
    assert len(gone) == len(lost)
    assert min(gone) >= 2 * S
    back_us = min(at_us for at_us, *_ in heard if at_us > 2 * S)
    first_us = round(TIMINGS.retry_first_s * S)
    assert 2 * S + first_us // 2 <= back_us <= 2 * S + first_us + 50 * MS
    times = [at_us for at_us, *_ in heard]
    assert sorted(times + gone) == [50 * MS * n for n in range(1, 80)], "each arrives or is lost"


def test_who_is_cut_again_and_again_waits_twice_as_long_each_time_up_to_a_limit() -> None:
    always = Reset(at=Duration(S), source="b")
    times = ends(World(faults=[always], a={}, b=every(100 * MS), until_us=300 * S))
    pauses = [later - at for at, later in pairwise(times)]
    limits = [min(TIMINGS.retry_first_s * 2**n, TIMINGS.retry_limit_s) for n in range(len(pauses))]
    assert len(pauses) > 10
    assert limits[-1] == TIMINGS.retry_limit_s
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(pauses, limits, strict=True))


def test_after_a_connection_that_has_lasted_the_pauses_begin_anew() -> None:
    twice = [
        Reset(name="one", at=Duration(S), lasts=Duration(20 * S), source="b"),
        Reset(name="two", at=Duration(100 * S), nth=1),
    ]
    world = World(faults=twice, a={}, b=every(100 * MS), until_us=102 * S)
    heard, _ = played(world)
    back_us = min(at_us for at_us, *_ in heard if at_us > 100 * S)
    assert back_us <= round(100.6 * S)


def test_a_question_that_a_broken_connection_loses_is_unanswered() -> None:
    world = World(
        faults=[Reset(at=Duration(S), nth=1)],
        links=LATE,
        a={},
        b={"start": asks(10 * S, "a")},
    )
    assert world.run() == [(10 * S, "b", "unanswered", "question")]


# Silence


def test_silence_ends_a_connection_after_35_s_and_greetings_are_not_heard_either() -> None:
    hole = BlackHole(name="hole", source="b", at=Duration(S), lasts=Duration(99 * S))
    world = World(faults=[hole], a={}, b=every(S), until_us=140 * S)
    times = ends(world)
    assert times[0] == 1 + TIMINGS.silence_s
    pauses = [later - at for at, later in pairwise(times)]
    assert all(pause > TIMINGS.handshake_s for pause in pauses), "as long as a greeting may take"
    heard, lost = played(world)
    assert {fault for at_us, fault, _ in lost if at_us < 36 * S} == {"hole"}
    assert {fault for at_us, fault, _ in lost if at_us > 36 * S} == {"disconnected"}
    assert heard[-1][0] >= 138 * S


def test_a_hole_that_heals_before_leaves_a_gap_and_the_connection() -> None:
    hole = BlackHole(name="hole", source="b", at=Duration(1500 * MS), lasts=Duration(30 * S))
    world = World(faults=[hole], a={}, b=every(S), until_us=40 * S)
    assert ends(world) == []
    heard, lost = played(world)
    assert [text for *_, text in heard] == ["1", *map(str, range(32, 40))]
    assert len(lost) == fired(world) == 30


def fired(world: World) -> int:
    """How often the world's fault fired."""
    return world.faults[0].fired


def test_a_hole_on_the_way_back_is_noticed_too_and_closes_at_its_time() -> None:
    back = BlackHole(source="a", at=Duration(S))
    assert ends(World(faults=[back], a={}, b=every(S), until_us=40 * S)) == [36.0]
    closing = BlackHole(source="b", at=Duration(S), close=Duration(5 * S))
    assert ends(World(faults=[closing], a={}, b=every(S), until_us=7 * S))[0] == 6.0


# Time


def size_bytes(text: str) -> int:
    """What the first messages of `b` take on the wire."""
    codec = WireCodec([Say])
    return len(pack(codec.encode(Envelope(1, "b", "a", 0, 1, Say(text)))))


def test_a_throttle_lets_one_frame_pass_after_the_other() -> None:
    slow = Throttle(source="b", rate=Size(10))
    world = World(
        faults=[slow],
        a={},
        b=at_1("x", "y"),
    )
    (one, other), lost = played(world)
    assert lost == []
    frame_s = size_bytes("x") / 10
    assert [at_us / S - 1 for at_us, *_ in (one, other)] == pytest.approx([frame_s, 2 * frame_s])


def test_what_a_throttle_holds_goes_on_at_once_when_it_heals() -> None:
    slow = Throttle(source="b", rate=Size(1), lasts=Duration(20 * S))
    world = World(
        faults=[slow],
        links=LATE,
        a={},
        b={
            "start": lambda c: [c.set_timer(t, 19 * S) for t in "xy"],
            "timer": lambda c, t: say("a", t)(c),
        },
    )
    assert played(world) == ([(22 * S, "a", "x"), (22 * S, "a", "y")], [])


def test_a_frame_that_takes_longer_than_a_minute_ends_the_connection() -> None:
    slow = Throttle(name="slow", source="b", rate=Size(1))
    world = World(faults=[slow], a={}, b=at_1("x" * 100), until_us=90 * S)
    heard, lost = played(world)
    assert heard == []
    ((at_us, fault, _),) = lost
    assert fault == "slow"
    assert 61 * S <= at_us <= 63 * S


def test_what_waits_for_a_throttle_is_bounded() -> None:
    slow = Throttle(source="b", rate=Size(100))
    count = QUEUE_LIMIT + 20
    world = World(
        faults=[slow],
        a={},
        b=at_1(*map(str, range(count))),
        until_us=3_600 * S,
    )
    heard, lost = played(world)
    assert [text for *_, text in lost] == [str(n) for n in range(QUEUE_LIMIT, count)]
    assert {fault for _, fault, _ in lost} == {"queue full"}
    assert [text for *_, text in heard] == [str(n) for n in range(QUEUE_LIMIT)]


def test_long_latency_fills_no_queue() -> None:
    count = 2 * QUEUE_LIMIT
    world = World(
        faults=[Reset(at=Duration(90 * S))],
        links=LATE,
        a={},
        b=at_1(*map(str, range(count))),
    )
    heard, lost = played(world)
    assert (len(heard), lost) == (count, [])


def test_slices_come_with_their_pauses() -> None:
    cut = Slice(source="b", size=Sizes.parse("1B"), pause=Durations.parse("1s"))
    world = World(faults=[cut], a={}, b=at_1("x"))
    ((at_us, *_),), _ = played(world)
    assert at_us == size_bytes("x") * S, "a pause of a second between two of its bytes"


# Bytes that change


class Change(ByteFault, frozen=True, kw_only=True):
    """Replaces bytes of the first frame."""

    before: bytes
    after: bytes

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        return Changing(site, self)


class Changing(Stage):
    """A `Change` at work."""

    def __init__(self, site: Site, fault: Change) -> None:
        super().__init__(site)
        self.fault = fault
        self.left = 1

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Replace them."""
        if self.left:
            self.left = 0
            self.fire()
            data = data.replace(self.fault.before, self.fault.after)
        yield Piece(data, at_us)


def changed(before: bytes, after: bytes, until_us: int = 100 * S) -> World:
    """What b says while one frame of it is changed."""
    change = Change(name="change", source="b", before=before, after=after, nth=1)
    return World(faults=[change], a={}, b=every(10 * S), until_us=until_us)


@pytest.mark.parametrize(
    ("before", "after"), [(b"10", b"18"), (b"text", b"tixt"), (b"\xa1a", b"\xa1c")]
)
def test_a_frame_whose_content_has_changed_ends_the_connection_though_it_could_be_read(
    before: bytes, after: bytes
) -> None:
    world = changed(before, after, 35 * S)
    assert ends(world) == [10.0]
    heard, lost = played(world)
    assert [text for *_, text in heard] == ["20", "30"]
    assert lost == [(10 * S, "change", "10")]


@pytest.mark.parametrize("after", [b"\x80\0\0", b"\0\0\x7f"])
def test_a_length_that_has_changed_ends_the_connection_at_once(after: bytes) -> None:
    """The one is over the limit; the other were a wait for what never comes."""
    world = changed(b"\0\0\0", after, 35 * S)
    assert ends(world) == [10.0]
    heard, lost = played(world)
    assert [text for *_, text in heard] == ["20", "30"]
    assert lost == [(10 * S, "change", "10")]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.0003, 0.003, 0.03]))
def test_no_corrupted_message_arrives_changed_and_each_arrives_or_is_lost(
    seed: int, share: float
) -> None:
    noise = Corrupt(name="noise", share=share)
    world = World(faults=[noise], a={}, b=every(S), until_us=200 * S, seed=seed)
    heard, lost = played(world)
    assert all(text == f"{at_us / S:g}" for at_us, _, text in heard)
    assert sorted(at_us for at_us, *_ in [*heard, *lost]) == [n * S for n in range(1, 200)]
    assert bool(lost) <= bool(fired(world))


def test_with_every_byte_corrupted_nothing_arrives_until_it_heals() -> None:
    noise = Corrupt(name="noise", share=1.0, at=Duration(S), lasts=Duration(30 * S))
    world = World(faults=[noise], a={}, b=every(S), until_us=70 * S)
    heard, lost = played(world)
    assert not [at_us for at_us, *_ in heard if S < at_us < 31 * S]
    assert heard[-1][0] == 69 * S
    assert len(heard) + len(lost) == 69


# Bytes that are counted


def test_greetings_count_too_so_a_short_limit_lets_nobody_in() -> None:
    limit = CloseAfter(source="b", limit=Size(50), lasts=Duration(30 * S))
    world = World(faults=[limit], a={}, b=every(S), until_us=70 * S)
    heard, _ = played(world)
    assert [text for *_, text in heard][:2] != []
    assert not [at_us for at_us, *_ in heard if 5 * S < at_us < 30 * S]
    assert heard[-1][0] == 69 * S


# Who is joined so


def test_those_that_no_fault_names_are_joined_directly() -> None:
    world = World(
        faults=[Reset(source="b", target="a", at=Duration(S))],
        a={},
        b={},
        c={"start": say("b", "x")},
    )
    assert world.lines is not None
    assert world.lines.carrier("c", "b") is None
    assert world.lines.carrier("a", "b") is not None, "the way back breaks too"
    assert world.lines.carrier("b", "b") is None
    assert world.run() == [(0, "b", "x")]


def test_two_are_joined_by_their_first_message_in_each_replication() -> None:
    cut = Reset(at=Duration(0), after=Duration(5 * S), nth=1)
    world = World(faults=[cut], a={}, b=every(7 * S), until_us=20 * S)
    assert ends(world) == [12.0], "5 s after it was joined"
    assert ends(world) == [12.0], "again"


def test_a_turn_that_never_was_sends_nothing_over_a_line() -> None:
    def hook(context: Any, _writes: Any) -> Any:
        return Commit.FAILED if context.name == "b" and context.now_us == 2 * S else None

    def tick(context: Any, timer: str) -> None:
        context.set_timer("2", S)
        say("a", timer)(context)

    world = World(
        hook,
        faults=[Reset(at=Duration(50 * S))],
        a={},
        b={"start": lambda context: context.set_timer("1", S), "timer": tick},
        until_us=5 * S,
    )
    assert played(world) == ([(S, "a", "1"), (3 * S, "a", "1"), (4 * S, "a", "2")], [])


def test_chance_of_the_back_off_is_the_line_s_own() -> None:
    def back_us(**more: Any) -> list[float]:
        faults = [Reset(at=Duration(S), source="b"), *more.values()]
        return ends(World(faults=faults, a={}, b=every(100 * MS), until_us=20 * S, host=simulator))

    assert back_us() == back_us(other=BlackHole(source="c"))


def test_two_that_are_cut_together_do_not_come_back_together() -> None:
    world = World(
        faults=[Reset(at=Duration(S), nth=1)], a={}, b=every(MS), c=every(MS), until_us=2 * S
    )
    heard = world.run()
    assert heard
    back_us = set()
    for replication in range(5):
        lost = Trace()
        world.run(replication, lost)
        drops = [record for record in lost.records if record[1] == "drop"]
        for who in "bc":
            back_us.add(max(drop[2] for drop in drops if drop[5].source == who))
    assert len(back_us) > 8


# What other faults and latencies do on the same way


def test_what_may_be_overtaken_is_overtaken_on_a_line_too() -> None:
    late = Reorder(name="late", delay=Durations.parse("10s"), nth=1)
    world = World(faults=[late, Reset(at=Duration(50 * S))], a={}, b=at_1("x", "y"))
    assert played(world)[0] == [(S, "a", "y"), (11 * S, "a", "x")]


def test_what_is_held_up_is_not_overtaken_by_what_has_a_shorter_way() -> None:
    latencies = iter([5 * S, 0])
    world = World(
        faults=[Throttle(source="b", rate=Size(2))],
        links={("b", "a"): lambda: next(latencies)},
        a={},
        b={
            "start": lambda c: (c.set_timer("x", S), c.set_timer("y", 6 * S)),
            "timer": lambda c, timer: say("a", timer)(c),
        },
    )
    heard, lost = played(world)
    assert ([text for *_, text in heard], lost) == (["x", "y"], [])
    assert heard[0][0] > 14 * S


def test_what_can_t_be_read_breaks_its_own_connection_alone() -> None:
    change = Change(name="change", source="b", before=b"text", after=b"tixt", nth=1)
    cut = HalfClose(name="cut", source="b", at=Duration(11 * S), nth=1)
    world = World(
        faults=[change, cut],
        links={("b", "a"): lambda: 3 * S},
        a={},
        b=every(10 * S),
        until_us=25 * S,
    )
    assert ends(world) == [11.0], "what comes at 13 s belongs to a connection that is no more"
    assert [text for *_, text in played(world)[0]] == ["20"]
