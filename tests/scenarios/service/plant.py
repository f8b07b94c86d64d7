"""A deployment of real processes for the kill matrix: servers behind one address, and a desktop.

Agents and the desktop reach the servers through a fault proxy, which takes each connection to the
next server that answers. So a network can be cut, and one of two servers be away.
"""

from __future__ import annotations

import random
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from actors.accounts.messages import AddAgent, Audit, ListAudit, NewPairingCode
from actors.desktop.messages import ListOutbox, Outbox
from actors.edges.door import PairingCode, PrincipalToken
from actors.messages import GraphSessions, ListGraphSessions
from scenarios.service.client import BOOT, CALL_ERRORS, calling
from scenarios.service.config import ReachSettings, resolve
from scenarios.service.pairing import pair
from scenarios.service.server import KEY
from tests.scenarios.commandline import environment
from tests.scenarios.service import marker
from tests.scenarios.service.balancer import Balancer
from tests.scenarios.service.calls import Calls
from tests.scenarios.service.members import LOOK_S, READY_S, Member
from transports.handshake import Hello
from transports.listening import Address, listen
from transports.proxy import open_proxies
from transports.tcp import connect_unix

HERE: Final = "127.0.0.1"
PROJECT: Final = "shop"
GRAPH: Final = """
export const meta = { name: "marks", description: "Leaves marks outside." };
const values = [];
for (let step = 1; step <= args.steps; step++) {
  const ask = { ...args, mark: `${args.mark}.${step}` };
  values.push(await agent(JSON.stringify(ask)));
}
return { mark: args.mark, values };
"""
SERVER_SETTINGS: Final = """log_files = 2000
[server]
token_age = "3s"
"""
DESKTOP_SETTINGS: Final = """log_files = 2000
backend = "command"
command = "{command}"
[relay]
poll = "200ms"
control = "100ms"
timeout = "2s"
slots = 2
[engine]
report = "300ms"
"""


class Plant:
    """See the module's docstring. Made by `open_plant`."""

    def __init__(self, home: Path, store: str, servers: int, balancer: Balancer) -> None:
        self.home = home
        self.marks = home / "marks"
        self.balancer = balancer
        self.store = store
        self.folders = [home / f"server-{number}" for number in range(1, servers + 1)]
        self.balancer.upstreams = tuple(Address(HERE, port) for port in free_ports(servers))
        self.servers = [
            Member(
                folder.name,
                home,
                *("server", "--listen", str(address), "--folder", str(folder)),
                *(("--store", store) if store else ()),
            )
            for folder, address in zip(self.folders, balancer.upstreams, strict=True)
        ]
        self.desktop = Member("desktop", home, "desktop", "run")
        self.desktop_folder = home / "desktop"

    @property
    def members(self) -> list[Member]:
        """Every process."""
        return [*self.servers, self.desktop]

    @property
    def databases(self) -> list[Path]:
        """The files of every store that is a file."""
        servers = [] if self.store else [self.folders[0] / "server.db"]
        return [*servers, self.desktop_folder / "relay.db", self.desktop_folder / "engine.db"]

    @property
    def logs(self) -> list[Path]:
        """The folders of the logs."""
        return [folder / "logs" for folder in (*self.folders, self.desktop_folder)]

    async def start(self, member: Member) -> None:
        """Start a process and wait until it serves."""
        member.start()
        await member.ready("desktop dev_" if member is self.desktop else "server listens on")

    async def start_all(self) -> None:
        """Start every process that does not run."""
        async with trio.open_nursery() as nursery:
            for member in self.members:
                if not member.alive:
                    nursery.start_soon(self.start, member)

    async def prepare(self) -> None:
        """Pair a desktop, add an agent, share a Graph."""
        for folder in self.folders:
            folder.mkdir()
            (folder / "config.toml").write_text(SERVER_SETTINGS)
        command = shlex.join([sys.executable, "-I", "-S", marker.__file__, str(self.marks)])
        desktop = self.desktop_folder
        desktop.mkdir()
        (desktop / "config.toml").write_text(DESKTOP_SETTINGS.format(command=command))
        await self.start(self.servers[0])
        self.share_key()
        token: PrincipalToken = await self.ask_owner(AddAgent(name="bot"), PrincipalToken)
        code: PairingCode = await self.ask_owner(NewPairingCode(), PairingCode)
        self.calls = Calls(self.balancer.address, token.token)
        told = {"server": str(self.balancer.address)}
        reach = resolve(ReachSettings, told, None, environ={})
        paired = partial(pair, code.code, "laptop", reach.settings, reach.origins, desktop)
        await trio.to_thread.run_sync(paired)
        await self.start_all()
        (self.home / "marks.js").write_text(GRAPH)
        shared = await trio.run_process(
            [
                *(sys.executable, "-c", "from pullcord import main; main()"),
                *("desktop", "share", str(self.home / "marks.js"), "--project", PROJECT),
            ],
            env=environment(PULLCORD_HOME=str(self.home)),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        assert shared.returncode == 0, shared.stderr.decode()
        self.session = shared.stdout.decode().strip()
        listed = GraphSessions(project_id=PROJECT, sessions=())
        with trio.fail_after(READY_S):
            while not listed.sessions:
                listed = await self.calls.ask(ListGraphSessions(project_id=PROJECT))

    def share_key(self) -> None:
        """Let every server know what pairing codes are hashed with."""
        key = (self.folders[0] / KEY).read_bytes()
        for folder in self.folders[1:]:
            (folder / KEY).write_bytes(key)

    # Questions of owners

    async def ask_owner(self, body: Any, *heard: type[Any]) -> Any:
        """Ask a server as its owner, until one answers."""
        sockets = [folder / "owner.sock" for folder in self.folders]
        return await self._ask_local(sockets, "server", body, heard)

    async def outbox(self) -> Outbox:
        """What the desktop has not delivered."""
        sockets = [self.desktop_folder / "desktop.sock"]
        found: Outbox = await self._ask_local(sockets, "relay", ListOutbox(), (Outbox,))
        return found

    async def audit_page(self, cursor: str) -> Audit:
        """A page of the audit, the newest rows first."""
        found: Audit = await self.ask_owner(ListAudit(cursor=cursor), Audit)
        return found

    async def _ask_local(
        self, sockets: Sequence[Path], target: str, body: Any, heard: Sequence[type[Any]]
    ) -> Any:
        hello = Hello(name="owner", boot=BOOT)
        with trio.fail_after(READY_S):
            while True:
                for path in sockets:
                    try:
                        connect = partial(connect_unix, path)
                        async with calling(connect, hello, heard, target) as caller:
                            return await caller.ask(body, 5.0)
                    except CALL_ERRORS:
                        await trio.sleep(LOOK_S)

    def left_over(self) -> list[int]:
        """The processes that the deployment started and that live beside its members."""
        word = f"PULLCORD_HOME={self.home}".encode()
        known = {member.pid for member in self.members}
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if word in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return sorted(set(found) - known)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody has, and that no outgoing connection is given."""
    found: list[int] = []
    start = random.SystemRandom().randrange(20_000, 30_000)
    for port in range(start, start + 1000):
        with socket.socket() as probe:
            try:
                probe.bind((HERE, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise OSError("no port is free")


def _unsaid(_words: str) -> None:
    """Say nothing of servers that were not reached: they are killed all the time."""


@asynccontextmanager
async def open_plant(
    home: Path, seed: int, store: str = "", servers: int = 1
) -> AsyncIterator[Plant]:
    """Have a deployment to be prepared; at the end nothing of it runs."""
    async with open_proxies(seed, _unsaid) as proxies:
        balancer = Balancer("front", Address(HERE, 0), Address(HERE, 0), proxies)
        listeners, balancer.address = await listen(Address(HERE, 0))
        balancer.start(listeners)
        plant = Plant(home, store, servers, balancer)
        try:
            yield plant
        finally:
            with trio.CancelScope(shield=True):
                for member in plant.members:
                    await member.kill()
                await balancer.stop()
