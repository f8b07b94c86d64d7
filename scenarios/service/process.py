"""What every process that stays has in common: its words on stderr, its log, its end."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from actors.errors import SimulationError
from actors.stores.failures import StoreError
from logs.record import HeaderRecord
from logs.rotate import RotatingRecorder
from scenarios.graph_files import refusal
from scenarios.problems import printable
from scenarios.service.config import LogSettings, without_password
from scenarios.service.files import store_problem
from scenarios.service.recorded import SHARED, RecordedActor
from scenarios.service.world import ServiceWorld
from transports.version import VERSION

LOGS = "logs"  # the folder within a process's own


def say(text: str) -> None:
    """Write a line to stderr, whatever is in it."""
    sys.stderr.write(f"pullcord: {printable(text)}\n")
    sys.stderr.flush()


def open_log(
    name: str,
    folder: Path,
    settings: LogSettings,
    world: ServiceWorld,
    actors: Mapping[str, RecordedActor],
) -> RotatingRecorder:
    """Return the log of a process, of which `actors` says what each is.

    ScenarioError if it can't be written.
    """
    if settings.record:
        world.snapshot_limit_bytes = settings.log_files * settings.log_size // 2
        shared = [each.store for each in actors.values() if each.store in SHARED]
        for store in shared:
            say(f"other servers may write to {store} too, so this log can't be replayed")
    header = HeaderRecord(
        scenario=name,
        digest="",
        seed=world.seed,
        cell="",
        replication=0,
        command=shlex.join(["pullcord", *map(without_password, sys.argv[1:])]),
        pullcord=VERSION,
        python=platform.python_version(),
        driver="trio",
        transport="tcp",
        processes="separate",
        speed=1.0,
        actors=msgspec.to_builtins(actors) if settings.record else {},
        resolved={},
    )
    began = {"epoch_us": world.epoch_us, "pid": os.getpid(), "payloads": settings.record}
    try:
        return RotatingRecorder(
            folder / LOGS,
            header,
            began,
            say,
            files=settings.log_files,
            size_bytes=settings.log_size,
            whole=settings.record,
        )
    except OSError as error:
        what = f"the log can't be written: {error.strerror}"
        raise refusal(
            str(folder / LOGS), what, "free some space, or change who may write"
        ) from None


def serve(world: ServiceWorld, log: RotatingRecorder) -> int:
    """Run a world until a signal, and drain it; return the exit code.

    ScenarioError for what whoever starts the process can mend.
    """
    outcome = "failed"
    since_s = time.monotonic()
    try:
        world.serve(log, flush=log.flush)
        outcome = "stopped"
    except StoreError as error:
        raise store_problem(error) from error
    except SimulationError as error:
        if isinstance(error.__cause__, StoreError):
            raise store_problem(error.__cause__) from error
        raise
    finally:
        log.close(outcome)
    say(f"stopped after {_words(time.monotonic() - since_s)}")
    return 0


def _words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
