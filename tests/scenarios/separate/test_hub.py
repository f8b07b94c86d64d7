"""The processes of a run as it has them, and what is left of them whatever ends it: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from scenarios.programs import ProgramFailedError
from scenarios.separate.hub import Hub, zero_s
from scenarios.separate.report import WAITING_LIMIT, Begin, State, Tell, Told
from tests.scenarios.own_programs import is_alive, is_gone, is_stopped
from tests.scenarios.separate.jobs import job_for
from transports.envelope import Envelope

ROOT = Path(__file__).resolve().parents[3]


class Heard:
    """What the processes of a hub have told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.changed = trio.Event()

    def hear(self, name: str, told: Told) -> None:
        self.told.append((name, told))
        self.changed.set()
        self.changed = trio.Event()

    async def until(self, holds: Callable[[], object]) -> None:
        with trio.fail_after(5):
            while not holds():
                await self.changed.wait()


async def play(hub: Hub, heard: Heard, act: Callable[[], Awaitable[None]], *kinds: str) -> None:
    jobs = {
        kind: job_for(kind, index=number, cwd=str(ROOT), import_path=tuple(sys.path))
        for number, kind in enumerate(kinds)
    }
    async with trio.open_nursery() as nursery:
        await hub.open(nursery, jobs, heard.hear)
        await act()
        nursery.cancel_scope.cancel()


def stores(folder: Path) -> list[Path]:
    """The databases of the processes whose folders are in this one."""
    return list(folder.glob("*/*.sqlite"))


def wait_for(holds: Callable[[], object]) -> bool:
    """Whether something holds within four seconds."""
    for _ in range(200):
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("sockets", ["tcp", "unix"])
def test_processes_begin_when_told_and_tell_of_it_and_are_gone_in_the_end(
    sockets: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pids: list[int] = []

    async def main() -> None:
        await play(hub, heard, act, "server", "engine")

    async def act() -> None:
        await hub.greeted()
        for process in hub.processes.values():
            assert not process.begun
            process.begin(Begin(zero_s()))
            assert process._process is not None
            pids.append(process._process.pid)
        await heard.until(lambda: len(heard.told) >= 2)
        for process in hub.processes.values():
            process.order(Tell())
        await heard.until(lambda: sum(type(told) is State for _, told in heard.told) == 2)
        assert len(stores(tmp_path)) == 2

    hub, heard = Hub(sockets, print), Heard()
    trio.run(main)
    assert {(name, told.input) for name, told in heard.told[:2]} == {
        ("server", "start"),
        ("engine", "start"),
    }
    assert not any(map(is_alive, pids))
    assert list(tmp_path.iterdir()) == []


async def test_killed_it_tells_nothing_and_a_new_boot_greets_anew() -> None:
    hub, heard = Hub("tcp", print), Heard()

    async def act() -> None:
        await hub.greeted()
        [process] = hub.processes.values()
        process.begin(Begin(zero_s()))
        await heard.until(lambda: heard.told)
        assert process._process is not None
        first = process._process.pid
        process.kill()
        assert not process.begun
        assert is_gone(first)
        process.reboot(1)
        assert not process.greeted.is_set()
        await hub.greeted("engine")
        process.begin(Begin(zero_s()))
        await heard.until(lambda: len(heard.told) == 2)

    await play(hub, heard, act, "engine")
    assert [told.what for _, told in heard.told] == [0, 1]


async def test_what_does_not_fit_into_the_queue_of_one_that_is_stopped_is_refused() -> None:
    hub, heard = Hub("tcp", print), Heard()
    envelope: Any = Envelope(1, "server", "engine", 0, 0, None)

    async def act() -> None:
        await hub.greeted()
        [process] = hub.processes.values()
        process.stop()
        large = bytes(100_000)
        taken = 0
        while process.hand(envelope, large):
            taken += 1
            assert taken < 2 * WAITING_LIMIT
        assert taken == WAITING_LIMIT
        assert len(process.under_way) == taken

    await play(hub, heard, act, "engine")


async def test_one_that_does_not_begin_is_named() -> None:
    hub, heard = Hub("tcp", print, greeting_limit_s=0.0), Heard()
    with pytest.raises(ProgramFailedError, match="the process of engine did not begin within 0 s"):
        await hub_greeted(hub, heard)


async def hub_greeted(hub: Hub, heard: Heard) -> None:
    try:
        await play(hub, heard, hub.greeted, "engine")
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


# However the run ends


OWN = """import os
from pullcord import Agent, Relay


class MyRelay(Relay):
    def on_start(self, context):
        super().on_start(context)
        print("pid", os.getpid())


class MyAgent(Agent):
    def on_start(self, context):
        super().on_start(context)
        print("pid", os.getpid())
"""
LONG = """schema = 1
name = "long"
[run]
until = "20h"
limit = "30h"
[relay]
use = "own.py:MyRelay"
[agent]
use = "own.py:MyAgent"
[[fault]]
kind = "suspend"
actor = "agent"
at = "20s"
for = "19h"
"""


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
)
def test_however_the_run_ends_nothing_is_left(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "long.toml").write_text(LONG)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = "run long.toml --transport unix --processes separate --speed 100 --out results -j 1"
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import pullcord; pullcord.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *words.split(), "--no-progress"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stderr is not None
    with process.stderr:
        pids = [int(process.stderr.readline().split()[-1]) for _ in range(2)]
        assert wait_for(lambda: any(map(is_stopped, pids)))
        assert all(map(is_alive, pids))
        process.send_signal(number)
        process.wait()
    assert process.returncode == code
    assert all(map(is_gone, pids))
    assert wait_for(lambda: not list(temporary.iterdir()))
