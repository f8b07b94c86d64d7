"""What a log is made of: one record a turn (its input), plus what the actors say and what is lost.

A log file holds one or more sections, one a replication. A section is a `header`, then records
numbered from 1, then `end`. The kinds are a closed list; each record has its number `n`, the time
`t` in microseconds since the world began, the `actor` whose turn it is, and its `cause`: the number
of the record whose turn brought it about, 0 for none.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import msgspec

from transports.envelope import Envelope

# A hand may have been at a log: what no clock can show is no time, and no sum overflows.
Time = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]  # microseconds

FORMAT = 1  # the number of this log format; readers refuse a higher one


class Record(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """What every numbered record has."""

    n: int
    t: Time
    actor: str
    cause: int


def type_of(body: Any) -> str:
    """Return the type of a message, also of one as a log has it."""
    if isinstance(body, dict):
        return str(body.get("type", "message"))
    return type(body).__name__


class StartRecord(Record, frozen=True, gc=False, tag="start"):
    """An actor begins its boot number `boot`."""

    boot: int


class MessageRecord(Record, frozen=True, gc=False, tag="message"):
    """A message is delivered; its turn is this record."""

    envelope: Envelope[Any]


class TimerRecord(Record, frozen=True, gc=False, tag="timer"):
    """A timer wakes its actor."""

    timer: str


class UnansweredRecord(Record, frozen=True, gc=False, tag="unanswered"):
    """A question's time is up; its actor is told so."""

    id: int


class LateRecord(Record, frozen=True, gc=False, tag="late"):
    """An answer comes after its question's time was up, or twice; nobody is told."""

    envelope: Envelope[Any]


class DropRecord(Record, frozen=True, gc=False, tag="drop"):
    """A message is lost on the way; `fault` names what lost it."""

    fault: str
    envelope: Envelope[Any]


class SendRecord(Record, frozen=True, gc=False, tag="send"):
    """A turn that has committed sends a message; on the trio host alone.

    There what is still under way when a replication ends would stand nowhere else.
    """

    envelope: Envelope[Any]


# What became of a message, and every record that has one's envelope.
Ended = MessageRecord | LateRecord | DropRecord
Carried = Ended | SendRecord


class FaultRecord(Record, frozen=True, gc=False, tag="fault"):
    """A fault does something to an actor.

    `act` is kill, start, suspend, pause, resume, unwritable, writable, or disconnect: then it is
    the one that dials again. Or what a clock does: "clock -1h" when its wall clock jumps,
    "rate 1.01" when both go at another rate.
    """

    fault: str
    act: str


class UndoneRecord(Record, frozen=True, gc=False, tag="undone"):
    """The turn `cause` did not commit: its writes, messages and timers never were."""

    why: str


class EventRecord(Record, frozen=True, gc=False, tag="event"):
    """What an actor says by `context.log`."""

    event: str
    fields: dict[str, Any]


class HeaderRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="header"):
    """A section's first line: everything that tells where it comes from and how to make it again.

    The environment stands here alone, so bytes and digests are compared from the next line on.
    `path` is the scenario file as its user named it, `folder` where it lies; `processes` says
    whether all actors lived in one process or in separate ones; `speed` is how many
    seconds of the scenario passed in a real one, where a clock was the machine's. `actors` is of a
    deployed process that is recorded whole: what each of its actors is, so that they can be made
    again.
    """

    format: int = FORMAT
    scenario: str
    digest: str
    seed: int
    cell: str
    replication: int
    command: str
    pullcord: str
    python: str
    path: str = ""
    folder: str = ""
    driver: str = "sim"
    transport: str = "memory"
    processes: str = "one"
    speed: float = 0.0
    actors: dict[str, Any] = {}
    resolved: dict[str, Any]


class EndRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """A section's last line; without it the section is truncated, and readers still read it.

    `count` is the number of records, `digest` the BLAKE2b of their lines, `outcome` how the
    replication ended. `healed` is when its last fault had, in microseconds like `t`: 0 without any,
    nothing if one might still have acted.
    """

    count: int
    digest: str
    outcome: str
    t: Time
    healed: Time | None = None


KINDS: dict[str, type[msgspec.Struct]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        HeaderRecord,
        StartRecord,
        MessageRecord,
        TimerRecord,
        UnansweredRecord,
        LateRecord,
        DropRecord,
        SendRecord,
        FaultRecord,
        UndoneRecord,
        EventRecord,
        EndRecord,
    )
}


class Recorder(Protocol):
    """Takes a replication's records in order. A turn's method returns the turn's number."""

    def start(self, t: int, actor: str, boot: int) -> int:
        """Record that an actor begins a boot."""

    def message(self, t: int, envelope: Envelope[Any]) -> int:
        """Record a delivery."""

    def timer(self, t: int, actor: str, cause: int, timer: str) -> int:
        """Record that a timer fires."""

    def unanswered(self, t: int, actor: str, cause: int, number: int) -> int:
        """Record that a question's time is up."""

    def late(self, t: int, envelope: Envelope[Any]) -> None:
        """Record an answer that nobody waits for."""

    def drop(self, t: int, envelope: Envelope[Any], fault: str) -> None:
        """Record a message that is lost on the way."""

    def send(self, t: int, envelope: Envelope[Any]) -> None:
        """Record that a turn that has committed sends a message."""

    def fault(self, t: int, actor: str, fault: str, act: str) -> None:
        """Record that a fault does something to an actor."""

    def undone(self, t: int, actor: str, turn: int, why: str) -> None:
        """Record that a turn did not commit.

        Nothing that it said may have been recorded: hosts keep events until a turn has committed.
        """

    def event(self, t: int, actor: str, cause: int, event: str, fields: dict[str, Any]) -> None:
        """Record what an actor says."""
