"""What every fault has: a name, a time, and what it is at work.

A fault's fields are its configuration in a scenario file. `at_work` makes what acts in one cell: it
is attached to the cell's world once, begins each replication with its own stream of chance, and
counts how often it fired. A `LinkFault` judges the messages on the links that its place matches;
an `ActorFault` does something to the actors that its glob matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Protocol

import msgspec

from actors.actor import Commit
from actors.chance import Durations, Stream
from transports.envelope import Envelope
from transports.units import Duration
from transports.verdict import Verdict

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Ordinal = Annotated[int, msgspec.Meta(ge=1)]
PAUSE_US = 100_000  # between two strikes at least, whatever is drawn
CommitHook = Callable[[str, bool], Commit | None]


class Keeper(Protocol):
    """Says when an actor's timers and time-outs come. A subject is a timer's name or a number."""

    def next_us(self, subject: str | int, due_us: int) -> int:
        """Return when it comes, by the world's clock; what is past is at once."""

    def came(self, subject: str | int) -> None:
        """Take note that it comes now."""


class World(Protocol):
    """What a fault may do to a host. Times are absolute, in microseconds of the world."""

    now_us: int

    def at(self, due_us: int, action: Callable[[], Any]) -> None:
        """Call `action` at a time, before all else that is due then."""

    def watch(self, event: str, watcher: Callable[[int, dict[str, Any]], None]) -> None:
        """Call `watcher(now_us, fields)` on each such event of any actor."""

    def kill(self, name: str, fault: str) -> bool:
        """Kill an actor: all but its store is gone. False if it is down already."""

    def revive(self, name: str, fault: str) -> None:
        """Start a killed actor in a new boot."""

    def suspend(self, name: str, fault: str, clock_stops: bool) -> bool:
        """Let an actor take no turn; with `clock_stops` its timers stand still. False if it is."""

    def resume(self, name: str, fault: str) -> None:
        """Let it go on: first with what has waited."""

    def shift_clock(self, name: str, fault: str, by_us: int) -> bool:
        """Let an actor's wall clock jump, ahead or back. False if nobody can set its clock."""

    def set_clock_rate(self, name: str, fault: str, rate_ppm: int) -> bool:
        """Let an actor's clocks go at a rate in millionths. False if nobody can set its clock."""

    def tell(self, name: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor."""

    def set_writable(self, name: str, fault: str, writable: bool) -> None:
        """Say whether the actor's store can be written."""

    def keep_time(self, name: str, keeper: Keeper) -> None:
        """Let a keeper say when an actor's timers and time-outs come; in the simulator alone."""

    def add_commit_hook(self, hook: CommitHook) -> None:
        """Ask `hook(actor, wrote)` what becomes of each turn; None leaves it to the next hook."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When: from `at` on, for as long as `for` says; with `on`, counted from that event's first.

    `min_fired` is how often a probabilistic fault must fire in its cell for the cell to count; a
    deterministic one must fire in each replication.
    """

    in_flight: ClassVar[str] = ""  # what it does to messages that are under way when it begins
    needs_world: ClassVar[bool] = False  # whether turns may fail and actors may die in its world
    sim_only: ClassVar[bool] = False  # whether only the simulator can do it
    on_programs: ClassVar[bool] = True  # whether it can act on a program of one's own
    in_memory: ClassVar[str] = "yes"  # what it means in the simulator, and on trio in memory
    over_sockets: ClassVar[str] = "the same"  # what it means over TCP and UNIX sockets

    name: Annotated[str, "its name in results; without it the kind and a number"] = ""
    at: Annotated[Duration | None, "when it begins; without it at the start"] = None
    lasts: Annotated[Duration | None, "how long it lasts; without it to the end"] = msgspec.field(
        name="for", default=None
    )
    on: Annotated[str | None, "an event whose first occurrence begins it, `at` later"] = None
    probability: Annotated[Probability | None, "acts with this probability, 0 to 1"] = None
    min_fired: Annotated[Ordinal, "how often it must fire in a cell for the cell to count"] = 1

    @property
    def probabilistic(self) -> bool:
        """Whether chance decides if it fires."""
        return self.probability is not None and 0.0 < self.probability < 1.0

    @property
    def needs_sockets(self) -> bool:
        """Whether it does something over sockets alone."""
        return False

    def acts_on(self, source: str, target: str) -> bool:
        """Return whether it stands on the link from `source` to `target`."""
        return False

    def at_work(self) -> Working:
        """Return what acts in one cell."""
        raise NotImplementedError


class Window:
    """The time in which a fault acts."""

    __slots__ = ("_fault", "begin_us")

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.start()

    def start(self) -> None:
        """Begin a replication."""
        self.begin_us: int | None = None
        if self._fault.on is None:
            self.begin_us = int(self._fault.at or 0)

    def happened(self, now_us: int) -> bool:
        """Take note of its event; return whether this begins the window."""
        if self.begin_us is not None:
            return False
        self.begin_us = now_us + int(self._fault.at or 0)
        return True

    @property
    def end_us(self) -> int | None:
        """When it ends, None if that is not known or never."""
        if self.begin_us is None or self._fault.lasts is None:
            return None
        return self.begin_us + int(self._fault.lasts)

    def contains(self, now_us: int) -> bool:
        """Whether the fault acts at this time."""
        if self.begin_us is None or now_us < self.begin_us:
            return False
        end_us = self.end_us
        return end_us is None or now_us < end_us


class Working:
    """A fault at work in one cell."""

    def __init__(self, fault: Fault) -> None:
        self.name = fault.name
        self.fired = 0  # in this replication
        self.window = Window(fault)
        self.chance: Stream | None = None
        self.world: World | None = None
        self._fault = fault

    def attach(self, world: World, actors: Sequence[str]) -> None:
        """Take a place in a world, before the first replication."""
        self.world = world
        if self._fault.on is not None:
            world.watch(self._fault.on, self._event)

    def start(self, chance: Stream) -> None:
        """Begin a replication with the fault's own stream of uniform numbers."""
        self.fired = 0
        self.chance = chance
        self.window.start()

    def _event(self, now_us: int, _fields: dict[str, Any]) -> None:
        self.window.happened(now_us)

    def lucky(self) -> bool:
        """Whether chance lets the fault act this time; draws nothing where it has no say."""
        probability = self._fault.probability
        if probability is None:
            return True
        assert self.chance is not None, "a replication has begun"
        return self.chance.random() < probability

    @property
    def healed_us(self) -> int | None:
        """When it has healed for good, None if it may still act or never began."""
        return self.window.end_us


class LinkFault(Fault, frozen=True, kw_only=True):
    """Where: `from` and `to` are globs of actor names, `message` a message type, maybe a field.

    When: every message, or the `nth` that matches, or each `every`-th, or with a `probability` a
    message that is drawn from the fault's own stream.
    """

    source: Annotated[str, "the senders that it acts on, a glob of actor names"] = msgspec.field(
        name="from", default="*"
    )
    target: Annotated[str, "the receivers that it acts on, a glob of actor names"] = msgspec.field(
        name="to", default="*"
    )
    message: Annotated[
        str | None, "the message type that it acts on, as GraphRun or GraphRun[status=completed]"
    ] = None
    nth: Annotated[Ordinal | None, "acts on this message alone, counted from 1"] = None
    every: Annotated[Ordinal | None, "acts on each so many-th message"] = None

    def __post_init__(self) -> None:
        """Refuse two rules of when."""
        one_rule(self.nth, self.every, self.probability)

    def acts_on(self, source: str, target: str) -> bool:
        """Return whether it stands on the link from `source` to `target`."""
        return fnmatchcase(source, self.source) and fnmatchcase(target, self.target)


class LinkWorking(Working):
    """A link fault at work; a kind says in `verdict` what becomes of the messages it fires on."""

    _fault: LinkFault

    def __init__(self, fault: LinkFault) -> None:
        super().__init__(fault)
        self._seen = self._fired_us = 0
        # What the fault's `message` accepts; whoever knows its language puts it in place.
        self.accepts: Callable[[Any], bool] | None = None

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._seen = self._fired_us = 0

    def fires(self, envelope: Envelope[Any]) -> bool:
        """Return whether the fault acts on this message, and count it."""
        assert self.world is not None, "a fault is attached before it judges"
        if not self.window.contains(self.world.now_us):
            return False
        rule = self._fault
        if self.accepts is not None:
            if not self.accepts(envelope.body):
                return False
        elif rule.message is not None and type(envelope.body).__name__ != rule.message:
            return False
        self._seen += 1
        hit = fires(self._seen, rule.nth, rule.every, self.lucky)
        if hit:
            self.fired += 1
            self._fired_us = self.world.now_us
        return hit

    def judge(self, envelope: Envelope[Any]) -> Verdict | None:
        """Return what becomes of this message, None if the fault lets it be."""
        return self.verdict(envelope) if self.fires(envelope) else None

    def verdict(self, envelope: Envelope[Any]) -> Verdict:
        """Return what becomes of a message that it fires on."""
        raise NotImplementedError

    @property
    def healed_us(self) -> int | None:
        """When it has healed for good: an nth fault with the message that it waited for."""
        if self._fault.nth is not None and self.fired:
            return self._fired_us
        return super().healed_us


class ActorFault(Fault, frozen=True, kw_only=True):
    """Where: `actor` is a glob of actor names. All that match are hit together."""

    needs_world: ClassVar[bool] = True

    actor: Annotated[str, "the actors that it hits, a glob of their names"]


class ActorWorking(Working):
    """An actor fault at work: finds its victims."""

    _fault: ActorFault

    def __init__(self, fault: ActorFault) -> None:
        super().__init__(fault)
        self.victims: tuple[str, ...] = ()

    def attach(self, world: World, actors: Sequence[str]) -> None:
        """Take a place in a world, and choose the victims."""
        super().attach(world, actors)
        self.victims = tuple(name for name in actors if fnmatchcase(name, self._fault.actor))


class StrikingFault(ActorFault, frozen=True, kw_only=True):
    """Strikes at a time, or at an event, once or `every` so long after it was last over."""

    every: Annotated[Durations | None, "strikes again and again, so long after the last time"] = (
        None
    )

    def __post_init__(self) -> None:
        """Refuse what would strike without end at one instant."""
        if self.every is not None and self.every.constant == 0:
            raise ValueError("every must be longer than 0s")


class Striking(ActorWorking):
    """A fault that strikes; a kind says in `strike` what it does to one victim."""

    _fault: StrikingFault

    def __init__(self, fault: StrikingFault) -> None:
        super().__init__(fault)
        self._over_us = 0  # when all that it has done so far is over
        self._last = False

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._over_us, self._last = 0, False
        self._plan()

    def _event(self, now_us: int, _fields: dict[str, Any]) -> None:
        if self.window.happened(now_us):
            self._plan()

    def _plan(self) -> None:
        begin_us = self.window.begin_us
        if begin_us is not None:
            assert self.world is not None, "a fault is attached before it begins"
            self.world.at(begin_us, self._act)

    def _act(self) -> None:
        world, chance = self.world, self.chance
        assert world is not None, "a fault is attached before it begins"
        assert chance is not None, "a replication has begun"
        over_us = world.now_us
        if self.lucky():
            for name in self.victims:
                until_us = self.strike(world, chance, name)
                if until_us is not None:
                    self.fired += 1
                    over_us = max(over_us, until_us)
        self._over_us = over_us
        every = self._fault.every
        if every is None:
            self._last = True
            return
        next_us = over_us + max(PAUSE_US, drawn_us(chance, every))
        if self.until_us is not None and next_us >= self.until_us:
            self._last = True
        else:
            world.at(next_us, self._act)

    @property
    def until_us(self) -> int | None:
        """When it strikes no more, None for never."""
        return None

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Hit one victim; return when that will be over, None if it could not be hit."""
        raise NotImplementedError

    @property
    def healed_us(self) -> int | None:
        """When the last victim has recovered, None if there may be others."""
        return self._over_us if self._last else None


class StoppingFault(StrikingFault, frozen=True, kw_only=True):
    """Lets the actors that it hits take no turn for `for`; with `clock_stops` time stands still."""

    clock_stops: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse one without an end, which is a kill."""
        super().__post_init__()
        if self.lasts is None:
            raise ValueError('it needs `for`: how long it lasts, as in for = "10m"')

    def at_work(self) -> Working:
        """Return what acts in one cell."""
        return Stopping(self)


class Stopping(Striking):
    """A fault that stops actors, at work; it fires once for each victim."""

    _fault: StoppingFault

    def strike(self, world: World, chance: Stream, name: str) -> int | None:
        """Stop it, and see to it that it goes on."""
        if not world.suspend(name, self.name, self._fault.clock_stops):
            return None
        until_us = world.now_us + int(self._fault.lasts or 0)
        world.at(until_us, lambda: world.resume(name, self.name))
        return until_us


class CommitFault(ActorFault, frozen=True, kw_only=True):
    """Acts when a turn commits: each, or the `nth`, or each `every`-th, or with a `probability`."""

    on_programs: ClassVar[bool] = False  # nobody sees what a program commits
    writes_only: ClassVar[bool] = False  # whether a turn that wrote nothing counts

    nth: Annotated[Ordinal | None, "acts on this turn alone, counted from 1"] = None
    every: Annotated[Ordinal | None, "acts on each so many-th turn"] = None

    def __post_init__(self) -> None:
        """Refuse two rules of when."""
        one_rule(self.nth, self.every, self.probability)


class Committing(ActorWorking):
    """A fault of commits at work; a kind says in `act` what becomes of one that it fires on."""

    _fault: CommitFault

    def __init__(self, fault: CommitFault) -> None:
        super().__init__(fault)
        self._seen = 0
        self.over_us = 0  # when all that it has done so far is over

    def attach(self, world: World, actors: Sequence[str]) -> None:
        """Take a place in a world, and ask to be asked at each commit."""
        super().attach(world, actors)
        world.add_commit_hook(self._decide)

    def start(self, chance: Stream) -> None:
        """Begin a replication."""
        super().start(chance)
        self._seen = self.over_us = 0

    def _decide(self, name: str, wrote: bool) -> Commit | None:
        if name not in self.victims or (self._fault.writes_only and not wrote):
            return None
        assert self.world is not None, "a fault is attached before it begins"
        if not self.window.contains(self.world.now_us):
            return None
        self._seen += 1
        if not fires(self._seen, self._fault.nth, self._fault.every, self.lucky):
            return None
        self.fired += 1
        self.over_us = max(self.over_us, self.world.now_us)
        return self.act(name)

    def act(self, name: str) -> Commit:
        """Return what becomes of a commit that it fires on."""
        raise NotImplementedError

    @property
    def healed_us(self) -> int | None:
        """When its victims have recovered, None if it may still act."""
        if self._fault.nth is not None and self.fired:
            return self.over_us
        end_us = self.window.end_us
        return None if end_us is None else max(end_us, self.over_us)


def drawn_us(chance: Stream | None, times: Durations) -> int:
    """Draw a time; a constant takes nothing from the stream."""
    if times.constant is not None:
        return int(times.constant)
    assert chance is not None, "a replication has begun"
    return int(times.draw(chance))


def one_rule(nth: int | None, every: int | None, probability: float | None) -> None:
    """Refuse two rules of when; ValueError."""
    rules = {"nth": nth, "every": every, "probability": probability}
    given = [key for key, value in rules.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"a fault has one of nth, every and probability, not {given}")


def fires(seen: int, nth: int | None, every: int | None, lucky: Callable[[], bool]) -> bool:
    """Return whether a rule of when picks the one that was seen as number `seen`."""
    if nth is not None:
        return seen == nth
    if every is not None:
        return seen % every == 0
    return lucky()
