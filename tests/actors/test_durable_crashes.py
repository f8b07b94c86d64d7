"""Every process is killed before and after each of its writes and commits, on real stores.

The points are counted in a run that nothing happens to, not chosen. Whatever is killed when, the
run ends, its agent learns it, its Graph starts at most once, and nothing is left to be posted.
`make test` takes some of the points of each story, `make soak` every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from actors.actor import Place
from actors.agent import Agent
from actors.chance import Durations
from actors.engine import Engine
from actors.polls import parse_polls
from actors.relay import Relay
from actors.server import Server
from tests.actors.crashing import DURABLE, CrashingStore, CrashingWorld
from tests.actors.harness import S, Trace, make_cell, put_to_work
from tests.actors.stores.killed import KilledPostgres, KilledSqlite
from tests.actors.verdicts import complaints
from transports.faults.drop import Drop
from transports.memory import Link
from transports.units import Duration

UNTIL_US = 60 * S  # the run takes 12 s, a lost answer 10 s more: twice everything, and a pass
STORES: dict[str, Any] = {"sqlite": KilledSqlite, "postgres": KilledPostgres}
POLLS = parse_polls("every 3s")
AGENTS = {
    "run": Agent.Config(poll=POLLS),
    "cancel while queued": Agent.Config(poll=POLLS, cancel_us=Durations.parse("1s")),
    "cancel while running": Agent.Config(poll=POLLS, cancel_us=Durations.parse("6s")),
    "a lost reply to the start": Agent.Config(poll=POLLS),
    "a lost reply to the result": Agent.Config(poll=POLLS),
}
DROPS = {
    "a lost reply to the start": Drop(message="StartAnswer", nth=1),
    "a lost reply to the result": Drop(message="Accepted", nth=1),
}
TRIED = {"sqlite": 12, "postgres": 5}  # points of a story in `make test`

Crash = tuple[str, int, bool]  # whose process, at the how manieth of its points, and after it


class Play:
    """One story on stores of a kind, with one crash or none. `serve` makes another server."""

    serve: Callable[[Place], Server] | None = None

    def __init__(
        self, kind: str, story: str, crash: Crash | None = None, until_us: int = UNTIL_US
    ) -> None:
        self.stores = {
            name: CrashingStore(
                STORES[kind](), crash[1:] if crash is not None and crash[0] == name else None
            )
            for name in DURABLE
        }
        self.trace = Trace()
        self.unheard = int(crash is not None and crash[2])
        drop = DROPS.get(story)
        judge = None if drop is None else drop.at_work()

        def link(sim: Any, _source: str, _target: str) -> Link | None:
            return None if judge is None else sim.new_link(judges=[judge])

        self.sim: Any  # what a durable world has besides is asked of it
        self.sim = make_cell(
            server=Server.Config(reconcile=True),
            serve=self.serve,
            relay=Relay.Config(
                poll_us=Duration(4 * S),
                phase_us=Durations.parse("2s"),
                presence=True,
                strict_consent=True,
            ),
            engine=Engine.Config(duration_us=Durations.parse("6s")),
            agent=AGENTS[story],
            link=link,
            host=CrashingWorld,
        )
        if judge is not None:
            put_to_work(judge, self.sim)
        for name, store in self.stores.items():
            self.sim.keep(name, store)
        self.sim.on_begin.append(lambda: self.sim.at(until_us, self.sim.finish))

    def wrong(self) -> list[str]:
        """Play it; return what is not as it must be."""
        try:
            self.sim.run(0, self.trace)
            return complaints(self.sim, self.trace, unheard=self.unheard)
        finally:
            for store in self.stores.values():
                store.close()

    def points(self) -> Iterator[Crash]:
        for name, store in self.stores.items():
            for number in range(len(store.done)):
                yield (name, number, False)
                yield (name, number, True)


def undisturbed(kind: str, story: str) -> Play:
    play = Play(kind, story)
    assert play.wrong() == []
    return play


def wrong_of(kind: str, story: str, crashes: list[Crash]) -> dict[Any, list[str]]:
    """Play the story with each crash; return those after which something is not as it must be."""
    wrong = {}
    for crash in crashes:
        play = Play(kind, story, crash)
        found = play.wrong()
        name, number, _ = crash
        assert play.stores[name].crashed, "a run is the same up to its crash"
        if found:
            wrong[crash, play.stores[name].done[number]] = found
    return wrong


@pytest.mark.parametrize("story", AGENTS)
@pytest.mark.parametrize("kind", STORES)
def test_a_process_may_be_killed_at_some_of_its_points(kind: str, story: str) -> None:
    points = list(undisturbed(kind, story).points())
    chosen = Random(f"{kind} {story}").sample(points, TRIED[kind])
    assert wrong_of(kind, story, sorted(chosen)) == {}


@pytest.mark.soak
@pytest.mark.parametrize("story", AGENTS)
@pytest.mark.parametrize("kind", STORES)
def test_a_process_may_be_killed_at_any_of_its_points(kind: str, story: str) -> None:
    assert wrong_of(kind, story, list(undisturbed(kind, story).points())) == {}


@pytest.mark.parametrize("kind", STORES)
def test_the_points_are_every_process_s_writes_and_commits(kind: str) -> None:
    stores = undisturbed(kind, "run").stores
    tables = {name: {point.split()[-1] for point in store.done} for name, store in stores.items()}
    assert tables["server"] >= {"commit", "runs", "tickets", "devices"}
    assert tables["relay"] >= {"commit", "journal", "outbox"}
    assert tables["engine"] >= {"commit", "executions"}
