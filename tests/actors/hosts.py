"""The hosts that drive actors under a virtual clock, and worlds of puppets on any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from actors.actor import Place
from actors.agent import Agent
from actors.engine import Engine
from actors.guarded import simulator
from actors.relay import Relay
from actors.server import Server
from actors.world import TrioWorld
from tests.actors.harness import SESSION, S
from tests.actors.puppets import World

MakeHost = Callable[[int, str], Any]

EVERY_HOST = pytest.mark.parametrize(
    "host",
    [simulator, partial(simulator, guarded=True), TrioWorld],
    ids=["simulator", "guarded", "trio"],
)

COMMITTING_HOST = pytest.mark.parametrize(
    "host", [partial(simulator, guarded=True), TrioWorld], ids=["guarded", "trio"]
)


class Hosted(World):
    """A world of puppets on a host of one's choice, that ends at a set time."""

    sim: Any  # what only some hosts have is asked of it too

    def __init__(
        self,
        host: MakeHost,
        links: Mapping[tuple[str, str], Callable[[], int]] | None = None,
        until_us: int = 100 * S,
        seed: int = 1,
        **puppets: Any,
    ) -> None:
        super().__init__(None, links, until_us, seed, host=host, **puppets)

    def at(self, due_us: int, act: Callable[..., None], *args: Any) -> None:
        """Do something to the world at a time, in each replication."""
        self.sim.on_begin.append(lambda: self.sim.at(due_us, lambda: act(*args)))


def by_actor(seen: list[tuple[Any, ...]], actor: str) -> list[tuple[Any, ...]]:
    """What one puppet saw, in its order, without its name."""
    return [(at_us, *what) for at_us, who, *what in seen if who == actor]


def whole_cell(host: MakeHost, seed: int) -> Any:
    """A server, a relay, an engine and an agent, whose workload ends the replication."""
    sim = host(seed, "")
    here = (SESSION,)
    sim.add("server", Server(Server.Config(), Place(name="server", sessions=here)))
    sim.add("relay", Relay(Relay.Config(), Place(name="relay", sessions=here)))
    sim.add("engine", Engine(Engine.Config(), Place(name="engine")))
    sim.add("agent", Agent(Agent.Config(), Place(name="agent", sessions=here)))
    sim.connect(lambda _source, _target: None)
    sim.on_done = lambda _name: sim.finish()
    return sim
