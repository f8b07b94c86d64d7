"""Measure what durability costs: turns a second of each store, with rows as a server has them.

A turn reads a run's row and writes it back changed, as most of a server's turns do; the row is of
750 bytes, or has a result of 20,000 characters. The stores take turns, and the best round of each
counts, since a busy machine only ever slows them. A disk's flush decides the synchronous figures.
Then the same for a whole server: runs a second that it queues for a crowd of agents, each on the
disk when it is answered, with up to 64 turns a commit and with one.

    python -m bench.store [--seconds 0.3] [--rounds 3] [--folder .]
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from actors.actor import Table
from actors.durable import GROUP_TURNS
from actors.ledger import RUNS, Run
from actors.messages import Completion
from actors.stores.memory import MemoryStore, Undo
from actors.stores.postgres import PostgresStore
from actors.stores.sqlite import SqliteStore
from bench.postgres import address, running_server
from bench.submissions import submissions_per_s

RUNS_KEPT = 1_000
RUNNING = ExitStack()  # the one PostgreSQL server, once a store has asked for it
RESULTS = {"750-byte rows": "", "20 KB results": "x" * 20_000}


class Way(NamedTuple):
    """A store in use: its table, what begins and ends a turn, what makes turns durable."""

    table: Table[Run]
    begin: Callable[[], None]
    end: Callable[[], None]
    commit: Callable[[], None]


def run(number: int, result: str) -> Run:
    """Return the row of a run that has ended."""
    return Run(
        command_id=f"0190a6e0-0000-7000-8000-{number:012}",
        agent="agent-1",
        key=f"idempotency-key-{number:020}",
        device="relay-1",
        session="gs_0123456789abcdef0123456789abcdef",
        slug="quarterly-report",
        generation=1,
        arguments={"question": "What did we sell last quarter?", "limit": 10},
        status="completed",
        queued_us=1_760_000_000_000_000,
        open_on=None,
        open_for=None,
        due_us=1_760_600_000_000_000 + number,
        boot="0190a6e0-1111-7000-8000-000000000000",
        delivery=1,
        started_us=1_760_000_010_000_000,
        finished_us=1_760_000_070_000_000,
        completion=Completion(execution_id="ex-1", status="completed", result=result),
    )


def turns_per_s(way: Way, result: str, group: int, duration_s: float) -> float:
    """Return how many turns a second are committed, `group` at a time."""
    keys = [f"run-{number}" for number in range(RUNS_KEPT)]
    for number, key in enumerate(keys):
        way.table.put(key, run(number, result))
    way.commit()
    turns = 0
    begun_s = time.perf_counter()
    while (took_s := time.perf_counter() - begun_s) < duration_s:
        for _ in range(group):
            way.begin()
            key = keys[turns % RUNS_KEPT]
            row = way.table.get(key)
            assert row is not None
            way.table.put(key, msgspec.structs.replace(row, due_us=row.due_us + 1))
            way.end()
            turns += 1
        way.commit()
    return turns / took_s


def nothing() -> None:
    """Begin or end a turn in memory: there is nothing to do."""


@contextmanager
def in_memory(_folder: Path) -> Iterator[Way]:
    """The store of experiments, with its undo journal."""
    journal: list[Undo] = []
    store = MemoryStore(journal)
    yield Way(store.table(RUNS), nothing, nothing, journal.clear)


def sqlite(synchronous: bool) -> Callable[[Path], Iterator[Way]]:
    """The store of deployments."""

    def opened(folder: Path) -> Iterator[Way]:
        with closing(SqliteStore(folder / "store.db", synchronous=synchronous)) as store:
            yield Way(store.table(RUNS), store.begin_turn, store.end_turn, store.commit)

    return opened


@contextmanager
def in_postgres(folder: Path) -> Iterator[Way]:
    """The store that several servers share, over a socket of this machine."""
    with closing(opened_postgres(folder)) as store:
        yield Way(store.table(RUNS), store.begin_turn, store.end_turn, store.commit)


def opened_postgres(folder: Path) -> PostgresStore:
    """A store in a new schema of the one server, which lies on the same disk as the others."""
    return PostgresStore(address(postgres_server(folder.parent), folder.name.lower()))


def opened_sqlite(folder: Path) -> SqliteStore:
    """A store in a new file."""
    return SqliteStore(folder / "store.db")


@cache
def postgres_server(folder: Path) -> str:
    """Start the one server."""
    place = Path(tempfile.mkdtemp(prefix="postgres-", dir=folder))
    return RUNNING.enter_context(running_server(place))


STORES = {
    "memory": (in_memory, 1),
    "sqlite, synchronous": (contextmanager(sqlite(True)), 1),
    f"the same, {GROUP_TURNS} turns a commit": (contextmanager(sqlite(True)), GROUP_TURNS),
    "sqlite, not synchronous": (contextmanager(sqlite(False)), 1),
    "postgres": (in_postgres, 1),
    f"postgres, {GROUP_TURNS} turns a commit": (in_postgres, GROUP_TURNS),
}
SERVERS: dict[str, Callable[[Path], Any]] = {
    "sqlite, synchronous": opened_sqlite,
    "postgres": opened_postgres,
}


def measure(folder: Path, duration_s: float, rounds: int) -> dict[tuple[str, str], float]:
    """Return the best rate of each store with each kind of row."""
    rates: dict[tuple[str, str], float] = {}
    for _ in range(rounds):
        for name, (open_store, group) in STORES.items():
            for rows, result in RESULTS.items():
                with ExitStack() as stack:
                    place = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
                    way = stack.enter_context(open_store(Path(place)))
                    rate = turns_per_s(way, result, group, duration_s)
                rates[name, rows] = max(rate, rates.get((name, rows), 0))
    return rates


def measure_servers(folder: Path, duration_s: float, rounds: int) -> dict[tuple[str, int], float]:
    """Return the best rate of submissions of each store, by how many turns may share a commit."""
    rates: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for name, open_store in SERVERS.items():
            for group_turns in (1, GROUP_TURNS):
                with (
                    tempfile.TemporaryDirectory(dir=folder) as place,
                    closing(open_store(Path(place))) as store,
                ):
                    rate = submissions_per_s(store, group_turns=group_turns, duration_s=duration_s)
                rates[name, group_turns] = max(rate, rates.get((name, group_turns), 0))
    return rates


def main(arguments: list[str] | None = None) -> None:
    """Measure and print one line a store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each round takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="on which disk; a temporary one if not given")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, RUNNING:
        rates = measure(Path(folder), given.seconds, given.rounds)
        servers = measure_servers(Path(folder), given.seconds, given.rounds)
        print(f"{'turns a second':28}" + "".join(f"{rows:>16}" for rows in RESULTS))
        for name in STORES:
            print(f"{name:28}" + "".join(f"{rates[name, rows]:>16,.0f}" for rows in RESULTS))
        print(f"\n{'submissions a second':28}{'a commit each':>16}{'up to 64':>16}{'ratio':>16}")
        for name in SERVERS:
            alone, grouped = servers[name, 1], servers[name, GROUP_TURNS]
            print(f"{name:28}{alone:>16,.0f}{grouped:>16,.0f}{grouped / alone:>15.1f}x")


if __name__ == "__main__":
    main()
