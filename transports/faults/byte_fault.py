"""What every byte fault has: where it stands, when it acts, and on which connections.

A byte fault knows no messages. It is made into a `Stage` for one direction of one connection; the
stage turns each chunk of bytes into steps (pieces to send, pauses, an end) and touches no socket,
so it is tried without one and its draws depend on its own stream alone. It stands in a proxy, whose
clock and connections are the proxy's, or in a scenario, on the connections between its actors.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Annotated, ClassVar, Literal, NamedTuple

import msgspec

from actors.chance import Stream
from actors.streams import HashedStream
from transports.faults.fault import Fault, Ordinal, Probability, Working, one_rule
from transports.units import Duration, Size

Direction = Literal["up", "down"]  # from the client to the service, and back
UP: Direction = "up"
DOWN: Direction = "down"


class End(enum.Enum):
    """How a stage ends what it stands on."""

    CLOSE = "close"  # both ways, after what was sent so far; each side reads its end of stream
    RESET = "reset"  # both ways with RST; what a peer has not read yet may be lost to it
    HALF_CLOSE = "half-close"  # this direction alone: the receiver reads its end of stream


class Piece(NamedTuple):
    """Bytes that go on, and the time at which they left this stage in microseconds."""

    data: bytes
    at_us: int


class Pause(NamedTuple):
    """Nothing goes on until this time in microseconds; None is until the fault heals."""

    until_us: int | None


Step = Piece | Pause | End


class Site(NamedTuple):
    """Where a stage stands: the time in microseconds, its own chance, and who counts its firing."""

    now_us: Callable[[], int]
    chance: Stream
    fire: Callable[[], None]


class Stage:
    """A byte fault at work on one direction of one connection; by itself it changes nothing.

    `due_us` is when it acts without any bytes, None for never. Once it is `healed` its pauses are
    over and it sees no more bytes.
    """

    opens_late: ClassVar[bool] = False  # whether the service is not reached until it heals
    silences: ClassVar[bool] = False  # whether nothing at all arrives while it acts

    def __init__(self, site: Site) -> None:
        self.site = site
        self.due_us: int | None = None
        self.healed = False

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Say what becomes of bytes that came at this time; there is at least one."""
        yield Piece(data, at_us)

    def on_end(self, at_us: int) -> Iterator[Pause]:
        """Say how long the sender's end of stream, or its RST, is held up."""
        yield from ()

    def on_due(self) -> End:
        """Say what happens at `due_us`."""
        raise NotImplementedError

    def fire(self) -> None:
        """Count that it did something."""
        self.site.fire()


def through(
    stages: Sequence[Stage], data: bytes, at_us: int, now_us: Callable[[], int]
) -> Iterator[tuple[Stage | None, Step]]:
    """Yield what stages, one behind the other, make of bytes that came at a time.

    Bytes leave a stage at the time that it says, or now if that is earlier: a stage that heals lets
    them go before.
    """
    if not stages:
        yield None, Piece(data, at_us)
        return
    stage, behind = stages[0], stages[1:]
    if stage.healed:
        yield from through(behind, data, at_us, now_us)
        return
    for step in stage.on_bytes(data, at_us):
        if isinstance(step, Piece):
            yield from through(behind, step.data, min(step.at_us, now_us()), now_us)
        else:
            yield stage, step


class ByteFault(Fault, frozen=True, kw_only=True):
    """Where: `from` and `to` are globs of the names of a connection's two ends.

    When: from `at` on, for as long as `for` says, counted from when the fault was put in place.
    Which connections: all, or the `nth` that it meets, or each `every`-th, or each with a
    `probability` drawn from the fault's own stream; each two ends are counted by themselves. Open
    connections are met when it begins, in the order in which they were opened, and new ones as they
    come.
    """

    source: Annotated[str, "the end that sends, a glob of the ends' names"] = msgspec.field(
        name="from", default="*"
    )
    target: Annotated[str, "the end that receives, a glob of the ends' names"] = msgspec.field(
        name="to", default="*"
    )
    nth: Annotated[Ordinal | None, "acts on this connection alone, counted from 1"] = None
    every: Annotated[Ordinal | None, "acts on each so many-th connection"] = None
    probability: Annotated[
        Probability | None, "acts on a connection with this probability, 0 to 1"
    ] = None

    def __post_init__(self) -> None:
        """Refuse two rules of which connections."""
        one_rule(self.nth, self.every, self.probability)

    def acts_on(self, source: str, target: str) -> bool:
        """Return whether it stands on what `source` sends to `target`."""
        return fnmatchcase(source, self.source) and fnmatchcase(target, self.target)

    def directions(self, client: str, server: str) -> tuple[Direction, ...]:
        """Return the directions it stands on between ends of these names, maybe none."""
        ways: tuple[tuple[Direction, str, str], ...] = (
            (UP, client, server),
            (DOWN, server, client),
        )
        return tuple(way for way, source, target in ways if self.acts_on(source, target))

    def picks(self, seen: int, chance: Stream) -> bool:
        """Return whether it acts on the connection that it meets as its `seen`-th, from 1."""
        if self.nth is not None:
            return seen == self.nth
        if self.every is not None:
            return seen % self.every == 0
        return self.probability is None or chance.random() < self.probability

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        raise NotImplementedError

    def at_work(self) -> ByteWorking:
        """Return what acts in one cell of a scenario."""
        return ByteWorking(self)


class Ends(NamedTuple):
    """A connection by its ends' names, who dialled first, and its number between them, from 1."""

    client: str
    server: str
    number: int


class ByteWorking(Working):
    """A byte fault at work in one cell: its time, and its stages on the connections it has picked.

    Whoever knows the connections puts `begun`, `fires` and `healed` in place, which are told when
    the fault begins to act, when it does something to a connection and, with those that it then
    lets go, when it has healed.
    """

    _fault: ByteFault

    def __init__(self, fault: ByteFault) -> None:
        super().__init__(fault)
        self.active = False
        self.begun: Callable[[ByteWorking], None] = lambda _fault: None
        self.fires: Callable[[Ends], None] = lambda _ends: None
        self.healed: Callable[[Sequence[Ends]], None] = lambda _connections: None
        self._forget_all()

    def _forget_all(self) -> None:
        self.active = False
        self._key = b""
        self._met: dict[tuple[str, str], int] = {}
        self._stages: dict[Ends, dict[Direction, Stage]] = {}
        self._over_us = 0  # when the last connection that it had picked was over

    def start(self, chance: Stream) -> None:
        """Begin a replication. Each connection gets a stream of its own, whatever the order."""
        super().start(chance)
        self._forget_all()
        self._key = blake2b(b"%.17g" % chance.random(), digest_size=32).digest()
        self._plan()

    def _event(self, now_us: int, _fields: dict[str, object]) -> None:
        if self.window.happened(now_us):
            self._plan()

    def _plan(self) -> None:
        begin_us, end_us = self.window.begin_us, self.window.end_us
        if begin_us is None:
            return
        assert self.world is not None, "a fault is attached before it begins"
        self.world.at(begin_us, self._begin)
        if end_us is not None:
            self.world.at(end_us, self._heal)

    def _begin(self) -> None:
        self.active = True
        self.begun(self)

    def _heal(self) -> None:
        self.active = False
        for stages in self._stages.values():
            for stage in stages.values():
                stage.healed = True
        connections = tuple(self._stages)
        self._stages.clear()
        self.healed(connections)

    def directions(self, client: str, server: str) -> tuple[Direction, ...]:
        """Return the directions it stands on between ends of these names, maybe none."""
        return self._fault.directions(client, server)

    def meet(self, ends: Ends) -> None:
        """Decide about a connection, once for each; not if the fault stands on neither way."""
        ways = self.directions(ends.client, ends.server)
        if not ways:
            return
        pair = ends[:2]
        self._met[pair] = seen = self._met.get(pair, 0) + 1
        place = f"{ends.client}/{ends.server}"
        if not self._fault.picks(seen, HashedStream(self._key, f"{place}/pick/{seen}")):
            return
        self._stages[ends] = {way: self._stage(ends, way) for way in ways}

    def _stage(self, ends: Ends, way: Direction) -> Stage:
        world = self.world
        assert world is not None, "a fault is attached before it meets connections"

        def fire() -> None:
            self.fired += 1
            self.fires(ends)

        chance = HashedStream(self._key, f"{ends.client}/{ends.server}/{ends.number}/{way}")
        return self._fault.stage(Site(lambda: world.now_us, chance, fire))

    def acts_at(self, ends: Ends) -> bool:
        """Whether it acts on a connection now."""
        return ends in self._stages

    def stage(self, ends: Ends, way: Direction) -> Stage | None:
        """Return what acts on one direction of a connection, if anything does."""
        return self._stages.get(ends, {}).get(way)

    def forget(self, ends: Ends) -> None:
        """Let go of a connection that is over."""
        if self._stages.pop(ends, None) is not None and self.world is not None:
            self._over_us = self.world.now_us

    @property
    def healed_us(self) -> int | None:
        """When it has healed for good: with `nth` once the connections that it picked are over."""
        nth = self._fault.nth
        if nth is None or not self.fired or self._stages:
            return super().healed_us
        done = all(met >= nth for met in self._met.values())
        return self._over_us if done else super().healed_us


class EndingFault(ByteFault, frozen=True, kw_only=True):
    """A fault that ends something after so many `bytes` of a direction, or `after` so much time.

    Whichever comes first counts; with neither it is at once.
    """

    limit: Annotated[Size | None, "how many bytes of a direction pass before"] = msgspec.field(
        name="bytes", default=None
    )
    after: Annotated[Duration | None, "how long after it meets a connection"] = None


class Ending(Stage):
    """An `EndingFault` at work: lets the bytes up to the limit pass, then ends in its own way."""

    def __init__(self, site: Site, fault: EndingFault, end: End) -> None:
        super().__init__(site)
        self._left_bytes = None if fault.limit is None else int(fault.limit)
        self._end = end
        self._ended = False
        if fault.after is not None:
            self.due_us = site.now_us() + fault.after
        elif not self._left_bytes:
            self.due_us = site.now_us()

    def on_bytes(self, data: bytes, at_us: int) -> Iterator[Step]:
        """Count, and end in the middle of the chunk that reaches the limit."""
        if self._left_bytes is None:
            yield Piece(data, at_us)
            return
        passing = data[: self._left_bytes]
        self._left_bytes -= len(passing)
        if passing:
            yield Piece(passing, at_us)
        if not self._left_bytes:
            yield self.on_due()

    def on_due(self) -> End:
        """End it; this is one end, though both its time and its limit may come."""
        if not self._ended:
            self._ended = True
            self.fire()
        return self._end
