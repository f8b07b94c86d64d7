"""One process of a struck deployment: started, killed, stopped, and started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import trio

from tests.scenarios.commandline import ROOT, environment

READY_S: Final = 60.0  # for a process to begin, on a machine with other things to do
LOOK_S: Final = 0.02  # between two looks at what is waited for


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
