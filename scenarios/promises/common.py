"""What every actor promises, whatever its part."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from actors.actor import Commit, Unanswered
from actors.errors import SimulationError
from actors.messages import (
    Accepted,
    CancelGraphRun,
    Commands,
    Complete,
    Control,
    ControlAnswer,
    Disable,
    Enable,
    Failure,
    FleetAcknowledged,
    FleetCancel,
    FleetFinished,
    FleetQuery,
    FleetRun,
    FleetStarted,
    GetGraphRun,
    GraphRun,
    ListGraphSessions,
    Noted,
    Rename,
    RunGraphSession,
    Share,
    Start,
    StartAnswer,
    Sync,
    Unshare,
)
from scenarios.promises.stage import (
    TURNS_TRIED,
    Death,
    EndlessError,
    Play,
    Promise,
    Record,
    Subject,
    step,
)
from scenarios.spec import Kind
from transports.faults.drop import Drop

# What peers say of their own accord, and the answers to what the part must ask.
UNDERSTOOD: Final[Mapping[Kind, tuple[type[Any], ...]]] = {
    "server": (
        *(ListGraphSessions, RunGraphSession, GetGraphRun, CancelGraphRun),
        *(Sync, Start, Control, Complete),
    ),
    "relay": (
        *(Commands, StartAnswer, ControlAnswer, Accepted, FleetStarted, FleetFinished),
        *(Share, Unshare, Rename, Enable, Disable, Unanswered),
    ),
    "engine": (FleetRun, FleetQuery, FleetCancel, FleetAcknowledged, Unanswered),
    "agent": (GraphRun, Failure, Unanswered),
    "owner": (Noted, Unanswered),
}
WORLDLY: Final = frozenset(
    (
        *("asyncio", "anyio", "trio", "threading", "time", "datetime", "random", "secrets", "uuid"),
        *("os", "pathlib", "socket", "sqlite3", "subprocess", "http", "urllib", "requests"),
    )
)
STEPS: Final = (step(3, "unshare"), step(4, "share"), step(300, "unshare"))
FORGETS: Final = (
    "a replication with the same seed went another way: an attribute is kept that on_start "
    "does not rebuild, or a clock or a random source is read"
)


def story(subject: Subject, **how: Any) -> Play:
    """Return the story in which all take part: two runs, one after another."""
    steps = STEPS if subject.kind == "owner" else ()
    return Play(agent={"runs": 2}, steps=steps, **how)


def config_is_frozen(subject: Subject) -> Iterator[str]:
    """The struct can be shared by replications, and a scenario may leave every key out."""
    kind = type(subject.config)
    config: Any = getattr(kind, "__struct_config__", None)
    if config is None:
        yield f"{kind.__name__} is no msgspec struct"
        return
    if not config.frozen:
        yield f"{kind.__name__} is not frozen"
    for field in msgspec.structs.fields(kind):
        if field.required:
            yield f"{field.encode_name} has no default"


def understands(subject: Subject) -> Iterator[str]:
    """A message without a handler ends a replication."""
    handlers = Play().stage(subject).contexts[subject.kind].handlers
    for message in UNDERSTOOD[subject.kind]:
        if message not in handlers:
            yield f"it has no handler for {message.__name__}"


def is_of_this_world_alone(subject: Subject) -> Iterator[str]:
    """What it does depends on its context alone."""
    try:
        source = inspect.getsource(inspect.getmodule(subject.actor_class) or subject.actor_class)
    except (OSError, TypeError):
        return
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if name.split(".")[0] in WORLDLY:
                yield f"line {getattr(node, 'lineno', 0)} imports {name}"


def tickets(record: Record) -> int:
    """Return how many runs there were."""
    return len({each.command_id for each in record.of(GraphRun)})


def ends_well(subject: Subject, record: Record, wanted: int) -> Iterator[str]:
    """Every ticket ends, as its agent was told, of as many as wanted; no Graph starts twice."""
    open_runs = {each.command_id for each in record.of(GraphRun)} - set(record.endings())
    if open_runs:
        yield f"{len(open_runs)} of the runs never ended"
    if tickets(record) != wanted and not record.of(Failure):
        yield f"{tickets(record)} runs were queued for {wanted} jobs"
    for run, count in executions(record).items():
        if count > 1:
            yield f"the Graph of {run} started {count} times"
    if subject.kind == "owner" and len(record.of(Noted)) < len(STEPS):
        yield f"the relay noted {len(record.of(Noted))} of {len(STEPS)} changes"


def executions(record: Record) -> Counter[str]:
    """Return how many executions each channel had, as the engine told them."""
    told = {(each.channel, each.execution_id) for each in record.of(FleetStarted)}
    told |= {
        (each.channel, each.completion.execution_id or "")
        for each in record.of(FleetFinished)
        if each.completion.execution_id
    }
    return Counter(channel for channel, _ in told)


def tells_its_story(subject: Subject) -> Iterator[str]:
    """In a world without faults."""
    record = story(subject).run(subject)
    if not tickets(record):
        yield "no run was queued"
    yield from ends_well(subject, record, tickets(record) if subject.kind == "agent" else 2)
    statuses = {each.status for each in record.endings().values()} - {"completed", "failed"}
    if statuses and subject.kind != "owner":
        yield f"a run ended as {', '.join(sorted(statuses))} though nothing was wrong"


def is_the_same_each_time(subject: Subject) -> Iterator[str]:
    """Alone, again, and after another replication of the same object."""
    alone = story(subject).run(subject, 1).lines
    if story(subject).run(subject, 1).lines != alone or (
        story(subject).run(subject, 0, 1).lines != alone
    ):
        yield FORGETS


def bears_losses(subject: Subject) -> Iterator[str]:
    """Each message that it says or hears, lost once, at its first, second and third time."""
    clean = story(subject).run(subject)
    names = {
        type(each.envelope.body).__name__
        for each in clean.said
        if subject.kind in {each.envelope.source, each.envelope.target}
    }
    for name in sorted(names):
        for nth in (1, 2, 3):
            record = story(subject, lost=Drop(message=name, nth=nth)).run(subject)
            for complaint in ends_well(subject, record, tickets(clean)):
                yield f"when {name} number {nth} was lost, {complaint}"


def survives_death(subject: Subject) -> Iterator[str]:
    """At each of its turns, by a crash and by a failed commit."""
    for verdict in (Commit.CRASHED, Commit.FAILED):
        count = Death(subject.kind)
        wanted = tickets(story(subject, death=count).run(subject))
        for turn in range(1, min(count.turns, TURNS_TRIED) + 1):
            try:
                record = story(subject, death=Death(subject.kind, turn, verdict)).run(subject)
                complaints = list(ends_well(subject, record, wanted))
            except EndlessError:
                raise
            except SimulationError as error:
                complaints = [f"{error}: {error.__cause__!r}"]
            for complaint in complaints:
                yield f"when {verdict.value} in its turn {turn}, {complaint}"


SHAPE: Final = (
    Promise("Its Config is a frozen msgspec struct whose keys all have defaults", config_is_frozen),
    Promise("It understands every message that its peers may say to it", understands),
    Promise(
        "Its module imports nothing that brings a clock, chance, files or a network",
        is_of_this_world_alone,
        "warning",
    ),
)
COMMON: Final = (
    Promise("With it, every run ends and its agent learns it", tells_its_story),
    Promise(
        "The same seed gives the same story, also after other replications", is_the_same_each_time
    ),
    Promise("It bears the loss of any message, and no Graph starts twice", bears_losses),
    Promise("It survives death at any of its turns, and no Graph starts twice", survives_death),
)
