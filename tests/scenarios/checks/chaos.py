"""Worlds in which much goes wrong until a time, and their histories.

On every way messages are lost, late or doubled; any turn may fail or kill its actor. From
`HEALED_US` on nothing goes wrong any more, and everything has `CONVERGE_US` to come to rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from actors.actor import Commit
from actors.simulator import ActorContext, Simulator
from actors.stores.memory import Undo
from logs.keep import MemoryRecorder
from scenarios.build import CellRun
from scenarios.checks.history import History, history_of
from scenarios.spec import Scenario
from tests.scenarios.loading import load
from transports.envelope import Envelope
from transports.memory import Link

S = 1_000_000  # a second in microseconds
HEALED_US = 600 * S
CONVERGE_US = 900 * S
STORY = """
profile = "{profile}"
[run]
until = "1600s"
[server]
run_deadline = "5m"
[engine]
duration = "uniform(5s, 60s)"
failure = 0.2
result_chars = "choice(2, 120000)"
[[agent]]
name = "claude"
runs = 3
every = "{every}"
poll = "every 10s"
leak_to = "eve"
[[agent]]
name = "bob"
runs = 2
start = "{start}"
every = "20s"
poll = "backoff 5s x2 max 30s"
cancel = "{cancel}"
[[agent]]
name = "eve"
runs = 0
[[session]]
name = "demo"
[[session]]
name = "other"
[[step]]
at = "{unshare}"
do = "unshare"
[[step]]
at = "200s"
do = "share"
"""


def scenario(folder: Path, profile: str, seed: int, *edits: tuple[str, str]) -> Scenario:
    """Return a story whose times depend on a seed, its text edited by these replacements."""
    chance = Random(seed)
    text = STORY.format(
        profile=profile,
        every=f"{chance.randint(0, 60)}s",
        start=f"{chance.randint(0, 60)}s",
        cancel=f"{chance.randint(1, 120)}s",
        unshare=f"{chance.randint(20, 150)}s",
    )
    for old, new in edits:
        assert old in text, f"nothing to replace by {new}"
        text = text.replace(old, new)
    return load(folder, text).scenarios[0]


class ChaosLink(Link):
    """A way that loses, delays and doubles messages, in order, until the faults are lifted."""

    __slots__ = ("_chance", "_host", "_odds")

    def __init__(self, host: Simulator, chance: Random, odds: float) -> None:
        super().__init__(host, host._outbox, latency_us=self._draw)
        self._host, self._chance, self._odds = host, chance, odds

    def _draw(self) -> int:
        if self._host.now_us >= HEALED_US or self._chance.random() > self._odds:
            return 20_000
        return self._chance.randrange(15 * S)

    def release(self, envelope: Envelope[Any]) -> None:
        if self._host.now_us < HEALED_US:
            if self._chance.random() < self._odds:
                self._host.lose(envelope, "chaos")
                return
            if self._chance.random() < self._odds:
                super().release(envelope)
        super().release(envelope)


class ChaosCell(CellRun):
    """A cell on such ways, with turns that end badly."""

    def __init__(self, world: Scenario, seed: int, odds: float) -> None:
        self.chance = Random(f"chaos {seed}")
        self.odds = odds
        super().__init__(world, seed, "chaos", Path(), self.commit)

    def _link(self, source: str, target: str) -> Link:
        return ChaosLink(self.simulator, self.chance, self.odds)

    def commit(self, context: ActorContext, _writes: Sequence[Undo]) -> Commit:
        if self.simulator.now_us >= HEALED_US or self.chance.random() > self.odds / 2:
            return Commit.DONE
        return self.chance.choice((Commit.FAILED, Commit.CRASHED))


def chaos_history(
    folder: Path, profile: str, seed: int, odds: float, *edits: tuple[str, str]
) -> History:
    """Return the history of one such world."""
    cell = ChaosCell(scenario(folder, profile, seed, *edits), seed, odds)
    return history(cell, healed_us=HEALED_US, converge_us=CONVERGE_US)


def history(cell: CellRun, **how: Any) -> History:
    """Run a cell's first replication and return its history."""
    recorder = MemoryRecorder()
    cell.simulator.run(0, recorder)
    return history_of(cell, recorder, **how)
