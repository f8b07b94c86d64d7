"""What a scenario file says, as frozen structs: one struct a table."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from actors.chance import Durations
from transports.faults.black_hole import BlackHole
from transports.faults.clock_drift import ClockDrift
from transports.faults.clock_skew import ClockSkew
from transports.faults.clock_step import ClockStep
from transports.faults.close_after import CloseAfter
from transports.faults.commit_schedule import CommitSchedule
from transports.faults.corrupt import Corrupt
from transports.faults.crash import Crash
from transports.faults.delay import Delay
from transports.faults.disk_full import DiskFull
from transports.faults.drop import Drop
from transports.faults.duplicate import Duplicate
from transports.faults.failed_write import FailedWrite
from transports.faults.fault import Fault
from transports.faults.half_close import HalfClose
from transports.faults.hold import Hold
from transports.faults.kill import Kill
from transports.faults.partition import Partition
from transports.faults.pause import Pause
from transports.faults.reorder import Reorder
from transports.faults.reset import Reset
from transports.faults.schedule import Schedule
from transports.faults.slice import Slice
from transports.faults.suspend import Suspend
from transports.faults.throttle import Throttle
from transports.faults.timer_schedule import TimerSchedule
from transports.faults.truncate import Truncate
from transports.units import Duration, parse_duration

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Name = Annotated[
    str,
    msgspec.Meta(
        # No dot and no sign of globs or subscripts; a $ alone would let a line end through.
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$(?!\n)",
        description="letters, digits, hyphens and underscores, 64 characters at most",
    ),
]
Kind = Literal["server", "relay", "engine", "agent", "owner", "model", "tools", "approver"]
KINDS: tuple[Kind, ...] = ("server", "relay", "engine", "agent", "owner")  # those with tables
HELPERS: tuple[Kind, ...] = ("model", "tools", "approver")  # of an engine, in its table
DESKTOP_USE = "desktop"  # for a relay as it is deployed: with a history, and an owner who asks
GRAPH_USE = "graph"  # what `use` says for an engine that runs Graphs
REPLICATIONS_LIMIT = 10_000_000  # a day's work on one core; more is a slip of the pen
CELLS_LIMIT = 10_000  # a table of more rows is read by nobody
ACTOR_KEYS = (
    "count",
    "use",
    "command",
    "name",
)  # of every actor's table, besides those of its Config


class RunTable(msgspec.Struct, frozen=True, kw_only=True):
    """[run]: how often, from which seed, and when a replication ends.

    `until` is "done" (every agent and owner has finished), an event (so many runs have had it as
    the agents' tables ask for), or a time; of a list, all. `limit` is the scenario time after which
    a replication counts as stuck. `check` names what must hold in every replication.
    """

    seed: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**63 - 1),
        "the number that all chance in the scenario comes from",
    ] = 1
    replications: Annotated[
        int,
        msgspec.Meta(ge=1, le=REPLICATIONS_LIMIT),
        "how often each cell is run, with other chance each time",
    ] = 1
    first: Annotated[
        int,
        msgspec.Meta(ge=0, le=REPLICATIONS_LIMIT),
        "the number of the first replication, which names its chance",
    ] = 0
    chance: Annotated[
        str, "what names the chance of all replications besides the seed, in place of the cell"
    ] = ""
    until: Annotated[
        str | tuple[str, ...], 'what ends a replication: "done", an event, a time; of a list, all'
    ] = "done"
    limit: Annotated[Duration, "scenario time after which a replication counts as stuck"] = (
        parse_duration("30d")
    )
    check: Annotated[
        str | tuple[str, ...],
        'what must hold: "all", "none", checks, file.py:function; "auto": all if faults are there',
    ] = "auto"
    converge: Annotated[
        Duration | None, "how long everything may take to end after the last fault has healed"
    ] = None


class WorkloadTable(msgspec.Struct, frozen=True, kw_only=True):
    """[workload]: what every agent queues, where an agent's own table doesn't say otherwise.

    The types are those of the built-in agent's keys of the same names.
    """

    runs: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=100_000)] | None, "how many runs each agent queues"
    ] = None
    start: Annotated[Durations | None, "when an agent queues its first run"] = None
    every: Annotated[
        Durations | None, "the time between two runs of an agent; 0s queues all at once"
    ] = None
    submit: Annotated[
        Literal["at once", "in turn"] | None,
        "whether to queue the next run only after the last one's ticket",
    ] = None
    session: Annotated[str | None, "the session to run; without it an agent's runs take turns"] = (
        None
    )


class SessionTable(msgspec.Struct, frozen=True, kw_only=True):
    """[[session]]: a saved Graph on a desktop, ticked for a project unless `shared` is off."""

    name: Annotated[str, "what the session is called; its slug comes from this"]
    project: Annotated[str, "the project that it belongs to"] = "default"
    relay: Annotated[str | None, "the relay whose desktop has it; without it the first"] = None
    shared: Annotated[bool, "whether it is shared with its project when the scenario begins"] = True


class StepTable(msgspec.Struct, frozen=True, kw_only=True):
    """[[step]]: what the owner of a session's desktop does, `at` so long after the start."""

    at: Annotated[Duration, "when the owner does it, counted from the start"]
    act: Annotated[
        Literal["share", "unshare", "rename", "enable", "disable"],
        "what the owner does; enable and disable concern the session's project",
    ] = msgspec.field(name="do")
    session: Annotated[str | None, "the session that it concerns; without it the first"] = None


class LinkTable(msgspec.Struct, frozen=True, kw_only=True):
    """[[link]]: latency on the ways whose ends match the globs, both ways unless `both` is off.

    Where several match, the first in the file counts. Messages of one way never overtake another.
    """

    source: Annotated[str, "the senders that it holds for, a glob of actor names"] = msgspec.field(
        name="from", default="*"
    )
    target: Annotated[str, "the receivers that it holds for, a glob of actor names"] = (
        msgspec.field(name="to", default="*")
    )
    latency: Annotated[Durations, "how long a message is on its way"]
    both: Annotated[bool, "whether it holds for the way back too"] = True


class MetricTable(msgspec.Struct, frozen=True, kw_only=True):
    """[metrics.NAME]: a count of something, a value of an event, or the time from one to another.

    A row is a run, or with `per = "replication"` a replication. There `take` picks the first or the
    last occurrence of `to`, counted from the first of `from`. Of a value each occurrence is a row.
    """

    count: Annotated[str | None, "counts what this matcher accepts: an event or a message type"] = (
        None
    )
    value: Annotated[
        str | None, "reads this field of an event or a message, as run.terminal.chars"
    ] = None
    source: Annotated[str | None, 'begins to measure a time, in seconds; or "start"'] = (
        msgspec.field(name="from", default=None)
    )
    target: Annotated[str | None, "ends what `from` begins"] = msgspec.field(
        name="to", default=None
    )
    per: Annotated[Literal["run", "replication"], "what a row of results stands for"] = "run"
    take: Annotated[Literal["first", "last"], 'which `to` counts, with per = "replication"'] = (
        "first"
    )

    def __post_init__(self) -> None:
        forms = [
            self.count is not None,
            self.value is not None,
            self.source is not None or self.target is not None,
        ]
        if sum(forms) != 1:
            raise ValueError("a metric has either count, or value, or from and to")
        if (self.source is None) != (self.target is None):
            raise ValueError("a time has both from and to")
        if self.value is not None and self.per == "replication":
            raise ValueError("each occurrence of a value is a row: leave per out")
        if self.take == "last" and (self.source is None or self.per == "run"):
            raise ValueError('take is for a time with per = "replication"')


class TableTable(msgspec.Struct, frozen=True, kw_only=True):
    """[[table]]: statistics by cell; `rows` is the swept key (or keys) that name its rows."""

    columns: Annotated[
        tuple[str, ...], msgspec.Meta(min_length=1), "statistics of metrics, as calls.mean"
    ]
    rows: Annotated[str | tuple[str, ...], "the swept key or keys that name the rows"] = ()
    title: Annotated[str, "what stands above the table"] = ""


class ExpectTable(msgspec.Struct, frozen=True, kw_only=True):
    """[[expect]]: what must hold. `note` says where it comes from, `quote` what was published."""

    that: Annotated[str, "the expectation, as calls.mean[every 2s] equals 46.7"]
    note: Annotated[str, "where it comes from"] = ""
    quote: Annotated[str, "the words of whoever published it"] = ""


class ActorTable(msgspec.Struct, frozen=True, kw_only=True):
    """What every actor's table may have besides the keys of its class's Config."""

    count: Annotated[Count, "how many there are of it: relay-1, relay-2 and so on"] = 1
    use: Annotated[str | None, 'a class of your own, as my_relay.py:MyRelay; or "built-in"'] = None
    command: Annotated[
        Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None,
        "a program of your own, which joins over the wire: it and its arguments",
    ] = None
    name: Annotated[Name | None, "its name, which matchers and globs see"] = None


class TopTable(msgspec.Struct, frozen=True, kw_only=True):
    """The keys at the top of a scenario file."""

    schema: Annotated[int, "the version of this format: 1"]
    name: Annotated[
        str,
        msgspec.Meta(
            pattern=r"^[a-z0-9][a-z0-9-]{0,63}$(?!\n)",
            description="lower-case letters, digits and hyphens, 64 characters at most",
        ),
        "the scenario's name, in results and reports",
    ]
    summary: Annotated[str, "what it shows, in one sentence"] = ""
    profile: Annotated[
        Literal["published", "recommended"], "the defaults: as published, or as we would deploy"
    ] = "published"
    repetition: Annotated[
        int,
        msgspec.Meta(ge=1),
        "sets nothing: swept over, each value repeats the rest with chance of its own",
    ] = 1


PROFILES: dict[str, dict[Kind, dict[str, Any]]] = {
    "published": {},
    "recommended": {
        "server": {"hints": True, "reconcile": True, "wait_limit": "20s", "fair": True},
        "relay": {"jitter": "window", "presence": True, "strict_consent": True, "stop_limit": "1m"},
    },
}

FAULTS: dict[str, type[Fault]] = {
    "drop": Drop,
    "delay": Delay,
    "duplicate": Duplicate,
    "partition": Partition,
    "crash": Crash,
    "kill": Kill,
    "suspend": Suspend,
    "disk_full": DiskFull,
    "failed_write": FailedWrite,
    "reorder": Reorder,
    "hold": Hold,
    "pause": Pause,
    "clock_skew": ClockSkew,
    "clock_step": ClockStep,
    "clock_drift": ClockDrift,
    "schedule": Schedule,
    "timer_schedule": TimerSchedule,
    "commit_schedule": CommitSchedule,
    "reset": Reset,
    "half_close": HalfClose,
    "black_hole": BlackHole,
    "throttle": Throttle,
    "close_after": CloseAfter,
    "slice": Slice,
    "corrupt": Corrupt,
    "truncate": Truncate,
}

# What can be done to actors in processes of their own; between them there are no connections.
SEPARATE_FAULTS: tuple[type[Fault], ...] = (
    Crash,
    DiskFull,
    FailedWrite,
    ClockSkew,
    ClockStep,
    ClockDrift,
    Drop,
    Delay,
    Duplicate,
    Partition,
    Kill,
    Suspend,
    Reorder,
    Hold,
    Pause,
)


class Cast(msgspec.Struct, frozen=True, kw_only=True):
    """One actor of the cell: its kind, its name, its class or its program, and its config."""

    kind: Kind
    name: str
    use: str | None
    config: Any
    command: tuple[str, ...] | None = None

    @property
    def foreign(self) -> bool:
        """Whether its class is a user's own."""
        return self.use not in (None, GRAPH_USE, DESKTOP_USE)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of a scenario, complete: what `build` makes actors of."""

    top: TopTable
    run: RunTable
    until: tuple[str, ...]
    cast: tuple[Cast, ...]
    sessions: tuple[SessionTable, ...]
    steps: tuple[StepTable, ...]
    links: tuple[LinkTable, ...]
    faults: tuple[Fault, ...]
    metrics: dict[str, MetricTable]
