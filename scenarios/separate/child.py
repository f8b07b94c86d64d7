"""An actor's process: one boot of one actor, in the world that `lone` makes of it.

It is told its job on its standard input, which stays open for as long as the run lives. There it is
also told, each time that it is stopped and goes on, for how long its clock has stood still: a
signal handler reads that before anything else happens, which no message could promise.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import trio

from actors.graph_engine import GraphEngine
from actors.raised import what_to_raise
from scenarios.cast import foreign_path, load_file, make_actor
from scenarios.graph_engines import vm_port
from scenarios.separate.lone import LoneWorld
from scenarios.separate.report import OVER, Failed, Job, pieces
from scenarios.separate.store import DurableStore
from scenarios.watchdog import watchdog
from transports.connection import BrokenLinkError, Connection
from transports.handshake import Hello, greet
from transports.local import PATIENT
from transports.tcp import connect_tcp, connect_unix

STDIN = 0
NAPS_BYTES = 4096  # of the lines that tell for how long the clock stood still


def packed(job: Job) -> bytes:
    """Return what `read_job` reads: a user's file is to be imported before its config is read."""
    where = job.cwd, job.import_path
    use = job.cast.use if job.cast.foreign else None
    own = None if use is None else str(foreign_path(use, Path(job.folder))[0])
    data = pickle.dumps((*where, own, pickle.dumps(job)))
    return len(data).to_bytes(4, "big") + data


def read_job() -> Job:
    """Read the job from standard input; EOFError if that is closed before."""
    size = _read(4)
    whole = _read(int.from_bytes(size, "big"))
    cwd, sys.path[:], own, data = pickle.loads(whole)  # noqa: S301  our parent wrote it
    os.chdir(cwd)
    if own is not None:
        load_file(Path(own))
    job: Job = pickle.loads(data)  # noqa: S301  our parent wrote it
    return job


def _read(size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        piece = os.read(STDIN, size_bytes - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def main() -> None:
    """Live one boot; ends when the connection to the run's process does."""
    try:
        job = read_job()
    except EOFError:
        return
    os.set_blocking(STDIN, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us through our parent alone
    world = LoneWorld(job, DurableStore(Path(job.store)))
    signal.signal(signal.SIGCONT, partial(_went_on, world))
    sys.stdout = sys.stderr  # one pipe, line by line
    actor = make_actor(job.cast, job.place, Path(job.folder))
    if isinstance(actor, GraphEngine):
        world.vm = vm_port()
    world.take(actor)
    try:
        world.live(partial(_converse, job, world))
    except BrokenLinkError:
        return  # the run is over


def _went_on(world: LoneWorld, _signal: int, _frame: FrameType | None) -> None:
    """Take note of how long the clock stood still."""
    try:
        lines = os.read(STDIN, NAPS_BYTES)
    except BlockingIOError:  # somebody else's signal
        return
    for line in lines.split():
        if line == OVER:
            world.over = True
        else:
            world.naps.append(int(line))


async def _converse(job: Job, world: LoneWorld) -> None:
    """Connect and live; what ends the actor is told, and then the process waits for its end."""
    if job.path:
        stream = await connect_unix(job.path)
    else:
        stream = await connect_tcp(job.host, job.port)
    hello = Hello(name=job.cast.name, boot=str(job.boot), token=job.token)
    connection = await greet(stream, hello, PATIENT)
    try:
        with watchdog(world, job.patience_s):
            try:
                await world.play(connection)
            except BaseExceptionGroup as group:
                first = what_to_raise(group)
                raise first from first.__cause__
    except BrokenLinkError:
        raise
    except BaseException as error:  # noqa: BLE001  whatever a turn raises is told over there
        await _tell(connection, error, job)


async def _tell(connection: Connection, error: BaseException, job: Job) -> None:
    from scenarios.work import trouble_of  # noqa: PLC0415  a third of the imports, for one failure

    trouble = trouble_of(error, job.replication)
    actor: Any = getattr(error, "actor", job.cast.name)
    failed = Failed(trouble.kind, trouble.sentence, trouble.trace, actor)
    for frame in pieces(failed):
        await connection.send(frame)
    await trio.sleep_forever()  # who reads it ends us
