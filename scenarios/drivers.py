"""What drives the actors: the simulator, or real tasks over byte streams or sockets."""

from __future__ import annotations

from collections.abc import Callable

from actors.simulator import Simulator
from actors.world import TrioWorld
from scenarios.choices import Transport
from scenarios.spec import Scenario
from transports.local import RANKS, TcpTransport, UnixTransport


def trio_world(
    scenario: Scenario, transport: Transport, speed: float
) -> Callable[[int, str], Simulator]:
    """Return what makes the world of a cell: over TCP on the machine's clock, at this speed."""
    if transport == "memory":
        return TrioWorld
    ranks = {one.name: RANKS[one.kind] for one in scenario.cast}

    kind = UnixTransport if transport == "unix" else TcpTransport

    def world(seed: int, cell: str) -> Simulator:
        return TrioWorld(seed, cell, transport=kind(ranks), clock=None, speed=speed)

    return world
