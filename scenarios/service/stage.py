"""A stage for the tour: processes and commands in a folder that is gone at the end, as they are.

Whatever happens, nothing is left: should this process be killed, another one, which waits for that,
ends the others and removes the folder.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from scenarios import cli, watch_parent
from scenarios.service.agent import INTERRUPTED
from scenarios.service.config import PREFIX

LIMIT_S: Final = 20.0  # for a process to say something; a busy machine takes some seconds
END_S: Final = 15.0  # for one that is told to stop; it gives up by itself after 10 s
LOOK_S: Final = 0.02
TAIL_LINES: Final = 8


class TourError(Exception):
    """What was to happen did not: a sentence, and what the process said last."""


class Player:
    """A process of the tour; `err` and `out` are what it has printed."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], err: Path, out: Path) -> None:
        self.name = name
        self._popen = popen
        self._err, self._out = err, out

    @property
    def err(self) -> str:
        """What it has printed on stderr."""
        return self._err.read_text(errors="replace")

    @property
    def out(self) -> str:
        """What it has printed on stdout."""
        return self._out.read_text(errors="replace")

    @property
    def group(self) -> int:
        """Its process group, which it has for itself."""
        return self._popen.pid

    def wait_for(self, words: str) -> str:
        """Return the first line that has these words; TourError if it doesn't come."""
        end_s = time.monotonic() + LIMIT_S
        while True:
            ended = self._popen.poll() is not None  # looked at first: then all is written
            for line in self.err.splitlines():
                if words in line:
                    return line
            if ended or time.monotonic() > end_s:
                tail = "\n".join(self.err.splitlines()[-TAIL_LINES:])
                raise TourError(f"the {self.name} did not come to say {words!r}\n{tail}".rstrip())
            time.sleep(LOOK_S)

    def kill(self) -> None:
        """Kill it with SIGKILL, and all that it has started."""
        if self._popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)
            self._popen.wait()

    def stop(self) -> int:
        """Tell it to stop; return its exit code."""
        self._popen.terminate()
        return self.end()

    def end(self) -> int:
        """Wait for its end; return its exit code. TourError if it goes on."""
        try:
            return self._popen.wait(END_S)
        except subprocess.TimeoutExpired:
            raise TourError(f"the {self.name} did not end within {END_S:g} s") from None


class Stage:
    """See the module's docstring. `folder` is where all of it lies."""

    def __enter__(self) -> Stage:
        # In /tmp where there is one: the path of a socket may not be long.
        place = "/tmp" if Path("/tmp").is_dir() else None  # noqa: S108  a folder of its own in it
        self.folder = Path(tempfile.mkdtemp(prefix="pullcord-tour-", dir=place))
        self._players: list[Player] = []
        self._guard = subprocess.Popen(  # noqa: S603  our own interpreter
            [sys.executable, "-I", "-S", watch_parent.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._variables = {f"{PREFIX}HOME": str(self.folder)}
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for player in self._players:
            player.kill()
            self._tell_guard(-player.group)
        assert self._guard.stdin is not None, "it was opened with a pipe"
        self._guard.stdin.close()
        self._guard.wait()

    def _tell_guard(self, group: int) -> None:
        """Let the guard end a process group if need be; minus a group that has ended."""
        assert self._guard.stdin is not None, "it was opened with a pipe"
        with suppress(OSError):  # somebody has killed it
            self._guard.stdin.write(f"{group:+}\n".encode())
            self._guard.stdin.flush()

    def know(self, **variables: str) -> None:
        """Let commands and processes have these settings as variables."""
        self._variables |= {PREFIX + key.upper(): value for key, value in variables.items()}

    def start(self, name: str, *words: str) -> Player:
        """Start a command that stays, in a process of its own."""
        number = len(self._players)
        err, out = (self.folder / f"{number}.{end}" for end in ("err", "out"))
        path = [entry or str(Path.cwd()) for entry in sys.path]
        code = f"import sys; sys.path[:] = {path!r}; from {cli.__name__} import main; main()"
        with err.open("wb") as err_file, out.open("wb") as out_file:
            popen = subprocess.Popen(  # noqa: S603  our own interpreter
                [sys.executable, "-c", code, *words],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,  # Ctrl-C is for the tour, which ends them
            )
        player = Player(name, popen, err, out)
        self._players.append(player)
        self._tell_guard(popen.pid)
        return player

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command in this process; return its exit code, its stdout and stderr.

        ScenarioError for what it refuses.
        """
        out, err = io.StringIO(), io.StringIO()
        with self._as_environment(), redirect_stdout(out), redirect_stderr(err):
            code = cli.application()(words, print_error=False)
        if code == INTERRUPTED:  # it heeds Ctrl-C itself, and the tour does too
            raise KeyboardInterrupt
        return int(code or 0), out.getvalue(), err.getvalue()

    def _environment(self) -> Mapping[str, str]:
        mine = {key: text for key, text in os.environ.items() if not key.startswith(PREFIX)}
        return mine | self._variables

    @contextmanager
    def _as_environment(self) -> Iterator[None]:
        """Have the tour's variables here meanwhile, and none of the user's own for pullcord."""
        before = dict(os.environ)
        wanted = self._environment()
        try:
            os.environ.clear()
            os.environ.update(wanted)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
