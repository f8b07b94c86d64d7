"""Random fault plans: each picks its own subset of faults and its own rates.

Swarm testing (Groce and others, ISSTA 2012): plans that leave faults out find more than plans that
always have all of them, since one fault often hides what another would show. A plan is plain data,
the `[[fault]]` tables of a scenario file, so what it finds can be run, read and shrunk as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from actors.chance import Stream
from actors.desktop.messages import DESKTOP_MESSAGES
from actors.graphs.messages import GRAPH_MESSAGES
from actors.messages import FleetDrop
from actors.streams import HashedStream
from scenarios.matchers import MESSAGES

HEAL_S = 1_200  # by then every fault of a plan is over
LONGEST_S = 300  # that one partition, sleep or full disk lasts
DOWN_S = 120  # that one actor is down at most
OFF_S = 100_000  # that one clock is off at most: over a day
INCLUDED = 0.4  # the share of plans that have a given fault
BREAKING = 5  # each so many-th plan breaks connections too: it takes longer, and more is lost by it

Table = dict[str, Any]

# Those of a Graph's agents and of a desktop's owner are not among them: most scenarios have none.
# Nor is what only a Graph that does not stop makes a relay say.
SELDOM = (*GRAPH_MESSAGES, *DESKTOP_MESSAGES, FleetDrop)
MESSAGES_OF_RUNS = [name for name, kind in MESSAGES.items() if kind not in SELDOM]


def plan_of(seed: int, number: int, kinds: Mapping[str, str]) -> list[Table]:
    """Return plan `number` of a seed, for actors of these kinds by name; at least one fault."""
    stream = HashedStream(f"explore/{seed}".encode()[:64], f"plan/{number}")
    while True:
        tables = [
            table
            for make in _MENU
            if stream.random() < INCLUDED
            for table in make(stream, list(kinds))
        ]
        if tables:
            break
    if number % BREAKING == BREAKING - 1:
        tables += _breaks(seed, number, list(kinds))
    for index, table in enumerate(tables, 1):
        table["name"] = f"plan-{table['kind']}-{index}"
    return tables


def _breaks(seed: int, number: int, names: list[str]) -> list[Table]:
    """Return faults of connections, drawn by themselves: those of messages stay as they are."""
    stream = HashedStream(f"explore/{seed}".encode()[:64], f"breaks/{number}")
    ends = ["*", *names]
    return [
        {"kind": kind, _one(stream, ["from", "to"]): _one(stream, ends)}
        | make(stream)
        | _span(stream)
        for kind, make in _BREAKS.items()
        if stream.random() < INCLUDED
    ]


def _rate(stream: Stream, low: float, high: float) -> float:
    """Draw a rate whose logarithm is uniform, so that rare and frequent are equally likely."""
    return float(f"{low * (high / low) ** stream.random():.2g}")


def _seconds(stream: Stream, high: float) -> float:
    return round(stream.random() * high, 1)


def _text(seconds: float) -> str:
    return f"{seconds:g}s"


def _one(stream: Stream, names: list[str]) -> str:
    return names[int(stream.random() * len(names))]


def _often(stream: Stream, kind: str, high: float, **more: Any) -> Table:
    """Return a fault that acts with a probability until everything heals."""
    return {
        "kind": kind,
        "probability": _rate(stream, 0.001, high),
        "for": _text(HEAL_S),
        **more,
    }


def _span(stream: Stream) -> Table:
    """Return a time that ends before everything heals."""
    lasts = 1 + _seconds(stream, LONGEST_S)
    return {"at": _text(_seconds(stream, HEAL_S - lasts)), "for": _text(round(lasts, 1))}


def _drops(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield _often(stream, "drop", 0.3, **{"from": _one(stream, ["*", *names])})


def _one_drop(stream: Stream, _names: list[str]) -> Iterator[Table]:
    yield {
        "kind": "drop",
        "message": _one(stream, MESSAGES_OF_RUNS),
        "nth": 1 + int(stream.random() * 4),
        "for": _text(HEAL_S),
    }


def _delays(stream: Stream, names: list[str]) -> Iterator[Table]:
    mean = _rate(stream, 0.1, 20)
    yield _often(
        stream,
        "delay",
        0.5,
        delay=f"exponential(mean={_text(mean)}, max={LONGEST_S}s)",
        to=_one(stream, ["*", *names]),
    )


def _duplicates(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield _often(stream, "duplicate", 0.3, to=_one(stream, ["*", *names]))


def _reorders(stream: Stream, _names: list[str]) -> Iterator[Table]:
    yield _often(stream, "reorder", 0.3, delay=f"uniform(0s, {_text(_rate(stream, 1, 60))})")


def _partitions(stream: Stream, names: list[str]) -> Iterator[Table]:
    for _ in range(1 + int(stream.random() * 2)):
        yield {
            "kind": "partition",
            "from": _one(stream, names),
            "to": _one(stream, ["*", *names]),
            "both": stream.random() < 0.7,
            **_span(stream),
        }


def _holds(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield {"kind": "hold", "from": _one(stream, ["*", *names]), **_span(stream)}


def _kills(stream: Stream, names: list[str]) -> Iterator[Table]:
    for _ in range(1 + int(stream.random() * 3)):
        yield {
            "kind": "kill",
            "actor": _one(stream, names),
            "at": _text(_seconds(stream, HEAL_S - DOWN_S)),
            "down": _text(_seconds(stream, DOWN_S)),
        }


def _sleeps(stream: Stream, names: list[str]) -> Iterator[Table]:
    kind = _one(stream, ["suspend", "pause"])
    yield {"kind": kind, "actor": _one(stream, names), **_span(stream)}


def _crashes(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield _often(
        stream,
        "crash",
        0.05,
        actor=_one(stream, ["*", *names]),
        point=_one(stream, ["before", "after"]),
        down=f"uniform(0s, {_text(_rate(stream, 1, DOWN_S))})",
    )


def _bad_writes(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield _often(stream, "failed_write", 0.05, actor=_one(stream, ["*", *names]))


def _full_disks(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield {"kind": "disk_full", "actor": _one(stream, names), **_span(stream)}


def _skews(stream: Stream, names: list[str]) -> Iterator[Table]:
    yield {
        "kind": "clock_skew",
        "actor": _one(stream, names),
        "by": _offset(stream),
        **_span(stream),
    }


def _steps(stream: Stream, names: list[str]) -> Iterator[Table]:
    for _ in range(1 + int(stream.random() * 3)):
        yield {
            "kind": "clock_step",
            "actor": _one(stream, names),
            "at": _text(_seconds(stream, HEAL_S)),
            "by": _offset(stream),
        }


def _drifts(stream: Stream, names: list[str]) -> Iterator[Table]:
    rate = _rate(stream, 0.5, 2)
    yield {"kind": "clock_drift", "actor": _one(stream, names), "rate": rate, **_span(stream)}


def _offset(stream: Stream) -> str:
    sign = "-" if stream.random() < 0.5 else "+"
    return f"{sign}{_text(_rate(stream, 1, OFF_S))}"


_MENU: tuple[Callable[[Stream, list[str]], Iterator[Table]], ...] = (
    _drops,
    _one_drop,
    _delays,
    _duplicates,
    _reorders,
    _partitions,
    _holds,
    _kills,
    _sleeps,
    _crashes,
    _bad_writes,
    _full_disks,
    _skews,
    _steps,
    _drifts,
)

_BREAKS: dict[str, Callable[[Stream], Table]] = {
    "reset": lambda stream: {"every": 1 + int(stream.random() * 3)},
    "half_close": lambda stream: {"after": _text(_seconds(stream, 60))},
    "black_hole": lambda stream: {"probability": 0.5 + 0.5 * round(stream.random(), 2)},
    "throttle": lambda stream: {"rate": f"{_rate(stream, 30, 10_000):g}B"},
    "close_after": lambda stream: {"bytes": f"{_rate(stream, 200, 50_000):g}B"},
    "slice": lambda stream: {
        "size": "uniform(1B, 64B)",
        "pause": f"uniform(0s, {_text(_rate(stream, 0.01, 1))})",
    },
    "corrupt": lambda stream: {
        "share": _rate(stream, 0.0001, 1),
        "every": 1 + int(stream.random() * 3),
    },
    "truncate": lambda stream: {"chunk": 1 + int(stream.random() * 30)},
}
