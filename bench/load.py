"""Measure one server process under the load of a deployment: desktops that poll, agents that ask.

The server is a real `pullcord server` on one core; the desktops and the agents are real clients of
it over TCP, all in this process, on another core. First everybody connects and every desktop syncs
once; then the agents begin, and after one interval of polls so does the measurement. How long an
answer took is told from the asking side. `told` is the time from posting a result until the agent
has it whose question was held back, `held` how long questions were. "A commit" is one transaction:
one flush of the disk, for all turns that share it.

    python -m bench.load [--duration 300] [--desktops 1000] [--agents 200] [--poll 20]
                         [--store sqlite] [--store postgresql] [--profile FILE]
    python -m bench.load --runs 100000      until so many runs have ended: does it stay as large?
    python -m bench.load --submit           agents that only submit, as fast as they are answered
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trio

from actors.durable import GROUP_TURNS
from actors.stores.postgres import PostgresStore
from bench.crowd import Crowd, Pace
from bench.deployment import Known, ServerProcess, Usage, enrolled, new_sqlite, serving
from bench.postgres import address, running_server

SAMPLES = 10  # of the memory, in a measurement
MIB = 1 << 20
LARGE = 1 << 30  # no limit
KINDS = ("sync", "start", "control", "complete", "submit", "get", "held", "told")
STORES = ("sqlite", "postgresql")
SYNC_LIMIT_S = 120.0  # for everybody to connect
SHARING = 20  # desktops for which agents only submit: the queue of one would get long
QUICK_POLL_S = 0.5  # of desktops whose runs are only there to be many
OPEN = {"agent_limit": LARGE, "device_limit": LARGE}
# Everything is over soon, so that a server that has reached its size has all kinds of rows to drop.
SHORT = {
    **OPEN,
    "hints": False,
    "retention": "10s",
    "key_retention": "10s",
    "audit_retention": "20s",
}


class Sample(NamedTuple):
    """A server at one moment of a measurement."""

    usage: Usage
    files_bytes: int
    runs: int


class Load(NamedTuple):
    """What came of a measurement: the crowd's notes, and the server at several moments."""

    crowd: Crowd
    samples: list[Sample]
    commits: int | None
    connected_s: float

    @property
    def took_s(self) -> float:
        """How long it took."""
        return self.samples[-1].usage.at_s - self.samples[0].usage.at_s

    @property
    def cpu_s(self) -> float:
        """What the server used of its core."""
        return self.samples[-1].usage.cpu_s - self.samples[0].usage.cpu_s


def quantile(values: list[float], share: float) -> float:
    """Return the value that such a share of these, which are in order, does not exceed."""
    return values[min(len(values) - 1, int(share * len(values)))]


def slope(points: list[tuple[float, float]]) -> float:
    """Return by how much y grows with x, by least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    across = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return across / (sum((x - mean_x) ** 2 for x, _ in points) or 1.0)


# The load


class Plan(NamedTuple):
    """Who comes, how they behave, and when the measurement is over."""

    devices: list[Known]
    agents: list[Known]
    pace: Pace
    duration_s: float
    runs: int | None  # ends it, if given, instead of the time


async def play(server: ServerProcess, plan: Plan, count_commits: bool) -> Load:
    """Let a crowd talk to a server, and measure."""
    crowd = Crowd(server.address, plan.pace, seed=1)
    async with trio.open_nursery() as nursery:
        begun_s = trio.current_time()
        for number, device in enumerate(plan.devices):
            nursery.start_soon(crowd.desktop, number, device)
        await all_synced(crowd, plan)
        connected_s = trio.current_time() - begun_s
        for number, agent in enumerate(plan.agents):
            nursery.start_soon(crowd.agent, number, agent, len(plan.devices))
        await trio.sleep(plan.pace.poll_s)
        crowd.forget()
        commits = server.commits() if count_commits else None
        samples = await measured(server, plan, crowd)
        if commits is not None:
            commits = server.commits() - commits
        nursery.cancel_scope.cancel()
    return Load(crowd, samples, commits, connected_s)


async def all_synced(crowd: Crowd, plan: Plan) -> None:
    """Wait until every desktop has synced; TooSlowError if that takes too long."""
    with trio.fail_after(SYNC_LIMIT_S):
        while crowd.synced < len(plan.devices):  # noqa: ASYNC110  it is many tasks' doing
            await trio.sleep(0.02)


async def measured(server: ServerProcess, plan: Plan, crowd: Crowd) -> list[Sample]:
    """Return what was seen of a server, at the beginning and at each tenth of the way."""

    def sample() -> Sample:
        return Sample(server.usage(), server.files_bytes(), crowd.runs)

    samples = [sample()]
    for number in range(1, SAMPLES + 1):
        if plan.runs is None:
            await trio.sleep(plan.duration_s / SAMPLES)
        else:
            while crowd.runs < plan.runs * number // SAMPLES:  # noqa: ASYNC110  as above
                await trio.sleep(0.05)
        samples.append(sample())
    return samples


# The tables


def table(load: Load) -> list[str]:
    """Return a measurement's lines."""
    took, runs = load.crowd.took_s, load.crowd.runs
    columns = "{:10}{:>9}{:>10}{:>10}{:>10}{:>10}"
    lines = [columns.format("ms", "count", "p50", "p95", "p99", "longest")]
    for kind in KINDS:
        values = sorted(took.get(kind, ()))
        if values:
            figures = [quantile(values, share) for share in (0.5, 0.95, 0.99)] + [values[-1]]
            shown = [f"{1000 * figure:,.1f}" for figure in figures]
            lines.append(columns.format(kind, f"{len(values):,}", *shown))
    messages = sum(len(took.get(kind, ())) for kind in KINDS if kind != "told")
    cpu = f"{load.cpu_s / load.took_s:.0%} of its core"
    each = f"{1000 * load.cpu_s / max(messages, 1):.2f} ms a message"
    lines.append(f"CPU        {cpu}, {each}, {messages / load.took_s:,.0f} messages a second")
    lines.append(f"runs       {runs:,} have ended, {runs / load.took_s:,.1f} a second")
    if load.commits is not None:
        lines.append(f"commits    {load.commits:,}, {load.commits / load.took_s:,.1f} a second")
    lines.append(f"memory     {memory(load)}")
    sizes = " ".join(f"{each.files_bytes / MIB:,.0f}" for each in load.samples)
    if load.samples[-1].files_bytes:
        lines.append(f"files      {sizes} MiB")
    errors = [f"{count:,} x {text}" for text, count in load.crowd.errors.items()]
    lines.append(f"errors     {'; '.join(errors) or 'none'}")
    return lines


def memory(load: Load) -> str:
    """Return what memory a server had, and how it grew, in words; the first third is left out."""
    settled = load.samples[len(load.samples) // 3 :]
    since_s = settled[0].usage.at_s
    points = [
        ((each.usage.at_s - since_s) / 60, each.usage.rss_bytes / MIB) for each in settled
    ]  # fmt: skip
    sizes = " ".join(f"{each.usage.rss_bytes / MIB:,.0f}" for each in load.samples)
    return f"{sizes} MiB, in the end {slope(points):+.2f} MiB a minute"


# Agents that only submit


class Rate(NamedTuple):
    """Submissions a second, and the server's CPU time for each."""

    per_s: float
    cpu_ms: float


async def submitted(server: ServerProcess, plan: Plan) -> Rate:
    """Return how many runs a second a server queues for agents that only submit."""
    crowd = Crowd(server.address, plan.pace, seed=1)
    async with trio.open_nursery() as nursery:  # desktops share their sessions, and go
        for number, device in enumerate(plan.devices):
            nursery.start_soon(crowd.desktop, number, device)
        await all_synced(crowd, plan)
        nursery.cancel_scope.cancel()
    crowd.forget()
    async with trio.open_nursery() as nursery:
        for number, agent in enumerate(plan.agents):
            nursery.start_soon(crowd.submitter, number, agent, len(plan.devices))
        while len(crowd.took_s["greeting"]) < len(plan.agents):  # noqa: ASYNC110  the same
            await trio.sleep(0.02)
        crowd.forget()
        before = server.usage()
        await trio.sleep(plan.duration_s)
        after = server.usage()
        done = len(crowd.took_s["submit"])
        nursery.cancel_scope.cancel()
    assert not crowd.errors, crowd.errors
    cpu_ms = 1000 * (after.cpu_s - before.cpu_s) / max(done, 1)
    return Rate(done / (after.at_s - before.at_s), cpu_ms)


# Wiring


class Bench:
    """One machine's servers, each on a folder of its own, and where their stores are."""

    def __init__(self, folder: Path, profile: Path | None) -> None:
        self._folder = folder
        self._profile = profile
        self._stack = ExitStack()
        self._served = 0
        self._postgres = ""
        self._core: int | None = None

    def __enter__(self) -> Bench:
        """Leave the first core to the server, where that can be chosen and there is another."""
        if sys.platform == "linux":
            mine = os.sched_getaffinity(0)
            self._core = min(mine)
            os.sched_setaffinity(0, mine - {self._core} or mine)
            self._stack.callback(os.sched_setaffinity, 0, mine)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(
        self,
        kind: str,
        counts: tuple[int, int],
        settings: Mapping[str, Any],
        play: Callable[[ServerProcess, list[Known], list[Known]], Any],
        turns: int = GROUP_TURNS,
    ) -> Any:
        """Serve from a new store of such a kind, for so many devices and agents."""
        self._served += 1
        folder = self._folder / f"server-{self._served}"
        folder.mkdir(mode=0o700)
        store = self._postgresql(folder.name) if kind == "postgresql" else ""
        devices, agents = enrolled(PostgresStore(store) if store else new_sqlite(folder), *counts)
        with serving(
            folder, settings, store=store, core=self._core, turns=turns, profile=self._profile
        ) as server:
            return play(server, devices, agents)

    def _postgresql(self, schema: str) -> str:
        """Return the address of a new schema of the one PostgreSQL server."""
        if not self._postgres:
            place = Path(tempfile.mkdtemp(prefix="postgres-", dir=self._folder))
            self._postgres = self._stack.enter_context(running_server(place))
        return address(self._postgres, schema.replace("-", "_"))


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    asked = parsed(arguments)
    stores = asked.store or ["sqlite"]
    with (
        tempfile.TemporaryDirectory(dir=asked.folder) as folder,
        Bench(Path(folder), asked.profile) as bench,
    ):
        if asked.submit:
            submissions(bench, asked, stores)
        else:
            for kind in stores:
                loaded(bench, asked, kind)


def loaded(bench: Bench, asked: argparse.Namespace, kind: str) -> None:
    """Print what a load does to a server."""
    pace = Pace().scaled(asked.poll)
    settings: Mapping[str, Any] = OPEN
    if asked.runs:
        pace = Pace().scaled(QUICK_POLL_S)._replace(think_s=(0.0, 0.0))
        settings = SHORT

    def play_it(server: ServerProcess, devices: list[Known], agents: list[Known]) -> Load:
        plan = Plan(devices, agents, pace, asked.duration, asked.runs)
        found: Load = trio.run(partial(play, server, plan, kind == "sqlite"))
        return found

    load = bench.run(kind, (asked.desktops, asked.agents), settings, play_it)
    many = (
        f"{asked.desktops:,} desktops that poll every {pace.poll_s:g} s and {asked.agents:,} agents"
    )
    print(f"{many}, one server on one core, {load.took_s:.0f} s; {kind}")
    print(f"all were connected and had synced once after {load.connected_s:.1f} s")
    print("\n".join(table(load)), flush=True)


def submissions(bench: Bench, asked: argparse.Namespace, stores: list[str]) -> None:
    """Print how many runs a second are queued, with many turns a commit and with one."""
    columns = "{:24}{:>16}{:>12}{:>8}{:>14}{:>12}"
    heads = ("a commit each", f"up to {GROUP_TURNS}", "ratio", "CPU ms each", "grouped")
    print(columns.format("submissions a second", *heads))

    def play_it(server: ServerProcess, devices: list[Known], agents: list[Known]) -> Rate:
        plan = Plan(devices, agents, Pace(), asked.duration, None)
        return trio.run(partial(submitted, server, plan))

    for kind in stores:
        alone, grouped = (
            bench.run(kind, (SHARING, asked.agents), OPEN, play_it, turns)
            for turns in (1, GROUP_TURNS)
        )
        ratio = f"{grouped.per_s / alone.per_s:.1f}x"
        rates = (f"{alone.per_s:,.0f}", f"{grouped.per_s:,.0f}", ratio)
        cpu = (f"{alone.cpu_ms:.2f}", f"{grouped.cpu_ms:.2f}")
        print(columns.format(kind, *rates, *cpu), flush=True)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--duration", type=float, default=300.0, help="seconds of measurement")
    parser.add_argument("--desktops", type=int, default=1_000)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--poll", type=float, default=20.0, help="seconds between two polls")
    parser.add_argument("--runs", type=int, help="measure until so many have ended")
    parser.add_argument("--submit", action="store_true", help="agents only submit")
    parser.add_argument("--store", choices=STORES, action="append", help="sqlite by default")
    parser.add_argument("--folder", type=Path, help="on which disk; a temporary one if not given")
    parser.add_argument("--profile", type=Path, help="where the server's cProfile goes")
    asked = parser.parse_args(arguments)
    if min(asked.desktops, asked.agents) < 1 or min(asked.duration, asked.poll) <= 0:
        parser.error("there must be a desktop and an agent, and times above 0")
    return asked


if __name__ == "__main__":
    main()
