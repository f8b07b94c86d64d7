"""Processes without the wait for their imports: one process does them, and forks when asked.

It is asked over its standard input, a socket, by a byte with three descriptors: the new process's
standard input, its output, and a pipe on which the forker says the new pid, and later the exit
code. It does nothing else and has one thread, so that forking it is safe. When the socket closes it
ends all that it has started, and itself.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct

import anyio
import trio

from scenarios.separate.child import main as live

ASK = b"f"
NUMBER = Struct("<i")  # a pid or an exit code
LOST_CODE = -signal.SIGKILL  # of a process whose forker is gone, and so has ended it

# It imports what we have imported, from where we have it.
_STARTER = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from importlib import import_module; import_module(sys.argv[1]).serve()"
)


# The forker's side


def serve() -> None:
    """Fork when asked, until nobody can ask any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    anyio.run(anyio.sleep, 0, backend="trio")  # its imports come with the first use: 40 ms
    asked = socket.socket(fileno=0)
    heard, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    children: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(asked, selectors.EVENT_READ)
        selector.register(heard, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == heard:
                    os.read(heard, 4096)
                elif not _fork(asked, children, [heard, wake, selector.fileno()]):
                    _end(children)
                    return
            _reap(children)


def _nothing(_number: int, _frame: object) -> None:
    """Let the signal wake the selector and do no more."""


def _fork(asked: socket.socket, children: dict[int, int], ours: list[int]) -> bool:
    """Fork for one request; False if there will be none any more."""
    data, (*fds,), _, _ = socket.recv_fds(asked, 1, 3)
    if not data:
        return False
    stdin, stdout, status = fds
    pid = os.fork()
    if not pid:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asked.detach()
        os.setpgid(0, 0)
        for fd, standard in ((stdin, 0), (stdout, 1), (stdout, 2)):
            os.dup2(fd, standard)
        for fd in {*fds, *ours, *children.values()}:
            with suppress(OSError):  # macOS gives the selector's to nobody else
                os.close(fd)
        _be(live)
    with suppress(OSError):  # it may have done so itself, and gone on
        os.setpgid(pid, pid)
    os.close(stdin)
    os.close(stdout)
    children[pid] = status
    _say(status, pid)
    return True


def _be(life: Callable[[], None]) -> None:
    """Live a new process's life, and end it."""
    code = 1
    try:
        life()
        code = 0
    except BaseException:  # noqa: BLE001  there is nobody above who could tell it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(status: int, number: int) -> None:
    with suppress(OSError):  # who asked is gone
        os.write(status, NUMBER.pack(number))


def _reap(children: dict[int, int]) -> None:
    """Tell the exit codes of those that have ended."""
    while children:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        status = children.pop(pid, None)
        if status is not None:
            _say(status, os.waitstatus_to_exitcode(code))
            os.close(status)


def _end(children: dict[int, int]) -> None:
    for pid in children:
        with suppress(OSError):  # it has just ended
            os.killpg(pid, signal.SIGKILL)


# Our side


class Forked:
    """A process that was forked for us: what is used of a `trio.Process`."""

    def __init__(self, pid: int, stdin: int, stdout: int, status: trio.lowlevel.FdStream) -> None:
        self.pid = pid
        self.stdin = trio.lowlevel.FdStream(stdin)
        self.stdout = trio.lowlevel.FdStream(stdout)
        self.returncode: int | None = None
        self._status = status

    async def wait(self) -> int:
        """Wait for its end and return its exit code, a signal's number with a minus."""
        if self.returncode is None:
            told = await _number(self._status)
            self.returncode = LOST_CODE if told is None else told
            await self._status.aclose()
        return self.returncode

    def poll(self) -> int | None:
        """Return its exit code if `wait` has seen it end."""
        return self.returncode


class Forker:
    """A forker process, which ends with this object or before the interpreter does."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = [entry or str(Path.cwd()) for entry in sys.path]
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own interpreter
                [sys.executable, "-c", _STARTER, __name__, *path],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._process = process
        self.close = weakref.finalize(self, _close, ours, process)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    async def fork(self) -> Forked | None:
        """Return a new process that has all imports, None if the forker is gone."""
        (stdin, our_stdin), (our_stdout, stdout), (our_status, status) = (
            os.pipe(), os.pipe(), os.pipe(),
        )  # fmt: skip
        told = trio.lowlevel.FdStream(our_status)
        try:
            with suppress(OSError):
                socket.send_fds(self._socket, [ASK], [stdin, stdout, status])
        finally:
            for fd in (stdin, stdout, status):
                os.close(fd)
        pid = None
        try:
            pid = await _number(told)
        finally:
            if pid is None:
                os.close(our_stdin)
                os.close(our_stdout)
        return None if pid is None else Forked(pid, our_stdin, our_stdout, told)


def _close(ours: socket.socket, process: subprocess.Popen[bytes]) -> None:
    ours.close()
    process.wait()


_forkers: dict[int, Forker] = {}


def forker_of_this_process() -> Forker:
    """Return the forker of this process, started when it is first asked for.

    One serves all cells and threads. It is known by the process, since what a worker process
    inherits from its parent is not its own.
    """
    me = os.getpid()
    forker = _forkers.get(me)
    if forker is None or not forker.is_alive:
        forker = _forkers[me] = Forker()
    return forker


async def _number(status: trio.lowlevel.FdStream) -> int | None:
    """Return the next number on a pipe, None if there is none any more."""
    data = b""
    while len(data) < NUMBER.size:
        piece = await status.receive_some(NUMBER.size - len(data))
        if not piece:
            return None
        data += piece
    [number] = NUMBER.unpack(data)
    return int(number)
