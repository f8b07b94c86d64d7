"""Programs in any language as actors: their processes, and how they come to the server over TCP.

A program is started for each replication, in the scenario's folder, and told in its environment
where the server is and who it is. It dials, greets and speaks the format of docs/wire.md like a
relay on another machine. It leads a process group of its own, so Ctrl-C reaches it through us
alone, and what it starts ends with it. Should this process be killed, a guard ends them.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import trio

from actors.errors import SimulationError
from scenarios.guard import Guard, keep_guard
from transports.codec import FrameError
from transports.connection import BrokenLinkError
from transports.local import LOOPBACK, Handle, TcpTransport, Wire
from transports.wiring import Wiring

GREETING_LIMIT_S = 12.0  # real time; the server waits 10 s for a hello, and its reason is told
TERM_LIMIT_S = 1.0  # between SIGTERM and SIGKILL
LAST_WORDS_S = 0.2  # real time for what a program that has ended printed before
LINE_LIMIT_BYTES = 4096  # a longer line is shown in pieces: memory is bounded
WORDS_LIMIT_CHARS = 200  # of the last line, in a sentence


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is started: its command, where, and with what in its environment besides ours.

    With `may_end` it has done its work when it ends with exit code 0.
    """

    name: str
    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str]
    may_end: bool = False


class Running(Protocol):
    """What is used of a `trio.Process`."""

    @property
    def pid(self) -> int:
        """Its number, and that of the group that it leads."""

    @property
    def stdout(self) -> trio.abc.ReceiveStream | None:
        """What it prints."""

    async def wait(self) -> int:
        """Wait for its end; return its exit code, or a signal's number with a minus."""

    def poll(self) -> int | None:
        """Return its exit code once it has ended."""


class ProgramFailedError(SimulationError):
    """A program ended before the replication did, could not be started, or never greeted."""


class Program:
    """One program in one replication: a process, and after a kill the next one."""

    term_limit_s: ClassVar[float] = TERM_LIMIT_S
    waits: ClassVar[bool] = False  # whether the next process may be there before it is revived

    def __init__(
        self, launch: Launch, token: str, say: Callable[[str], None], guard: Guard
    ) -> None:
        self.launch = launch
        self.token = token
        self._guard = guard
        self.greeted = trio.Event()
        self.handled: trio.CancelScope | None = None  # its present connection
        self.trouble = ""  # why its last connection ended
        self._say = say
        self._process: Running | None = None
        self._last_line = ""
        self._killed = False  # and its process's end not noticed yet
        self._up = trio.Event()
        self._up.set()

    async def live(self, environment: Mapping[str, str], on_done: Callable[[str], None]) -> None:
        """Run the program, again after each kill; ProgramFailedError if it ends by itself."""
        while True:
            code = await self._run(environment)
            if not self._killed and code == 0 and self.launch.may_end:
                on_done(self.launch.name)
                await trio.sleep_forever()
            if not self._killed:
                raise ProgramFailedError(self._epitaph(code))
            self._killed = False
            if not self.waits:
                await self._up.wait()

    def kill(self) -> None:
        """End it at once; it stays down until `revive`."""
        self._killed, self._up = True, trio.Event()
        self._signal(signal.SIGKILL)

    def revive(self) -> None:
        """Start it again."""
        self._up.set()

    def stop(self) -> None:
        """Let it stand still, while time goes on for it."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    async def _open(self, environment: Mapping[str, str]) -> Running:
        """Start it."""
        command = list(self.launch.command)
        try:
            return await trio.lowlevel.open_process(
                command,
                cwd=self.launch.folder,
                env={**os.environ, **self.launch.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramFailedError(
                f"{self.launch.name} can't be started: {command[0]}: {error.strerror} "
                f"(looked for from {self.launch.folder})"
            ) from error

    async def _run(self, environment: Mapping[str, str]) -> int:
        """Start it and wait for its end; whatever happens, nothing of it is left."""
        process = await self._open(environment)
        self._process = process
        self._guard.add(process.pid)
        try:
            await self._begin()
            if self._killed:  # meanwhile
                self._signal(signal.SIGKILL)
            async with trio.open_nursery() as nursery:
                heard = trio.Event()
                nursery.start_soon(self._hear, process, heard)
                code = await process.wait()
                with trio.move_on_after(LAST_WORDS_S):
                    await heard.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._end(process)
        return code

    async def _begin(self) -> None:
        """Tell the process what it waits to be told."""

    async def _end(self, process: Running) -> None:
        """End a process, politely at first, and whatever it has started."""
        if process.poll() is None and self.term_limit_s:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # one that is stopped could not hear it
            with trio.move_on_after(self.term_limit_s):
                await process.wait()
        self._signal(signal.SIGKILL)
        await process.wait()
        self._guard.remove(process.pid)
        self._process = None
        if process.stdout is not None:
            await process.stdout.aclose()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole group, if there is one."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):  # macOS says so of a dead group
                os.killpg(self._process.pid, number)

    async def _hear(self, process: Running, heard: trio.Event) -> None:
        """Say every line that it prints, with its name in front."""
        rest = b""
        assert process.stdout is not None, "it was opened with a pipe"
        async for piece in process.stdout:
            *lines, rest = (rest + piece).split(b"\n")
            while len(rest) > LINE_LIMIT_BYTES:
                lines.append(rest[:LINE_LIMIT_BYTES])
                rest = rest[LINE_LIMIT_BYTES:]
            for line in lines:
                self._tell(line)
        if rest:
            self._tell(rest)
        heard.set()

    def _tell(self, line: bytes) -> None:
        text = "".join(
            char if char.isprintable() or char == "\t" else "\ufffd"  # no terminal's commands
            for char in line.decode(errors="replace").rstrip("\r")
        )
        self._last_line = text or self._last_line
        self._say(f"{self.launch.name}: {text}")

    def _epitaph(self, code: int) -> str:
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        words = f"{self.launch.name} ended before the replication did, with {how}"
        if self.trouble:
            words += f"; its last connection ended: {self.trouble}"
        if self._last_line:
            words += f"; its last words: {self._last_line[:WORDS_LIMIT_CHARS]}"
        return words


def to_stderr(line: str) -> None:
    """Print a line among our own errors and warnings."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class ProgramTransport(TcpTransport):
    """Joins actors by TCP, and lets programs join the server by themselves.

    `open` starts them, and returns when all have greeted; each lives as long as its nursery.
    `speed` is told to them, since their clocks go at the machine's. `say` is told each line that
    they print.
    """

    def __init__(
        self,
        ranks: Mapping[str, int],
        launches: Mapping[str, Launch],
        server: str,
        speed: float,
        *,
        say: Callable[[str], None] = to_stderr,
        greeting_limit_s: float = GREETING_LIMIT_S,
    ) -> None:
        super().__init__(ranks, log=self._note)
        self.launches = launches
        self.server = server
        self.running: dict[str, Program] = {}
        self.on_done: Callable[[str], None] = lambda _name: None
        self._doors: dict[str, int] = {}  # the port on which each program reaches the server
        self._speed = speed
        self._say = say
        self._greeting_limit_s = greeting_limit_s

    def interpose(self, wiring: Wiring, speed: float) -> None:
        """Let byte faults act.

        A link's times stay the machine's: a program's heartbeats go by its clock.
        """
        timings = self._timings
        super().interpose(wiring, speed)
        self._timings = timings

    async def open(self, nursery: trio.Nursery, names: Any, handle: Handle) -> None:
        """Listen, start the programs and wait for them; ProgramFailedError if one does not come."""
        self._converse = handle
        self._guests = {name: secrets.token_hex() for name in self.launches}
        await super().open(nursery, names, self._receive)
        if not self.launches:
            return
        if self.server not in self._ports:  # nobody else dials it
            listener = await self._listener(self.server)
            nursery.start_soon(self._listen, self.server, listener, self._guests)
        guard = await nursery.start(keep_guard)
        self._doors = dict.fromkeys(self.launches, self._ports[self.server])
        for name in self.launches:
            if self.is_faulty(name, self.server):
                self._doors[name] = await self._open_detour(name, self.server)
        self.running = {
            name: Program(launch, self._guests[name], self._say, guard)
            for name, launch in self.launches.items()
        }
        for program in self.running.values():
            nursery.start_soon(program.live, self._environment(program), self.on_done)
        with trio.move_on_after(self._greeting_limit_s):
            for program in self.running.values():
                await program.greeted.wait()
            return
        missing = next(one for one in self.running.values() if not one.greeted.is_set())
        raise ProgramFailedError(
            f"{missing.launch.name} did not greet {self.server} within "
            f"{self._greeting_limit_s:g} s: it is to dial PULLCORD_HOST at PULLCORD_PORT"
            + (f"; its last connection ended: {missing.trouble}" if missing.trouble else "")
        )

    def _environment(self, program: Program) -> dict[str, str]:
        """Return what tells a program where the server is, and who it is."""
        return {
            "PULLCORD_HOST": LOOPBACK,
            "PULLCORD_PORT": str(self._doors[program.launch.name]),
            "PULLCORD_NAME": program.launch.name,
            "PULLCORD_TOKEN": program.token,
            "PULLCORD_SPEED": f"{self._speed:g}",
        }

    async def _receive(self, me: str, peer: str, wire: Wire) -> None:
        """Handle one end of a wire; a program's new connection ends the one before."""
        program = self.running.get(peer)
        if program is None:
            await self._converse(me, peer, wire)
            return
        if me != self.server:
            raise FrameError(f"a program has business with {self.server} alone")
        former = program.handled
        with trio.CancelScope() as program.handled:
            if former is not None:
                former.cancel()
            program.greeted.set()
            await self._converse(me, peer, wire)
        raise BrokenLinkError("it has connected anew")

    def _note(self, event: str, /, **fields: Any) -> None:
        """Say why a program's connection ended; a stranger may be one that doesn't know how."""
        name, reason = fields.get("peer", ""), fields.get("reason", "")
        if event not in ("link.down", "link.refused") or fields.get("actor") != self.server:
            return
        named = [self.running[name]] if name in self.running else []
        for program in named or (() if name else self.running.values()):
            program.trouble = reason
        if named or event == "link.refused":
            self._say(f"{name or 'somebody'}: the connection to {self.server} ended: {reason}")
