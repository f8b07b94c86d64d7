"""How the kill matrix strikes: each strike is one way in which processes or the network fail.

A strike begins, and when it returns everything runs again; what it left to be mended is for the
deployment itself. Commit points come one after another, so that none is left out; all else is by
chance, from the seed.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

import trio

from tests.scenarios.service.members import LOOK_S, Member
from tests.scenarios.service.plant import Plant
from transports.faults.byte_fault import DOWN, UP

STORES: Final = ("server", "relay", "engine")
COMMITS: Final = 16  # a cycle's runs make more of each store; the rest is for chance to meet
REACHED_S: Final = 6.0  # a commit that does not come is made up for by a kill
SPREAD_S: Final = 0.8  # about as long as a cycle's runs take when nothing happens


class Strikes:
    """See the module's docstring. `interrupts` says whether the last one ended a desktop."""

    def __init__(self, plant: Plant, chance: random.Random) -> None:
        self.plant = plant
        self.chance = chance
        self.interrupts = False
        self.unreached = 0  # commit points that did not come
        self.points: dict[str, set[tuple[str, int]]] = {store: set() for store in STORES}
        self._commit_points = commit_points()

    def kinds(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Every kind of strike by its name."""
        return {
            "kill server": self.kill_servers,
            "kill desktop": self.kill_desktop,
            "kill both": self.kill_both,
            "kill at a commit": self.kill_at_commit,
            "stop server": self.stop_servers,
            "stop desktop": self.stop_desktop,
            "cut the network": self.cut,
            "swallow bytes": self.swallow,
            "kill while starting": self.kill_starting,
            "kill while draining": self.kill_draining,
        }

    async def kill_servers(self) -> None:
        """SIGKILL one server or all of them."""
        await self._some_time()
        await self._kill(self._some_servers())
        await self._some_time()
        await self.plant.start_all()

    async def kill_desktop(self) -> None:
        """SIGKILL the desktop."""
        await self._some_time()
        await self._kill([self.plant.desktop])
        await self.plant.start_all()

    async def kill_both(self) -> None:
        """SIGKILL everything."""
        await self._some_time()
        await self._kill(self.plant.members)
        await self.plant.start_all()

    async def kill_at_commit(self) -> None:
        """Have a process kill itself at the next of all commit points."""
        store, when, number = next(self._commit_points)
        member = self.plant.desktop
        if store == "server":
            member = self.chance.choice(self.plant.servers)
        else:
            self.interrupts = True
        member.order.write_text(f"{store} {when} {number}")
        code = await member.end(REACHED_S)
        if code is None:
            self.unreached += 1
            await member.kill()
        else:
            self.points[store].add((when, number))
        await self.plant.start_all()

    async def stop_servers(self) -> None:
        """SIGSTOP servers for a while."""
        await self._some_time()
        await self._stop(self._some_servers())

    async def stop_desktop(self) -> None:
        """SIGSTOP the desktop for a while."""
        await self._some_time()
        await self._stop([self.plant.desktop])

    async def cut(self) -> None:
        """Break every connection and refuse new ones for a while."""
        await self._some_time()
        await self.plant.balancer.cut()
        await self._some_time()
        await self.plant.balancer.mend()

    async def swallow(self) -> None:
        """Lose every byte of a direction, or of both, without a word."""
        await self._some_time()
        self.plant.balancer.swallow(self.chance.choice(((UP,), (DOWN,), (UP, DOWN))))
        await self._some_time()
        await self.plant.balancer.mend()

    async def kill_starting(self) -> None:
        """SIGKILL a process, and again while it starts."""
        member = self.chance.choice(self.plant.members)
        await self._some_time()
        await self._kill([member])
        member.start()
        await self._some_time()
        await self._kill([member])
        await self.plant.start_all()

    async def kill_draining(self) -> None:
        """SIGTERM a process, and SIGKILL while it finishes what it has."""
        member = self.chance.choice(self.plant.members)
        self.interrupts |= member is self.plant.desktop
        await self._some_time()
        member.signal(signal.SIGTERM)
        await member.end(self.chance.random() * 0.3)
        await self._kill([member])
        await self.plant.start_all()

    # What they are made of

    async def _some_time(self) -> None:
        await trio.sleep(self.chance.random() * SPREAD_S)

    def _some_servers(self) -> list[Member]:
        servers = self.plant.servers
        return servers if self.chance.random() < 0.3 else [self.chance.choice(servers)]

    async def _kill(self, members: list[Member]) -> None:
        for member in members:
            self.interrupts |= member is self.plant.desktop
            member.signal(signal.SIGKILL)
        for member in members:
            await member.end()

    async def _stop(self, members: list[Member]) -> None:
        for member in members:
            member.signal(signal.SIGSTOP)
        await trio.sleep(LOOK_S + self.chance.random() * 2 * SPREAD_S)
        for member in members:
            member.signal(signal.SIGCONT)


def commit_points() -> Iterator[tuple[str, str, int]]:
    """Yield the commits of every store, before and after, the early ones first; then all again."""
    while True:
        for number in range(1, COMMITS + 1):
            for store in STORES:
                for when in ("before", "after"):
                    yield store, when, number
