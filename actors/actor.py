"""What an actor is and what it may do: the contract between pure actors and their hosts.

An actor reacts to inputs and touches the world only through its `Context`. It never awaits, never
sleeps, and never reads a clock, a random source, a socket, a file or an environment variable.

A *turn* is one call of a handler or hook. Turns of one actor never overlap. A turn is a
transaction: what it wrote to the store commits first, and only then are its messages, timers and
log records released. What must survive lives in the store; attributes are a cache that `on_start`
rebuilds, every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from actors.chance import Stream
from actors.graphs.seam import VmPort
from actors.messages import SessionMeta
from transports.clock import Clock
from transports.envelope import Envelope

Key = str | tuple[str, ...]
Row = TypeVar("Row", bound=msgspec.Struct)


class TableSpec(Generic[Row]):
    """A table's name, its row type and the indexes that it may be scanned by.

    An index is a tuple of the row's field names; rows whose first indexed field is None are left
    out of it. Rows come in the order of the fields' values, then of their keys.
    """

    def __init__(self, name: str, row: type[Row], **indexes: tuple[str, ...]) -> None:
        self.name = name
        self.row = row
        self.indexes = indexes


class Table(Protocol[Row]):
    """Rows by key. Rows are frozen: change one by putting another."""

    def get(self, key: Key, /) -> Row | None:
        """Return the row under `key`, None if there is none."""

    def put(self, key: Key, row: Row, /) -> None:
        """Write the row, over any other."""

    def insert_unique(self, key: Key, row: Row, /) -> bool:
        """Write the row and return True, or leave the one that stands there and return False."""

    def delete(self, key: Key, /) -> None:
        """Remove the row if there is one."""

    def scan(
        self,
        index: str,
        prefix: tuple[Any, ...] = (),
        *,
        limit: int,
        up_to: Any = None,
        above: Any = None,
    ) -> list[Row]:
        """Return the first `limit` rows whose indexed fields start with `prefix`, in index order.

        With `up_to`, only rows whose next field is at most that; with `above`, more than that, so
        that a listing goes on behind the last row that it has shown.
        """

    def claim(
        self, index: str, prefix: tuple[Any, ...] = (), *, limit: int, up_to: Any = None
    ) -> list[Row]:
        """Scan, leaving out rows that another process holds in an unfinished turn."""

    def count(self, index: str, prefix: tuple[Any, ...] = ()) -> int:
        """Return how many rows the scan would find without a limit."""


class Store(Protocol):
    """An actor's durable state."""

    writable: bool  # False while writing fails; the actor then refuses new work

    def table(self, spec: TableSpec[Row], /) -> Table[Row]:
        """Return the table, made empty if it is new."""


class Context(Clock, Protocol):
    """What one actor may do, given to it with every turn.

    As a clock it counts from this boot on; `stamp_us` is for deadlines that are stored.
    """

    @property
    def name(self) -> str:
        """The address of this actor."""

    @property
    def store(self) -> Store:
        """The durable state of this actor."""

    @property
    def vm(self) -> VmPort | None:
        """Where this actor gets VMs for scripts, None where there are none."""

    @property
    def traceparent(self) -> str:
        """The trace, by W3C's Trace Context, that what this turn sends belongs to; "" for none.

        At first it is that of the turn's message, or of the question that stayed unanswered. A
        reply carries its question's in any case, a repeated question that of when it was begun.
        """

    def trace(self, traceparent: str) -> None:
        """Let what this turn sends from here on belong to another trace; "" for none.

        For what concerns another run than the turn's input did: its traceparent is stored with it.
        What has not W3C's form counts as none.
        """

    def random(self, purpose: str) -> Stream:
        """Return this actor's stream of chance for `purpose`; another purpose never shifts it."""

    def send(self, target: str, body: Any) -> None:
        """Send a message that expects no answer: delivered at most once, in order, or lost."""

    def request(self, target: str, body: Any, timeout_us: int) -> int:
        """Ask a question and return its id.

        Exactly one turn follows: with the answer (its `reply_to` is the id), or with `Unanswered`
        once `timeout_us` has passed. An answer after that is dropped and logged.
        """

    def reply(self, envelope: Envelope[Any], body: Any) -> None:
        """Answer the question in `envelope`, in this turn or later.

        A handler may as well return the answer: it is sent at the end of its turn.
        """

    def request_every(
        self, timer: str, period_us: int, target: str, body: Any, timeout_us: int
    ) -> None:
        """Ask a question every `period_us`, first when one has passed.

        Each is a `request` of its own, whether or not the one before was answered. Periods that the
        actor slept through, or a busy machine let pass, are not made up for. It ends when the timer
        is cancelled or set again, and with the boot.
        """

    def set_timer(self, timer: str, delay_us: int) -> None:
        """Wake this actor after `delay_us`. Set again it is replaced. No timer outlives a boot."""

    def cancel_timer(self, timer: str) -> None:
        """Take the timer back if it is set."""

    def new_id(self, prefix: str = "") -> str:
        """Return a new UUID, or `prefix_` and 32 hex digits; seeded in experiments."""

    def log(self, event: str, **fields: Any) -> None:
        """Record that something happened: a dotted name, and fields of plain data."""

    def done(self) -> None:
        """Say that this actor's workload is finished; an experiment ends when everybody's is."""


# What it returns answers the envelope's question, as `reply` does; None answers nothing yet.
Handler = Callable[[Any, Envelope[Any]], Any]


class Commit(Enum):
    """What becomes of a turn."""

    DONE = "committed"
    FAILED = "the commit failed"  # the actor is rebuilt from its store in the same boot
    CRASHED = "the actor was killed at its commit"  # and starts again at once, in a new boot
    KILLED = "the actor was killed before its commit"  # and is down until it is revived
    SILENCED = "the actor was killed after its commit"  # likewise; nothing that it sent has left


class Actor(Protocol):
    """A pure actor. `handlers` maps each message type that it understands to a bound method."""

    handlers: Mapping[type[Any], Handler]

    def on_start(self, context: Context) -> None:
        """Begin a boot: rebuild every attribute from the store, set the first timers."""

    def on_timer(self, context: Context, timer: str) -> None:
        """Act on a timer that this actor set."""


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    """The body that a requester gets in the place of an answer: whether it arrived is unknown."""

    question: Any


class Session(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Graph session as the scenario gives it: a saved Graph on one relay's desktop."""

    id: str
    name: str
    slug: str
    project: str
    relay: str
    shared: bool = True


@cache  # so that equal ones are the same object, which compares fastest
def meta_of(session: Session) -> SessionMeta:
    """Return a session as its relay first uploads it."""
    return SessionMeta(id=session.id, project=session.project, name=session.name, slug=session.slug)


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that an owner does, `at_us` after the start."""

    at_us: int
    act: str
    session: str


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where an actor stands: the names of those it talks to, and what the scenario gives it."""

    name: str
    server: str = "server"
    relay: str = "relay"
    engine: str = "engine"
    model: str = "model"
    tools: str = "tools"
    approver: str = ""  # who is told at once that a tool call waits; the owner may as well look
    files: Mapping[str, str] = {}  # the texts that its config names, by name
    sessions: tuple[Session, ...] = ()  # a relay's own; for an agent, those that it may run
    steps: tuple[Step, ...] = ()  # an owner's
