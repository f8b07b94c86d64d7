"""What every fault promises: one suite, run on each kind of fault.

A fault's own test subclasses `FaultContract` and says how its kind is made and put to work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import pytest

from actors.actor import Commit
from actors.messages import Accepted, GetGraphRun, Noted
from scenarios.spec import FAULTS
from transports.envelope import Envelope
from transports.faults.fault import Fault, Keeper
from transports.units import Duration, Offset, parse_duration, parse_offset

# What a log is turned into: no scenario is written with them, and no random plan has them.
FROM_LOGS = frozenset({"schedule", "timer_schedule", "commit_schedule"})


class FakeWorld:
    """A host of which only the time moves, and which writes down what is done to its actors."""

    def __init__(self) -> None:
        self.now_us = 0
        self.actions: list[tuple[int, Callable[[], Any]]] = []
        self.watchers: dict[str, list[Callable[[int, dict[str, Any]], None]]] = {}
        self.hooks: list[Callable[[str, bool], Commit | None]] = []
        self.keepers: dict[str, Keeper] = {}
        self.done: list[tuple[int, str, str]] = []
        self.refuses = False

    def at(self, due_us: int, action: Callable[[], Any]) -> None:
        assert due_us >= self.now_us, "nothing is planned for the past"
        self.actions.append((due_us, action))

    def watch(self, event: str, watcher: Callable[[int, dict[str, Any]], None]) -> None:
        self.watchers.setdefault(event, []).append(watcher)

    def happen(self, event: str) -> None:
        for watcher in self.watchers.get(event, ()):
            watcher(self.now_us, {})

    def _did(self, act: str, name: str) -> bool:
        self.done.append((self.now_us, act, name))
        return not self.refuses

    def kill(self, name: str, fault: str) -> bool:
        assert fault, "a fault says who it is"
        return self._did("kill", name)

    def revive(self, name: str, fault: str) -> None:
        assert fault, "a fault says who it is"
        self._did("revive", name)

    def suspend(self, name: str, fault: str, clock_stops: bool) -> bool:
        assert fault, "a fault says who it is"
        return self._did("suspend" if clock_stops else "pause", name)

    def resume(self, name: str, fault: str) -> None:
        assert fault, "a fault says who it is"
        self._did("resume", name)

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        assert fault, "a fault says who it is"
        return self._did(f"by {by_us}", name)

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        assert fault, "a fault says who it is"
        return self._did(f"rate {rate_ppm}", name)

    def tell(self, name: str, fault: str, act: str) -> None:
        assert fault, "a fault says who it is"
        self._did(act, name)

    def set_writable(self, name: str, fault: str, writable: bool) -> None:
        assert fault, "a fault says who it is"
        self._did("writable" if writable else "full", name)

    def keep_time(self, name: str, keeper: Keeper) -> None:
        self.keepers[name] = keeper

    def add_commit_hook(self, hook: Callable[[str, bool], Commit | None]) -> None:
        self.hooks.append(hook)

    def until(self, end_us: int) -> None:
        """Let time go on, and do what was planned."""
        while due := [each for each in self.actions if each[0] <= end_us]:
            first = min(due, key=lambda each: each[0])
            self.actions.remove(first)
            self.now_us = first[0]
            first[1]()
        self.now_us = end_us


class Chance:
    """A stream that gives the numbers of a function."""

    def __init__(self, draw: Callable[[], float] = float) -> None:
        self.draw = draw

    def random(self) -> float:
        return self.draw()


def get(number: int) -> Envelope[Any]:
    return Envelope(number, "agent", "server", 0, 0, GetGraphRun(command_id=str(number)))


def noted(number: int) -> Envelope[Any]:
    return Envelope(number, "relay", "owner", 0, 0, Noted())


class FaultContract:
    """What every kind promises. `fields` are those that the kind requires."""

    kind: type[Fault]
    fields: Mapping[str, Any] = {}

    def make(self, **fields: Any) -> Any:
        """Return a fault of the kind, read as from a file."""
        table = {"kind": self.tag, "name": "it"} | dict(self.fields) | fields
        return msgspec.convert(table, self.kind, dec_hook=decode)

    def works(
        self, chance: Callable[[], float] = float, world: FakeWorld | None = None, **fields: Any
    ) -> Any:
        """Return a fault of these fields at work, begun with a chance."""
        working = self.make(**fields).at_work()
        working.attach(world or FakeWorld(), ("server", "relay", "engine"))
        working.start(Chance(chance))
        return working

    @property
    def tag(self) -> Any:
        """The name of its kind in a scenario file."""
        return self.kind.__struct_config__.tag

    def test_it_is_in_the_list_of_kinds_under_its_name(self) -> None:
        assert FAULTS[self.tag] is self.kind

    def test_it_says_what_it_does_to_what_is_under_way(self) -> None:
        assert self.kind.in_flight
        assert self.kind.__doc__

    def test_an_unknown_field_or_kind_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="nht"):
            self.make(nht=2)
        with pytest.raises(msgspec.ValidationError, match="kind"):
            msgspec.convert({"kind": "no such fault"} | dict(self.fields), self.kind)

    @pytest.mark.parametrize(
        "fields", [{"probability": -0.1}, {"probability": 1.1}, {"min_fired": 0}]
    )
    def test_what_makes_no_sense_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(**fields)

    def test_it_has_its_own_name(self) -> None:
        assert self.works().name == "it"

    def test_only_a_true_chance_is_probabilistic(self) -> None:
        assert self.make(probability=0.5).probabilistic
        assert not self.make().probabilistic
        assert not self.make(probability=0.0).probabilistic
        assert not self.make(probability=1.0).probabilistic

    def test_a_new_replication_begins_with_nothing_fired(self) -> None:
        working = self.works()
        working.fired = 5
        working.start(Chance())
        assert working.fired == 0


def decode(kind: type[Any], value: Any) -> Any:
    """Read a duration or a distribution, as a scenario's decoder does."""
    parsers = {Duration: parse_duration, Offset: parse_offset}
    return parsers.get(kind, getattr(kind, "parse", None))(value)  # type: ignore[misc]  # one is there


class LinkFaultContract(FaultContract):
    """What every fault of links promises. `healed_us` is when one is over, if not its window."""

    healed_us: int | None = None

    def hits(self, judging: Any, count: int = 6) -> list[int]:
        """The numbers of those messages of several that it acted on."""
        return [number for number in range(1, count + 1) if self.touches(judging, get(number))]

    def touches(self, judging: Any, envelope: Envelope[Any]) -> bool:
        """Give it a message and return whether it acted on it."""
        return judging.judge(envelope) is not None

    # Its fields are its configuration

    def test_it_is_read_from_a_table_of_its_kind(self) -> None:
        table = {"from": "agent*", "to": "server", "message": "GetGraphRun"}
        fault = self.make(**table, name="lossy", nth=2)
        assert (fault.name, fault.source, fault.target) == ("lossy", "agent*", "server")
        assert (fault.message, fault.nth) == ("GetGraphRun", 2)

    @pytest.mark.parametrize(
        "fields",
        [
            {"nth": 0},
            {"every": 0},
            {"nth": 1.5},
            {"nth": 1, "every": 2},
            {"nth": 1, "probability": 0.5},
            {"every": 1, "probability": 0.5},
        ],
    )
    def test_a_rule_of_when_that_makes_no_sense_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.make(**fields)

    def test_two_rules_of_when_are_refused_by_name(self) -> None:
        with pytest.raises(msgspec.ValidationError, match=r"one of nth, every and probability"):
            self.make(nth=1, every=2)

    # Where

    def test_its_place_is_two_globs(self) -> None:
        fault = self.make(**{"from": "relay-*", "to": "server"})
        assert fault.acts_on("relay-1", "server")
        assert not fault.acts_on("relay", "server")
        assert not fault.acts_on("relay-1", "server2")
        assert not fault.acts_on("Relay-1", "server"), "case counts"
        assert self.make().acts_on("anybody", "anywhere")

    def test_it_acts_on_its_message_type_alone_and_counts_no_other(self) -> None:
        judging = self.works(message="GetGraphRun", nth=2)
        assert [self.touches(judging, each) for each in (noted(1), get(2), noted(3))] == [False] * 3
        assert self.touches(judging, get(4))
        assert not self.touches(judging, get(5))
        other = self.works(message="Accepted")
        assert self.hits(other) == []
        assert self.touches(other, Envelope(9, "server", "relay", 0, 0, Accepted(command_id="c")))

    # When

    def test_without_a_rule_it_acts_on_every_message(self) -> None:
        assert self.hits(self.works()) == [1, 2, 3, 4, 5, 6]

    def test_nth_acts_once(self) -> None:
        judging = self.works(nth=3)
        assert self.hits(judging) == [3]
        assert judging.fired == 1

    def test_every_acts_on_each_so_manieth(self) -> None:
        judging = self.works(every=2)
        assert self.hits(judging) == [2, 4, 6]
        assert judging.fired == 3

    def test_probability_draws_one_number_a_matching_message(self) -> None:
        draws = iter([0.29, 0.3, 0.0, 0.99])
        judging = self.works(lambda: next(draws), message="GetGraphRun", probability=0.3)
        assert not self.touches(judging, noted(1)), "no number is drawn for another type"
        assert self.hits(judging, 4) == [1, 3]
        assert next(draws, None) is None
        assert judging.fired == 2

    def test_probability_0_never_acts_and_1_always_does(self) -> None:
        assert self.hits(self.works(lambda: 0.0, probability=0.0)) == []
        assert self.hits(self.works(lambda: 1.0 - 2.0**-53, probability=1.0), 3) == [1, 2, 3]

    def test_its_time_is_a_window(self) -> None:
        world = FakeWorld()
        judging = self.works(world=world, **cast(dict[str, Any], {"at": "10s", "for": "5s"}))
        assert self.hits(judging, 1) == []
        world.now_us = 10_000_000
        assert self.hits(judging, 1) == [1]
        world.now_us = 15_000_000
        assert self.hits(judging, 1) == []
        assert judging.fired == 1
        assert judging.healed_us == (15_000_000 if self.healed_us is None else self.healed_us)

    def test_an_event_begins_its_window_once(self) -> None:
        world = FakeWorld()
        judging = self.works(
            world=world, **cast(dict[str, Any], {"on": "run.started", "at": "2s", "for": "5s"})
        )
        assert self.hits(judging, 1) == []
        world.now_us = 1_000_000
        world.happen("run.started")
        assert self.hits(judging, 1) == [], "two seconds later"
        assert judging.healed_us == (8_000_000 if self.healed_us is None else self.healed_us)
        world.now_us = 3_000_000
        world.happen("run.started")
        assert self.hits(judging, 1) == [1]
        world.now_us = 8_000_000
        assert self.hits(judging, 1) == []
        judging.start(Chance())
        assert self.hits(judging, 1) == [], "a new replication waits for the event anew"

    # From replication to replication

    def test_a_new_replication_begins_to_count_anew(self) -> None:
        judging = self.works(nth=2)
        assert self.hits(judging, 3) == [2]
        judging.start(Chance())
        assert judging.fired == 0
        assert self.hits(judging, 3) == [2]
        assert judging.fired == 1

    def test_a_new_replication_draws_from_its_own_chance(self) -> None:
        judging = self.works(lambda: 0.9, probability=0.5)
        assert self.hits(judging) == []
        judging.start(Chance(lambda: 0.1))
        assert self.hits(judging, 2) == [1, 2]


class ActorFaultContract(FaultContract):
    """What every fault of actors promises."""

    fields: Mapping[str, Any] = {"actor": "relay"}

    def test_its_victims_are_a_glob_and_it_stands_on_no_link(self) -> None:
        assert self.works().victims == ("relay",)
        assert self.works(actor="*e*").victims == ("server", "relay", "engine")
        assert not self.make(actor="*").acts_on("relay", "server")
        with pytest.raises(msgspec.ValidationError, match="actor"):
            msgspec.convert({"kind": self.tag, "for": "5s"}, self.kind, dec_hook=decode)

    def test_it_needs_a_world_in_which_actors_may_die(self) -> None:
        assert self.kind.needs_world


class StrikingContract(ActorFaultContract):
    """What every fault promises that strikes at its time; `act` is what it does to a victim."""

    act: str

    def strikes(self, world: FakeWorld) -> list[int]:
        """When it struck."""
        return [at for at, act, _ in world.done if act == self.act]

    def test_it_strikes_once_at_its_time(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, at="10s")
        world.until(9_999_999)
        assert world.done == []
        assert working.healed_us is None
        world.until(1_000_000_000)
        assert self.strikes(world) == [10_000_000]
        assert working.fired == 1
        assert working.healed_us == max(at for at, _, _ in world.done)

    def test_it_strikes_at_the_first_of_its_event(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, on="run.started", at="1s")
        world.until(5_000_000)
        world.happen("run.started")
        world.happen("run.started")
        world.until(1_000_000_000)
        assert self.strikes(world) == [6_000_000]
        assert working.fired == 1

    def test_it_strikes_again_so_long_after_the_last_time_was_over(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, at="10s", every="30s")
        world.until(200_000_000)
        times = self.strikes(world)
        assert times[0] == 10_000_000
        assert len(times) > 2
        over = [at for at, act, _ in world.done if act != self.act] or times
        assert [b - a for a, b in zip(over, times[1:], strict=False)] == [30_000_000] * (
            len(times) - 1
        )
        assert working.fired == len(times)
        assert working.healed_us is None

    def test_strikes_without_a_pause_are_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="every must be longer than 0s"):
            self.make(every="0s")

    def test_a_victim_that_can_t_be_hit_does_not_count(self) -> None:
        world = FakeWorld()
        world.refuses = True
        working = self.works(world=world)
        world.until(1_000_000_000)
        assert working.fired == 0
        assert len(world.done) == 1, "and nothing is undone that was not done"

    def test_chance_decides_for_all_victims_together(self) -> None:
        world = FakeWorld()
        working = self.works(lambda: 0.7, world, probability=0.5, actor="*")
        world.until(1_000_000_000)
        assert (working.fired, world.done) == (0, [])
        world = FakeWorld()
        working = self.works(lambda: 0.3, world, probability=0.5, actor="*")
        world.until(1_000_000_000)
        assert working.fired == 3


class CommitContract(ActorFaultContract):
    """What every fault of commits promises."""

    def decisions(self, working: Any, world: FakeWorld, turns: int = 6) -> list[int]:
        """The numbers of those turns of several of the victim's that it acted on."""
        (hook,) = world.hooks
        return [n for n in range(1, turns + 1) if hook("relay", True) is not None]

    @pytest.mark.parametrize(
        ("rule", "hits"),
        [({}, [1, 2, 3, 4, 5, 6]), ({"nth": 2}, [2]), ({"every": 3}, [3, 6])],
    )
    def test_its_rule_of_when_counts_the_victim_s_turns(
        self, rule: dict[str, Any], hits: list[int]
    ) -> None:
        world = FakeWorld()
        working = self.works(world=world, **rule)
        assert world.hooks[0]("server", True) is None, "not its victim"
        assert self.decisions(working, world) == hits
        assert working.fired == len(hits)

    def test_its_time_is_a_window(self) -> None:
        world = FakeWorld()
        working = self.works(world=world, **cast(dict[str, Any], {"at": "10s", "for": "5s"}))
        assert self.decisions(working, world, 1) == []
        world.now_us = 12_000_000
        assert self.decisions(working, world, 1) == [1]
        world.now_us = 15_000_000
        assert self.decisions(working, world, 1) == []
        assert working.healed_us == 15_000_000

    def test_two_rules_of_when_are_refused_by_name(self) -> None:
        with pytest.raises(msgspec.ValidationError, match=r"one of nth, every and probability"):
            self.make(nth=1, every=2)
