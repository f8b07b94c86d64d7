"""What drives the actors: the simulator, or real tasks over byte streams or sockets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from actors.actor import Place
from actors.simulator import Simulator
from actors.world import TrioWorld
from scenarios.build import places_of
from scenarios.choices import Processes, Transport
from scenarios.program_world import ProgramWorld
from scenarios.programs import Launch, ProgramTransport
from scenarios.spec import Cast, Scenario
from transports.local import RANKS, TcpTransport, UnixTransport


def trio_world(
    scenario: Scenario,
    transport: Transport,
    speed: float,
    folder: Path = Path(),
    processes: Processes = "one",
) -> Callable[[int, str], Simulator]:
    """Return what makes the world of a cell: over TCP on the machine's clock, at this speed.

    Over TCP the scenario's programs are started in `folder`, its own. With `separate` processes
    the other actors are programs too.
    """
    if transport == "memory":
        return TrioWorld
    ranks = {one.name: RANKS[one.kind] for one in scenario.cast}
    launches = {one.name: launch for one, launch in _launches(scenario, folder)}

    kind = UnixTransport if transport == "unix" else TcpTransport

    def world(seed: int, cell: str) -> Simulator:
        if processes == "separate":
            return _separate(scenario, transport, speed, folder, seed, cell)
        if not launches:
            return TrioWorld(seed, cell, transport=kind(ranks), clock=None, speed=speed)
        server = next(one.name for one in scenario.cast if one.kind == "server")
        programs = ProgramTransport(ranks, launches, server, speed)
        return ProgramWorld(seed, cell, programs=programs, speed=speed)

    return world


def _separate(
    scenario: Scenario, sockets: Transport, speed: float, folder: Path, seed: int, cell: str
) -> Simulator:
    """Return a world whose actors are processes."""
    assert sockets != "memory", "processes share none"
    from scenarios.separate.world import ProcessWorld  # noqa: PLC0415  what few runs need

    ranks = {one.name: RANKS[one.kind] for one in scenario.cast}
    launches = {one.name: launch for one, launch in _launches(scenario, folder)}
    server = next(one.name for one in scenario.cast if one.kind == "server")
    return ProcessWorld(
        seed,
        cell,
        programs=ProgramTransport(ranks, launches, server, speed),
        speed=speed,
        cast=scenario.cast,
        places=places_of(scenario),
        folder=folder,
        sockets=sockets,
    )


def _launches(scenario: Scenario, folder: Path) -> list[tuple[Cast, Launch]]:
    """Return how each program of a scenario is started."""
    places = places_of(scenario)
    return [
        (
            one,
            Launch(
                name=one.name,
                command=one.command,
                folder=folder,
                environment=_sessions(places[one.name]),
                may_end=one.kind == "agent",
            ),
        )
        for one in scenario.cast
        if one.command is not None
    ]


def _sessions(place: Place) -> dict[str, str]:
    """Return what tells a program its sessions: all in JSON, and the first in plain words."""
    told = [
        {"id": one.id, "project": one.project, "name": one.name, "slug": one.slug}
        for one in place.sessions
    ]
    environment = {"PULLCORD_SESSIONS": msgspec.json.encode(told).decode()}
    if told:
        environment |= {
            "PULLCORD_SESSION": told[0]["id"],
            "PULLCORD_PROJECT": told[0]["project"],
            "PULLCORD_SLUG": told[0]["slug"],
        }
    return environment
