"""`pullcord desktop run`: relay, engine and model in one process that dials its server."""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.actor import Place
from actors.desktop.engine import DesktopEngine
from actors.desktop.messages import (
    AddSession,
    GetDesktopStatus,
    GetEngineStatus,
    GetGraph,
    GetHistory,
    ListHistory,
    ListOutbox,
    ListSessions,
    RemoveSession,
    SaveSession,
)
from actors.desktop.relay import DesktopRelay
from actors.edges.local_door import LocalDoor
from actors.edges.tools.runner import ToolRunner
from actors.edges.uplink import Dialling, Uplink
from actors.edges.vm_process import ProcessVmPort
from actors.graphs.messages import Decide, ListApprovals
from actors.graphs.noted import NotedVmPort
from actors.messages import (
    Accepted,
    Commands,
    ControlAnswer,
    Disable,
    Enable,
    Rename,
    Share,
    StartAnswer,
    Unshare,
)
from scenarios.graph_backends import EXTRA
from scenarios.graph_check import scripts_can_run
from scenarios.graph_files import refusal
from scenarios.service.answering import model_of, tools_of
from scenarios.service.config import DesktopSettings, Resolved
from scenarios.service.credentials import (
    FILE,
    NOT_PAIRED,
    Credentials,
    Tokens,
    read_credentials,
)
from scenarios.service.doors import open_socket
from scenarios.service.files import lock_folder, make_folder, open_sqlite, warn_of_readers
from scenarios.service.process import open_log, say, serve
from scenarios.service.reach import Reach, cure_of, reach_of
from scenarios.service.recorded import RecordedActor
from scenarios.service.world import ServiceWorld
from transports.connection import Peer
from transports.envelope import Envelope
from transports.handshake import PROTOCOL, Hello
from transports.tcp import SocketsListener

RELAY, ENGINE, MODEL, TOOLS, SERVER = "relay", "engine", "model", "tools", "server"
SOCKET = "desktop.sock"
HEARD = (Commands, StartAnswer, ControlAnswer, Accepted)  # what a server may say to a relay
# What an owner may say here.
SAID = (
    AddSession, SaveSession, RemoveSession, ListSessions, Share, Unshare, Rename, Enable, Disable,
    ListHistory, GetHistory, ListOutbox, GetDesktopStatus, GetGraph, GetEngineStatus,
    ListApprovals, Decide,
)  # fmt: skip
PAIR_AGAIN = "if it was removed on purpose, pair it again: pullcord desktop pair"


def run_desktop(resolved: Resolved[DesktopSettings], folder: Path) -> int:
    """Run until SIGTERM or SIGINT; return the exit code. ScenarioError for what can be mended."""
    if not scripts_can_run():
        raise refusal("pullcord desktop run", "Graphs need a JavaScript engine", EXTRA)
    relay_config = resolved.table(RELAY, DesktopRelay.Config, {})
    make_folder(folder)
    with ExitStack() as stack:
        stack.callback(lock_folder(folder, "desktop").release)
        paired = paired_credentials(folder)
        reach = reach_with(resolved, paired, folder)
        # Last: servers of tools are started to ask which they have.
        toolbox, of_tools = tools_of(resolved)
        engine_config = resolved.table(ENGINE, DesktopEngine.Config, of_tools)
        world = ServiceWorld("desktop", say)
        for name, actor in (
            (RELAY, DesktopRelay(relay_config, Place(name=RELAY))),
            (ENGINE, DesktopEngine(engine_config, Place(name=ENGINE))),
        ):
            store = open_sqlite(folder / f"{name}.db", say)
            stack.callback(store.close)
            world.house(name, actor, store)
        world.house(MODEL, model_of(resolved, engine_config, toolbox, stack))
        world.house(TOOLS, ToolRunner(toolbox.tools, toolbox.connections))
        world.edges += [uplink(world, folder, paired, reach), OwnersEdge(world, folder)]
        world.vm = NotedVmPort(stack.enter_context(ProcessVmPort()), world.contexts[ENGINE])

        def ready() -> None:
            say(
                f"desktop {paired.device} runs; it dials {reach.address}; its files lie in {folder}"
            )

        world.on_ready = ready
        actors = _recorded(resolved, of_tools, world)
        return serve(world, open_log("desktop", folder, resolved.settings, world, actors))


def _recorded(
    resolved: Resolved[DesktopSettings], of_tools: dict[str, Any], world: ServiceWorld
) -> dict[str, RecordedActor]:
    """Return what the log says of each actor, in the order in which they were housed."""
    engine = resolved.told(ENGINE, of_tools)
    configs = {RELAY: resolved.told(RELAY, {}), ENGINE: engine, MODEL: engine}
    return {
        name: RecordedActor(
            kind=type(one.actor).__name__,
            config=configs.get(name, {}),
            store="memory" if one.durable is None else "SQLite",
        )
        for name, one in world.contexts.items()
    }


def paired_credentials(folder: Path) -> Credentials:
    """Return the desktop's credentials; ScenarioError if it isn't paired."""
    found = read_credentials(folder)
    warn_of_readers(folder / FILE, say)
    if found is None or not found.device:
        raise refusal(str(folder), "this desktop is not paired with a server", NOT_PAIRED)
    return found


def reach_with(resolved: Resolved[DesktopSettings], paired: Credentials, folder: Path) -> Reach:
    """Return how the server is reached: as it was when the desktop was paired, unless told."""
    known = msgspec.structs.asdict(paired)
    usual = {
        key: known[key]
        for key in ("server", "ca", "fingerprint", "plain")
        if resolved.origins[key] == "default"
    }
    origins = {**resolved.origins, **dict.fromkeys(usual, str(folder / FILE))}
    return reach_of(msgspec.structs.replace(resolved.settings, **usual), origins)


def uplink(world: ServiceWorld, folder: Path, paired: Credentials, reach: Reach) -> Uplink:
    """Return the desktop's way to its server, which tells on stderr how that goes."""
    tokens = Tokens(folder, paired)

    def hello() -> Hello:
        return Hello(name=paired.device, boot=f"{world.seed:x}", token=tokens.token)

    told = Telling(str(reach.address))

    def log(event: str, /, **fields: Any) -> None:
        world.tell_event("uplink", event, fields)
        if event != "link.refused" or not tokens.refused(str(fields["reason"])):
            told.tell(event, fields)

    dialling = Dialling(reach.connect, hello, tokens.keep)
    return Uplink(world, dialling, RELAY, SERVER, HEARD, log, random.SystemRandom().random)


class Telling:
    """Tells whoever runs a desktop how its link stands: each change once."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._last = ""

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        """Say what an event means, unless that was said last."""
        reason = str(fields.get("reason", ""))
        text = f"connected to {self._server}"
        cure = None
        if event != "link.up":
            text = f"{self._server}: {reason}; trying again, ever later"
            cure = None if event == "link.down" else cure_of(reason)
            if cure is None and event == "link.refused":
                cure = PAIR_AGAIN
        if text != self._last:
            self._last = text
            say(text)
            if cure is not None:
                sys.stderr.write(f"help: {cure}\n")


class OwnersEdge:
    """The desktop's local socket, over which its owner speaks to relay and engine."""

    def __init__(self, world: ServiceWorld, folder: Path) -> None:
        self._path = folder.resolve() / SOCKET
        self._listener: SocketsListener | None = None
        log = partial(_log, world)
        me = Peer(protocol=PROTOCOL, name="desktop", boot=f"{world.seed:x}")
        self._door = LocalDoor(me, world, SAID, (RELAY, ENGINE), log)

    async def open(self) -> None:
        """Make the socket. ScenarioError if it can't be had."""
        self._listener = await open_socket(self._path)

    async def live(self) -> None:
        """Accept connections until cancelled."""
        assert self._listener is not None, "it was opened"
        try:
            await self._door.serve(self._listener)
        finally:
            with trio.CancelScope(shield=True):
                await self._listener.aclose()
            with suppress(OSError):
                self._path.unlink()

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send an answer to who asked; False if that is nobody here."""
        return self._door.board.take(envelope)

    def stop_reading(self) -> None:
        """Let nobody in any more, and hear nobody."""
        self._door.board.stop_reading()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return self._door.board.idle


def _log(world: ServiceWorld, event: str, /, **fields: Any) -> None:
    world.tell_event("owner", event, fields)
