"""The actors' processes as the run has them: started, greeted, heard, stopped and ended.

All of them dial one listener of ours, the hub, since all that they send goes over links that only
we have. Each keeps its store in a folder that is gone when the replication ends.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import msgspec
import trio

from scenarios.guard import Guard, keep_guard
from scenarios.programs import GREETING_LIMIT_S, Launch, Program, ProgramFailedError
from scenarios.separate.child import packed
from scenarios.separate.forks import Forked, Forker, forker_of_this_process
from scenarios.separate.report import (
    HUB,
    OVER,
    WAITING_LIMIT,
    Begin,
    Delivery,
    Job,
    Meddle,
    Told,
    pieces,
    receive_report,
)
from transports.acceptor import serve
from transports.connection import Connection, Peer
from transports.envelope import Envelope
from transports.handshake import PROTOCOL, accept_tokens
from transports.local import LOOPBACK, PATIENT
from transports.tcp import SocketsListener, listen_tcp, listen_unix

Sockets = Literal["tcp", "unix"]
Hear = Callable[[str, Told], None]


class ActorProcess(Program):
    """One actor's process in one replication, and after a kill the next one.

    `job` is what it is told at its start, but for the token. `under_way` has the messages that
    were handed to it and of which it has not yet reported a turn.
    """

    term_limit_s: ClassVar[float] = 0.0  # it has nothing to put in order
    waits: ClassVar[bool] = True  # while it is down the next one does its imports

    def __init__(
        self, job: Job, forker: Forker, tokens: dict[str, str], say: Callable[[str], None],
        guard: Guard,
    ) -> None:  # fmt: skip
        name = job.cast.name
        launch = Launch(name=name, command=(), folder=Path(job.folder), environment={})
        super().__init__(launch, "", say, guard)
        self._forker = forker
        self._forked: Forked | None = None
        self.job = job
        self.under_way: deque[Envelope[Any]] = deque()
        self.records: dict[int, int] = {}  # what its turns are called in the log
        self.used: tuple[int, dict[str, int]] = (0, {})  # of ids and chance, when last heard of
        self.meddling: deque[Meddle] = deque()  # of which it has not told yet
        self.begun = False  # whether it was told to begin its boot
        self._tokens = tokens
        self._connection: Connection | None = None
        self._dying: Connection | None = None  # of one that is to end after a commit
        self._queue: deque[bytes] = deque()
        self._more = trio.Event()

    async def _open(self, _environment: Mapping[str, str]) -> Forked:
        self._forked = await self._forker.fork()
        if self._forked is None:
            raise ProgramFailedError(
                f"{self.launch.name} can't be started: what was to fork its process has ended"
            )
        return self._forked

    async def _begin(self) -> None:
        await self._up.wait()
        self._tokens[self.job.cast.name] = token = secrets.token_hex()
        job = msgspec.structs.replace(self.job, token=token)
        assert self._forked is not None, "it was opened"
        with suppress(trio.BrokenResourceError):  # it has ended, and will be heard of
            await self._forked.stdin.send_all(packed(job))

    def kill(self) -> None:
        """End it at once; what it has not reported it never tells."""
        super().kill()
        self._part()

    def kill_after_commit(self) -> None:
        """End it as soon as it has told of the turn that it was allowed to commit."""
        self._killed, self._up = True, trio.Event()
        self._dying, self.begun, self.records = self._connection, False, {}
        self._connection = None

    def reboot(self, boot: int) -> None:
        """Start it again, as a new process."""
        ids, draws = self.used
        self.job = msgspec.structs.replace(self.job, boot=boot, ids=ids, draws=draws)
        self.greeted = trio.Event()
        self.revive()

    def _part(self) -> None:
        """Let its connection be nobody's."""
        self._connection = self._dying = None
        self.begun, self.records = False, {}
        self._queue.clear()

    def go_on_after(self, slept_us: int | None) -> None:
        """Let it go on, its clock having stood still for so long; with None, without a turn."""
        line = OVER if slept_us is None else b"%d" % slept_us
        if self._process is not None and self._forked is not None:
            with suppress(OSError):
                os.write(self._forked.stdin.fileno(), line + b"\n")
        self.go_on()

    # Its connection

    async def converse(self, connection: Connection, hear: Hear) -> None:
        """Hear it until its connection breaks, and write what is sent to it."""
        if self._killed or connection.peer.boot != str(self.job.boot):
            return  # its last words came through, but it is dead
        self._connection = connection
        self.greeted.set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, connection)
            while True:
                told = await receive_report(connection)
                if self._connection is not connection:
                    break  # it was killed: that has left it too late
                hear(self.launch.name, told)
            if self._dying is connection:
                self._signal(signal.SIGKILL)
                self._part()
            nursery.cancel_scope.cancel()

    def begin(self, begin: Begin) -> None:
        """Let its time begin."""
        self.begun = True
        self.order(begin)

    def meddle(self, order: Meddle) -> None:
        """Let something become of its clock; it tells of it by a `Struck`."""
        self.meddling.append(order)
        self.order(order)

    def hand(self, envelope: Envelope[Any], frame: bytes) -> bool:
        """Send it a message; False if so many wait already that there is no room."""
        if len(self.under_way) >= WAITING_LIMIT:
            return False
        self.under_way.append(envelope)
        self.order(Delivery(envelope.source, frame))
        return True

    def order(self, order: msgspec.Struct) -> None:
        """Send it an order, now if its connection takes it."""
        for frame in pieces(order):
            connection = self._connection
            assert connection is not None, "it has greeted"
            if self._queue or not connection.send_nowait(frame):
                self._queue.append(frame)
                self._more.set()

    async def _write(self, connection: Connection) -> None:
        """Write what could not be written at once."""
        while connection in (self._connection, self._dying):
            while self._queue:
                frame = self._queue[0]
                await connection.send(frame)
                if connection in (self._connection, self._dying):
                    self._queue.popleft()
            self._more = trio.Event()
            await self._more.wait()


class Hub:
    """The processes of a world, new ones in each replication; they dial over `sockets`.

    `say` is told each line that they print.
    """

    def __init__(
        self,
        sockets: Sockets,
        say: Callable[[str], None],
        greeting_limit_s: float = GREETING_LIMIT_S,
    ) -> None:
        self.processes: dict[str, ActorProcess] = {}
        self._sockets = sockets
        self._say = say
        self._greeting_limit_s = greeting_limit_s

    async def open(self, nursery: trio.Nursery, jobs: Mapping[str, Job], hear: Hear) -> None:
        """Start every process; `greeted` waits for them. They live as long as the nursery."""
        self._hear, self.processes = hear, {}
        await nursery.start(self._house, jobs, forker_of_this_process())

    async def _house(
        self, jobs: Mapping[str, Job], forker: Forker, task_status: trio.TaskStatus[None]
    ) -> None:
        """Keep the folder as long as there are processes that write into it."""
        with TemporaryDirectory(prefix="pullcord-") as name:
            async with trio.open_nursery() as outer:
                guard = await outer.start(keep_guard, Path(name))
                listener, where = await self._listen(Path(name))
                tokens: dict[str, str] = {}
                for actor, job in jobs.items():
                    store = str(Path(name, f"{job.index}.sqlite"))
                    told = msgspec.structs.replace(job, store=store, **where)
                    process = ActorProcess(told, forker, tokens, self._say, guard)
                    self.processes[actor] = process
                async with listener, trio.open_nursery() as inner:
                    inner.start_soon(self._serve, listener, tokens)
                    for process in self.processes.values():
                        inner.start_soon(process.live, {}, _nobody)
                    task_status.started()

    async def _listen(self, folder: Path) -> tuple[SocketsListener, dict[str, Any]]:
        """Return a listener, and how a job says where it is."""
        if self._sockets == "unix":
            path = folder / "hub"
            return await listen_unix(path), {"path": str(path)}
        listener = await listen_tcp(LOOPBACK, 0)
        return listener, {"host": LOOPBACK, "port": listener.port}

    async def _serve(self, listener: SocketsListener, tokens: dict[str, str]) -> None:
        async def handle(connection: Connection) -> None:
            await self.processes[connection.peer.name].converse(connection, self._hear)

        await serve(
            listener,
            Peer(protocol=PROTOCOL, name=HUB, boot="0"),
            accept=accept_tokens(tokens),
            handle=handle,
            log=_say_nothing,
            timings=PATIENT,
            connection_limit=sys.maxsize,
        )

    async def greeted(self, *names: str) -> None:
        """Wait until these have greeted, all if none is named; else ProgramFailedError."""
        with trio.move_on_after(self._greeting_limit_s):
            for name in names or self.processes:
                await self.processes[name].greeted.wait()
            return
        missing = next(one for one in self.processes.values() if not one.greeted.is_set())
        raise ProgramFailedError(
            f"the process of {missing.launch.name} did not begin within "
            f"{self._greeting_limit_s:g} s: is the machine out of memory?"
        )


def zero_s() -> float:
    """Return the time of the clock that this process shares with those of the actors."""
    return time.monotonic()


def _nobody(_name: str) -> None:
    """Take note of an end that there is none of: an actor's process lives as long as its run."""


def _say_nothing(_event: str, /, **_fields: Any) -> None:
    pass
