"""What every byte fault promises: one suite, run on each kind of them, and the tools to try one.

A kind's own test subclasses `ByteFaultContract`, gives the fields that its table needs, and adds
what this kind does to bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.config import decode_hook
from actors.guarded import simulator
from actors.streams import HashedStream
from actors.world import TrioWorld
from scenarios.spec import FAULTS
from tests.actors.harness import S, Trace
from tests.actors.hosts import MakeHost, by_actor
from tests.actors.puppets import World, say
from transports.faults.byte_fault import ByteFault, End, Pause, Piece, Site, Stage, Step, through
from transports.faults.fault import Fault
from transports.local import TcpTransport, UnixTransport

KEY = b"k" * 32
# Each kind's class runs the same test, which hypothesis takes for a slip.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors], max_examples=50)
chunk_lists = st.lists(st.binary(min_size=1, max_size=60), max_size=12)


class Bench:
    """A stage on a bench: a clock that is moved by hand, and what it fired."""

    def __init__(self, fault: ByteFault, seed: int = 0) -> None:
        self.now_us = 0
        self.fired = 0
        chance = HashedStream(KEY, f"bench/{seed}")
        self.stage = fault.stage(Site(lambda: self.now_us, chance, self._fire))

    def _fire(self) -> None:
        self.fired += 1

    def steps(self, data: bytes, at_us: int | None = None) -> list[Step]:
        """What becomes of a chunk that came at a time, now if none is given."""
        return list(self.stage.on_bytes(data, self.now_us if at_us is None else at_us))

    def carry(self, chunks: Iterable[bytes]) -> tuple[list[Piece], End | None]:
        """The pieces that become of chunks, and how it ends, waiting wherever it pauses."""
        pieces = []
        for chunk in chunks:
            for _, step in through((self.stage,), chunk, self.now_us, lambda: self.now_us):
                if isinstance(step, Piece):
                    pieces.append(step)
                elif isinstance(step, Pause):
                    if step.until_us is not None:
                        self.now_us = max(self.now_us, step.until_us)
                else:
                    return pieces, step
        return pieces, None


def joined(pieces: Iterable[Piece]) -> bytes:
    """All bytes of some pieces."""
    return b"".join(piece.data for piece in pieces)


class ByteFaultContract:
    """The suite. `fields` is what a table of this kind needs beside its kind."""

    kind: type[ByteFault]
    fields: ClassVar[dict[str, Any]] = {}
    keeps = True  # whether every byte arrives, in order, as long as nothing ends

    def fault(self, **fields: Any) -> Any:
        """Return a fault as a file's table makes it."""
        table = {"kind": self.kind.__struct_config__.tag} | self.fields | fields
        return msgspec.convert(table, self.kind, dec_hook=decode_hook)

    def bench(self, seed: int = 0, **fields: Any) -> Bench:
        """Return a stage of such a fault."""
        return Bench(self.fault(**fields), seed)

    def test_its_table_has_the_keys_that_every_fault_has(self) -> None:
        fault = self.fault(name="it", at="5s", probability=0.5, **{"for": "2s", "from": "client"})
        assert (fault.name, fault.at, fault.lasts) == ("it", 5_000_000, 2_000_000)
        assert (fault.source, fault.target, fault.probability) == ("client", "*", 0.5)

    def test_an_unknown_key_is_refused(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="nht"):
            self.fault(nht=2)

    @pytest.mark.parametrize("fields", [{"nth": 0}, {"every": 0}, {"probability": 1.1}])
    def test_what_makes_no_sense_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            self.fault(**fields)

    def test_it_says_what_it_does_to_bytes_under_way(self) -> None:
        assert self.kind.in_flight
        assert self.kind.in_flight is not ByteFault.in_flight

    @inherited
    @given(chunks=chunk_lists, seed=st.integers(0, 20))
    def test_no_byte_is_added_or_reordered(self, chunks: list[bytes], seed: int) -> None:
        pieces, end = self.bench(seed).carry(chunks)
        whole, arrived = b"".join(chunks), joined(pieces)
        if self.keeps:
            assert arrived == whole if end is None else whole.startswith(arrived)
        else:
            assert len(arrived) <= len(whole)
        assert all(piece.data for piece in pieces), "no send of nothing"
        times = [piece.at_us for piece in pieces]
        assert times == sorted(times)

    @inherited
    @given(chunks=chunk_lists, seed=st.integers(0, 20))
    def test_the_same_chance_does_the_same(self, chunks: list[bytes], seed: int) -> None:
        one, other = self.bench(seed), self.bench(seed)
        assert one.carry(chunks) == other.carry(chunks)
        assert one.fired == other.fired

    @inherited
    @given(chunks=chunk_lists)
    def test_a_healed_stage_is_as_none(self, chunks: list[bytes]) -> None:
        bench = self.bench()
        bench.stage.healed = True
        pieces, end = bench.carry(chunks)
        assert [piece.data for piece in pieces] == chunks
        assert (end, bench.fired) == (None, 0)


def over(transport: Callable[[], TcpTransport]) -> MakeHost:
    """Worlds over sockets, 200 times as fast as the machine's clock."""
    return lambda seed, cell: TrioWorld(seed, cell, transport=transport(), clock=None, speed=200)


IN_MEMORY: dict[str, MakeHost] = {
    "simulator": simulator,
    "guarded": partial(simulator, guarded=True),
    "trio": TrioWorld,
}
EVERY_HOST = IN_MEMORY | {"tcp": over(TcpTransport)}
UNIX = over(UnixTransport)
LAST = 45  # the number that must come back in the end


class Talk:
    """`b`, which dials, counts aloud once a second to `a`, which says the same back."""

    def __init__(self, host: MakeHost, *faults: Fault) -> None:
        self.count = 0
        self.came_back: list[str] = []
        self.world = World(
            host=host,
            faults=faults,
            until_us=3_600 * S,
            a={"say": lambda context, envelope: say("b", envelope.body.text)(context)},
            b={
                "start": self.begin,
                "timer": self.tick,
                "say": self.hear,
            },
        )

    def begin(self, context: Any) -> None:
        self.count = 0
        self.came_back.clear()
        context.set_timer("tick", S)

    def tick(self, context: Any, _timer: str) -> None:
        self.count += 1
        say("a", str(self.count))(context)
        context.set_timer("tick", S)

    def hear(self, _context: Any, envelope: Any) -> None:
        self.came_back.append(envelope.body.text)
        if envelope.body.text.isdecimal() and int(envelope.body.text) == self.count >= LAST:
            self.world.sim.finish()

    def run(self, replication: int = 0) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """What was seen, and what the log has of losses."""
        trace = Trace()
        seen = self.world.run(replication, trace)
        return seen, [record for record in trace.records if record[1] in ("drop", "fault")]


class ScenarioByteFaultContract(ByteFaultContract):
    """What a kind promises that a scenario may have; it acts from 10 s to 40 s on what b says.

    `acting` is what its table needs so that it does something in that time.
    """

    acting: ClassVar[dict[str, Any]] = {}
    faithful = True  # whether what arrives is what was sent

    def acts(self) -> Any:
        """Return the fault."""
        table = {"name": "it", "from": "b", "to": "a", "at": "10s", "for": "30s"}
        return self.fault(**table | self.acting)

    def test_it_is_in_the_list_of_kinds_under_its_name(self) -> None:
        assert FAULTS[str(self.kind.__struct_config__.tag)] is self.kind

    def test_it_says_what_it_means_on_each_transport(self) -> None:
        assert self.kind.__doc__
        assert self.kind.in_memory is not Fault.in_memory
        assert self.kind.over_sockets is not Fault.over_sockets

    @pytest.mark.parametrize("host", EVERY_HOST.values(), ids=EVERY_HOST)
    def test_what_arrives_is_in_order_at_most_once_and_all_again_once_it_has_healed(
        self, host: MakeHost
    ) -> None:
        self.check(host)

    def check(self, host: MakeHost) -> None:
        """Let it act in a world, and see what becomes of the messages."""
        talk = Talk(host, self.acts())
        seen, losses = talk.run()
        said = [int(what[0]) for _, who, *what in seen if who == "a" and what[0].isdecimal()]
        assert said[:4] == [1, 2, 3, 4], "nothing happens before; sockets may be late"
        assert said[-1] >= LAST
        back = [int(text) for text in talk.came_back if text.isdecimal()]
        if self.faithful:
            drops = [record[5] for record in losses if record[1] == "drop"]
            lost = [int(drop.body.text) for drop in drops if drop.target == "a"]
            assert sorted(said + lost) == list(range(1, said[-1] + 1)), "each is told once"
            assert said == sorted(set(said))
            assert back == sorted(set(back))
            assert set(back) <= set(said)
        (working,) = talk.world.faults
        assert working.fired > 0
        assert working.healed_us == 40 * S
        assert {record[4] for record in losses if record[1] == "drop"} <= {"it", "disconnected"}
        assert {tuple(record[3:]) for record in losses if record[1] == "fault"} <= {
            ("b", "it", "disconnect")
        }
        wiring = talk.world.wiring
        assert wiring is not None
        assert talk.world.lines is not None or not wiring.connections, "nothing is left open"

    def test_it_is_the_same_on_every_host_in_memory_and_in_each_order_of_replications(self) -> None:
        talks = {name: Talk(host, self.acts()) for name, host in IN_MEMORY.items()}
        first, second = (
            {name: talk.run(number) for name, talk in talks.items()} for number in (0, 1)
        )
        for outcomes in (first, second):
            seen, _ = outcomes["simulator"]
            assert outcomes["guarded"][0] == seen
            for actor in ("a", "b"):  # whose turn comes first at one instant is trio's
                assert by_actor(outcomes["trio"][0], actor) == by_actor(seen, actor)
        alone = Talk(simulator, self.acts())
        assert alone.run(1) == second["simulator"]
        assert alone.run(0) == first["simulator"]
        assert alone.world.run() == first["simulator"][0], "without a log it is the same"


def ends(stage: Stage, at_us: int = 0) -> list[Pause]:
    """How a stage holds up the end of a stream."""
    return list(stage.on_end(at_us))
