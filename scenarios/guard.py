"""Who ends the processes of a run if its own process can't: see `scenarios.watch_parent`."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import trio

from scenarios import watch_parent

PARTING_LIMIT_S = 3.0  # for what it guards to be ended by its owner, who may wait a second for each

_SCRIPT = watch_parent.__file__


class Guard:
    """Knows the process groups that are to end with this process, however it ends."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None, "it was opened with a pipe"
        self._process = process
        self._fd = process.stdin.fileno()  # type: ignore[attr-defined]  # a pipe's stream has one
        self._groups: dict[int, None] = {}
        self._empty = trio.Event()

    def add(self, group: int) -> None:
        """End this process group if need be."""
        self._groups[group] = None
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Forget a group: nothing is left of it."""
        self._groups.pop(group, None)
        self._tell(f"-{group}\n")
        if not self._groups:
            self._empty.set()
            self._empty = trio.Event()

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # somebody has killed it
            os.write(self._fd, line.encode())

    async def _until_empty(self) -> None:
        if self._groups:
            await self._empty.wait()


async def keep_guard(*folders: Path, task_status: trio.TaskStatus[Guard]) -> None:
    """Keep a guard until this task is cancelled and nothing is left to be guarded.

    It also removes the folders, should their owner not be able to.
    """
    process = await trio.lowlevel.open_process(
        [sys.executable, "-I", "-S", _SCRIPT, *map(str, folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    guard = Guard(process)
    try:
        task_status.started(guard)
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + PARTING_LIMIT_S):
            await guard._until_empty()  # noqa: SLF001  it is this module's
        with trio.CancelScope(shield=True):
            assert process.stdin is not None, "it was opened with a pipe"
            await process.stdin.aclose()
            await process.wait()
