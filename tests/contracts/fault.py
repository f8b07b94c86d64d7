"""What every fault promises: one suite, run on each kind of fault.

A fault's own test subclasses `FaultContract` and says how its kind is made and put to work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import pytest

from actors.messages import Accepted, GetGraphRun, Noted
from transports.envelope import Envelope
from transports.faults.fault import Fault


class Judging(Protocol):
    """A fault at work in one cell, as far as every kind has it."""

    name: str

    def start(self, chance: Callable[[], float]) -> None:
        """Begin a replication."""

    @property
    def fired(self) -> int:
        """How often it fired in this replication."""


def get(number: int) -> Envelope[Any]:
    return Envelope(number, "agent", "server", 0, 0, GetGraphRun(command_id=str(number)))


def noted(number: int) -> Envelope[Any]:
    return Envelope(number, "relay", "owner", 0, 0, Noted())


class FaultContract:
    """The suite. `touches` is what the kind does: whether this message was acted on."""

    kind: type[Fault]

    def at_work(self, fault: Fault) -> Judging:
        """Put a fault to work."""
        raise NotImplementedError

    def touches(self, judging: Judging, envelope: Envelope[Any]) -> bool:
        """Give it a message and return whether it acted on it."""
        raise NotImplementedError

    def works(self, chance: Callable[[], float] = float, **fields: Any) -> Judging:
        """Return a fault of these fields, begun with a chance."""
        judging = self.at_work(msgspec.convert({"kind": self.tag} | fields, self.kind))
        judging.start(chance)
        return judging

    @property
    def tag(self) -> Any:
        """The name of its kind in a scenario file."""
        return self.kind.__struct_config__.tag

    def hits(self, judging: Judging, count: int = 6) -> list[int]:
        """The numbers of those messages of several that it acted on."""
        return [number for number in range(1, count + 1) if self.touches(judging, get(number))]

    # Its fields are its configuration

    def test_it_is_read_from_a_table_of_its_kind(self) -> None:
        table = {"kind": self.tag, "from": "agent*", "to": "server", "message": "GetGraphRun"}
        fault = msgspec.convert(table | {"name": "lossy", "nth": 2}, self.kind)
        assert (fault.name, fault.source, fault.target) == ("lossy", "agent*", "server")
        assert (fault.message, fault.nth) == ("GetGraphRun", 2)
        assert self.at_work(fault).name == "lossy"

    def test_an_unknown_field_or_kind_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="nht"):
            msgspec.convert({"kind": self.tag, "nht": 2}, self.kind)
        with pytest.raises(msgspec.ValidationError, match="kind"):
            msgspec.convert({"kind": "no such fault"}, self.kind)

    @pytest.mark.parametrize(
        "fields",
        [
            {"nth": 0},
            {"every": 0},
            {"nth": 1.5},
            {"probability": -0.1},
            {"probability": 1.1},
            {"nth": 1, "every": 2},
            {"nth": 1, "probability": 0.5},
            {"every": 1, "probability": 0.5},
            {"min_fired": 0},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"kind": self.tag} | fields, self.kind)

    def test_two_rules_of_when_are_refused_by_name(self) -> None:
        with pytest.raises(msgspec.ValidationError, match=r"one of nth, every and probability"):
            msgspec.convert({"kind": self.tag, "nth": 1, "every": 2}, self.kind)

    # Where

    def test_its_place_is_two_globs(self) -> None:
        fault = self.kind(source="relay-*", target="server")
        assert fault.acts_on("relay-1", "server")
        assert not fault.acts_on("relay", "server")
        assert not fault.acts_on("relay-1", "server2")
        assert not fault.acts_on("server", "relay-1"), "one direction only"
        assert not fault.acts_on("Relay-1", "server"), "case counts"
        assert self.kind().acts_on("anybody", "anywhere")

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

    def test_only_a_true_chance_is_probabilistic(self) -> None:
        assert self.kind(probability=0.5).probabilistic
        for fault in (self.kind(), self.kind(nth=1), self.kind(probability=0.0)):
            assert not fault.probabilistic
        assert not self.kind(probability=1.0).probabilistic

    # From replication to replication

    def test_a_new_replication_begins_to_count_anew(self) -> None:
        judging = self.works(nth=2)
        assert self.hits(judging, 3) == [2]
        judging.start(float)
        assert judging.fired == 0
        assert self.hits(judging, 3) == [2]
        assert judging.fired == 1

    def test_a_new_replication_draws_from_its_own_chance(self) -> None:
        judging = self.works(lambda: 0.9, probability=0.5)
        assert self.hits(judging) == []
        judging.start(lambda: 0.1)
        assert self.hits(judging, 2) == [1, 2]
