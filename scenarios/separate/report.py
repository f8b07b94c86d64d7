"""What crosses between an actor's process and the one that keeps links, log and metrics.

An actor's process tells of a turn once it has committed, in one report: the input, and in the order
of asking what the turn said and sent. So a turn's effects arrive whole or not at all, and a process
that is killed between its commit and its report was killed after its commit. Both sides are the
same program of the same run, so this is no public format; messages inside it are (docs/wire.md).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from actors.actor import Place
from scenarios.spec import Cast
from transports.codec import FRAME_LIMIT_BYTES, FrameError, plain

HUB = "pullcord"  # how the side that keeps the links calls itself in a greeting
OVER = b"over"  # what a stopped process is told for the time that it stood still, at the end
WAITING_LIMIT = 512  # messages for one actor, in queue, socket and mailbox, as on the trio host
WHOLE_LIMIT_BYTES = 256 << 20  # of one report or state: beyond it an actor's mistake fills memory

T = TypeVar("T")

_MORE, _LAST = b"\x00", b"\x01"  # what a piece begins with


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that an actor's process is told before it begins.

    Files are looked for from `folder`, and imported as in our own process, where we work in `cwd`.
    `index` is its place among the actors, so that no two make the same id, and `names` are all of
    them. `store` is the file of its durable state, `host` and `port` or else `path` is where it
    dials. It lives in boot number `boot`, and `ids` and `draws` say what the boots before have used
    of chance. If it `asks`, faults decide about its commits.
    """

    cast: Cast
    place: Place
    folder: str
    cwd: str
    import_path: tuple[str, ...]
    index: int
    names: tuple[str, ...]
    seed: int
    cell: str
    replication: int
    boot: int
    ids: int
    draws: dict[str, int]
    speed: float
    patience_s: float
    asks: bool
    store: str
    token: str
    host: str = ""
    port: int = 0
    path: str = ""


class Said(msgspec.Struct, frozen=True, array_like=True, tag="said"):
    """The turn logged an event."""

    event: str
    fields: dict[str, Any]


class Sent(msgspec.Struct, frozen=True, array_like=True, tag="sent"):
    """The turn sent a message: its type's name, and the frame that WireCodec made of it."""

    kind: str
    frame: bytes


class Done(msgspec.Struct, frozen=True, array_like=True, tag="done"):
    """The turn said that its actor's workload is finished."""


class Report(msgspec.Struct, frozen=True, array_like=True, tag="turn"):
    """A turn that has ended: its number in this boot, its input, and what came of it.

    `t` is when it began, in microseconds of the world. `what` is the boot of a start, the id of a
    message or a late answer, the name of a timer, the id of a question without an answer. `cause`
    is the number of the turn that set the timer or asked the question. With `undone` the turn did
    not commit. `ids` and `draws` are how many ids the actor has made so far, and how many numbers
    it has drawn for each purpose: its next process goes on behind them.
    """

    number: int
    t: int
    input: Literal["start", "message", "timer", "unanswered", "late"]
    what: int | str
    cause: int = 0
    effects: list[Said | Sent | Done] = []
    undone: str = ""
    ids: int = 0
    draws: dict[str, int] = {}


class Struck(msgspec.Struct, frozen=True, array_like=True, tag="struck"):
    """A fault did `act` to the actor's clocks, as `Meddle` said; its wall clock has jumped."""

    t: int
    act: str
    jumped_us: int = 0


class Asking(msgspec.Struct, frozen=True, array_like=True, tag="asking"):
    """A turn, not yet committed: may it? `wrote` is whether it wrote to its store."""

    turn: Report
    wrote: bool


class State(msgspec.Struct, frozen=True, array_like=True, tag="state"):
    """The actor's store and when each of its timers is due, as `pickled_state` made them."""

    pickled: bytes


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The actor can't go on; the words of `scenarios.work.trouble_of` for it."""

    kind: str
    sentence: str
    trace: str
    actor: str


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """Time has begun at `zero_s` of the machine's monotonic clock: begin your boot.

    With `look` only tell your state as it would be at a start, and begin nothing.
    """

    zero_s: float
    look: bool = False
    writable: bool = True
    clock: bytes = b""  # the actor's clock, pickled, if something has meddled with it


class Verdict(msgspec.Struct, frozen=True, array_like=True, tag="verdict"):
    """The turn that was asked for commits, unless `why` says why it doesn't."""

    why: str = ""


class Meddle(msgspec.Struct, frozen=True, array_like=True, tag="meddle"):
    """A fault shifts the wall clock, or lets the clocks go at a rate in millionths."""

    fault: str
    by_us: int = 0
    rate_ppm: int = 0


class Writable(msgspec.Struct, frozen=True, array_like=True, tag="writable"):
    """Whether the store can be written, from the next turn on."""

    writable: bool


class Tell(msgspec.Struct, frozen=True, array_like=True, tag="tell"):
    """The replication is over: take no more turns, and tell your state."""


class Delivery(msgspec.Struct, frozen=True, array_like=True, tag="delivery"):
    """A message for the actor, from `source`, in WireCodec's frame."""

    source: str
    frame: bytes


class Link(Protocol):
    """What frames are received from; see `transports.connection.Connection`."""

    async def receive(self) -> bytes:
        """Return the next frame."""


_encoder = msgspec.msgpack.Encoder(enc_hook=plain)
Told = Report | Struck | Asking | State | Failed
Order = Begin | Tell | Delivery | Verdict | Writable | Meddle

_reports: msgspec.msgpack.Decoder[Told] = msgspec.msgpack.Decoder(Told)
_orders: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)


def pieces(told: msgspec.Struct) -> Iterator[bytes]:
    """Yield the frames that carry it; TypeError or OverflowError for a value that has no bytes."""
    whole = _encoder.encode(told)
    room = FRAME_LIMIT_BYTES - 1
    last = (len(whole) - 1) // room
    for number in range(last + 1):
        piece = whole[number * room : (number + 1) * room]
        yield (_LAST if number == last else _MORE) + piece


async def receive_report(link: Link) -> Told:
    """Return what an actor's process tells next; FrameError for what is none of it."""
    return _decoded(_reports, await _whole(link))


async def receive_order(link: Link) -> Order:
    """Return what an actor's process is told next; FrameError for what is none of it."""
    return _decoded(_orders, await _whole(link))


async def _whole(link: Link) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    while True:
        frame = await link.receive()
        parts.append(frame[1:])
        size_bytes += len(frame)
        if frame[:1] == _LAST:
            return b"".join(parts)
        if size_bytes > WHOLE_LIMIT_BYTES:
            raise FrameError(f"a report of more than {WHOLE_LIMIT_BYTES >> 20} MiB")


def _decoded(decoder: msgspec.msgpack.Decoder[T], whole: bytes) -> T:
    try:
        return decoder.decode(whole)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FrameError(f"no report: {error}") from error


def pickled_state(
    tables: Mapping[str, Mapping[Any, msgspec.Struct]], timers: Mapping[str, int]
) -> State:
    """Return the state of an actor: rows may be of a user's own types, so they are pickled."""
    return State(pickle.dumps((tables, timers)))


def state_of(told: State) -> tuple[dict[str, dict[Any, msgspec.Struct]], dict[str, int]]:
    """Return what `pickled_state` was given, from a process that we have started ourselves."""
    tables, timers = pickle.loads(told.pickled)  # noqa: S301  its program is ours and the user's
    return tables, timers
