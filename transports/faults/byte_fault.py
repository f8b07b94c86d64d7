"""What every byte fault has: where in a proxy it stands, when it acts, and on which connections.

A byte fault knows no messages. It is made into a `Stage` for one direction of one connection; the
stage turns each chunk of bytes into steps (pieces to send, pauses, an end) and touches no socket,
so it is tried without one and its draws depend on its own stream alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal, NamedTuple

import msgspec

from actors.chance import Stream
from transports.faults.fault import Ordinal, Probability
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


class ByteFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where: `from` and `to` are globs of the names of the two ends of a proxy.

    When: from `at` on, for as long as `for` says, counted from when the fault was put in place.
    Which connections: all, or the `nth` that it meets, or each `every`-th, or each with a
    `probability` drawn from the fault's own stream. Open connections are met when it begins, in the
    order in which they were opened, and new ones as they come.
    """

    in_flight: ClassVar[str] = ""  # what it does to bytes that are under way when it begins

    name: Annotated[str, "its name in results; without it the kind and a number"] = ""
    at: Annotated[Duration | None, "when it begins; without it at once"] = None
    lasts: Annotated[Duration | None, "how long it lasts; without it to the end"] = msgspec.field(
        name="for", default=None
    )
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
    min_fired: Annotated[Ordinal, "how often it must fire for a scenario's cell to count"] = 1

    def __post_init__(self) -> None:
        """Refuse two rules of which connections."""
        given = [key for key in ("nth", "every", "probability") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"a fault has one of nth, every and probability, not {given}")

    def directions(self, client: str, server: str) -> tuple[Direction, ...]:
        """Return the directions it stands on between ends of these names, maybe none."""
        ways: tuple[tuple[Direction, str, str], ...] = (
            (UP, client, server),
            (DOWN, server, client),
        )
        return tuple(
            way
            for way, source, target in ways
            if fnmatchcase(source, self.source) and fnmatchcase(target, self.target)
        )

    def acts_on(self, seen: int, chance: Stream) -> bool:
        """Return whether it acts on the connection that it meets as its `seen`-th, from 1."""
        if self.nth is not None:
            return seen == self.nth
        if self.every is not None:
            return seen % self.every == 0
        return self.probability is None or chance.random() < self.probability

    def stage(self, site: Site) -> Stage:
        """Return what acts on one direction of one connection."""
        raise NotImplementedError


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
