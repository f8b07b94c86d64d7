"""A deployment of real processes for the kill matrix: servers behind one address, and a desktop.

Agents and the desktop reach the servers through a fault proxy, which takes each connection to the
next server that answers. So a network can be cut, and one of two servers be away.
"""

from __future__ import annotations

import random
import shlex
import signal
import socket
import subprocess
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
from tests.scenarios.commandline import ROOT, environment
from tests.scenarios.service import marker
from tests.scenarios.service.calls import Calls
from transports.faults.black_hole import BlackHole
from transports.faults.byte_fault import Direction
from transports.handshake import Hello
from transports.listening import Address, listen
from transports.proxy import Proxy, open_proxies
from transports.tcp import connect_unix
from transports.toxic import Toxic

READY_S: Final = 60.0  # for a process to begin, on a machine with other things to do
LOOK_S: Final = 0.02  # between two looks at what is waited for
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


class Member:
    """One process of a deployment, started as often as it was killed."""

    def __init__(self, name: str, home: Path, *command: str) -> None:
        self.name = name
        self.order = home / f"{name}.order"
        self.words = home / f"{name}.stderr"
        self.starts = 0
        self._home = home
        self._command = command
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin; what it says is added to what it said before."""
        assert not self.alive, f"{self.name} runs"
        self.starts += 1
        self.order.unlink(missing_ok=True)
        self._heard = self.words.stat().st_size if self.words.exists() else 0
        with self.words.open("ab") as words:
            self._popen = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.scenarios.service.struck", str(self.order)),
                    *self._command,
                ],
                cwd=ROOT,
                env=environment(PULLCORD_HOME=str(self._home)),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
            )

    @property
    def pid(self) -> int | None:
        """Its process id, None before it was started."""
        return None if self._popen is None else self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it runs, or stands still."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def said(self) -> str:
        """What it has said since it was started."""
        with self.words.open("rb") as words:
            words.seek(self._heard)
            return words.read().decode(errors="replace")

    async def ready(self, words: str) -> str:
        """Wait for a line with these words, and return it. AssertionError if it ends before."""
        with trio.fail_after(READY_S):
            while True:
                alive = self.alive
                for line in self.said.splitlines(keepends=True):
                    if words in line and line.endswith("\n"):
                        return line.strip()
                assert alive, f"{self.name} ended by itself: {self.said}"
                await trio.sleep(LOOK_S)

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.alive:
            assert self._popen is not None, "it is alive"
            self._popen.send_signal(number)

    async def end(self, limit_s: float = READY_S) -> int | None:
        """Wait for its end; return its exit code, None if it did not come."""
        with trio.move_on_after(limit_s):
            while self.alive:  # noqa: ASYNC110  a process tells nobody here of its end
                await trio.sleep(LOOK_S)
        return None if self._popen is None or self.alive else self._popen.returncode

    async def kill(self) -> None:
        """Kill it, whatever it does."""
        self.signal(signal.SIGKILL)
        await self.end()


class Balancer(Proxy):
    """One address in front of several servers: each connection goes to the next that answers."""

    upstreams: tuple[Address, ...] = ()
    _next = 0

    async def _connect(self) -> trio.SocketStream:
        for _ in self.upstreams:
            self._next += 1
            host, port = self.upstreams[self._next % len(self.upstreams)]
            try:
                return await trio.open_tcp_stream(host, port)
            except OSError:
                continue
        raise OSError("no server answers")

    async def cut(self) -> None:
        """Break every connection and take none."""
        await self.stop()

    async def mend(self) -> None:
        """Take connections again."""
        self.remove_toxics()
        if self.enabled:
            self.drop_connections()  # what was swallowed left a gap in them
        else:
            listeners, _ = await listen(self.address)
            self.start(listeners)

    def swallow(self, ways: Sequence[Direction]) -> None:
        """Take every byte of these directions, and pass none."""
        self.add_toxic(
            Toxic(BlackHole(name="silent"), tuple(ways), type="black_hole", attributes={})
        )


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
