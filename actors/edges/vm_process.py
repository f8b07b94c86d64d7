"""Graphs' VMs in child processes, which can be killed: the port of a deployed engine.

Several VMs share a process, since a process takes 30 ms to start and 14 MB, and a VM in it 1 ms and
180 KB. A call that isn't answered within its wall time ends the process, and with it the other VMs
there; each of them fails with VmLimitError ("died") at its next call, and new ones get another
process, of which one is kept ready. A process whose script went over any limit takes no new VMs.

Calls block, and may come from any thread; they wait for one another only within a process. So an
engine's turns run in a worker thread under trio, and inline in the simulator, where virtual time
stands still meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Self, get_args

from actors.edges.vm_worker import LENGTH_BYTES, pack
from actors.graphs.script import MISSING, not_loading, read_prelude
from actors.graphs.seam import (
    STOPPED,
    LimitKind,
    VmLimitError,
    VmLimits,
    VmMissingError,
    VmTurn,
)
from actors.graphs.turns import Call, TextVm, read_turn

# What dies together. More save processes: 64 MB of a thousand scripts' 14 GB.
VMS_PER_WORKER = 16
# Address space of a process: Python's own, and what its VMs are hardly ever in need of at once.
WORKER_BYTES = 1 << 30
CHUNK_BYTES = 1 << 20
# How long a script whose run is cancelled may compute on: turns of an honest one take milliseconds,
# and others in its process die with it.
ALONE_S, AMONG_OTHERS_S = 0.002, 0.1
# Starts the worker with two folders more on a bare path, behind the standard library's: where the
# packages lie, and the engine.
BOOT = (
    "import sys; sys.path += sys.argv[1:3]; from importlib import import_module; "
    "import_module(sys.argv[3]).main(*map(int, sys.argv[4:]))"
)
WORKER = f"{__package__}.vm_worker"

KINDS: tuple[LimitKind, ...] = get_args(LimitKind)


def engine_folder() -> Path:
    """Where the JavaScript engine lies. Raises VmMissingError without one."""
    found = find_spec("_quickjs")
    if found is None or found.origin is None:
        raise VmMissingError(MISSING)
    return Path(found.origin).parent


def packages_folder() -> Path:
    """Where this module's outermost package lies."""
    return Path(__file__).parents[WORKER.count(".")]


class Worker:
    """One child process for so many VMs. Raises VmLimitError ("died") where none can be started."""

    def __init__(self, prelude: str, vms: int) -> None:
        self.lock = threading.RLock()
        self.live = 0  # VMs that are not closed
        self.retired = False
        self.dropped: list[int] = []  # VMs that are closed, as their process will be told
        self.calling = 0  # the number of the VM whose call is going on
        self.broken_off = 0  # the same, if its process was killed to end it
        self.death: str | None = None
        self.numbers = itertools.count(1)
        folders = [str(packages_folder()), str(engine_folder())]
        command = [sys.executable, "-I", "-S", "-B", "-c", BOOT, *folders, WORKER]
        try:
            self.process = subprocess.Popen(  # noqa: S603  our own program, nothing of a user's
                [*command, str(WORKER_BYTES), str(vms)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={},
                cwd="/",
                start_new_session=True,  # a terminal's Ctrl-C is for the host, who decides
            )
        except OSError as error:
            raise VmLimitError("died", f"no process for scripts can be started: {error}") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input = self.process.stdin.fileno()
        self.output = self.process.stdout.fileno()
        # A child that is stopped must not stop its host.
        os.set_blocking(self.input, False)
        os.set_blocking(self.output, False)
        self.owner = os.getpid()
        try:
            self.send(pack(prelude.encode()), time.monotonic() + 60)
        except OSError:
            raise self.ended("it broke off as it started") from None

    def call(self, op: Call, number: int, limits: VmLimits, text: str) -> bytes:
        """Have the process do something, and return its answer. Raises VmLimitError."""
        with self.lock:
            if self.death is None and os.getpid() != self.owner:
                raise VmLimitError("died", "the script's VM belongs to the process before the fork")
            if self.death is not None:
                raise VmLimitError("died", self.death)
            words = (
                f"{op} {number} {self.take_dropped()} {limits.wall_us} {limits.cpu_us} "
                f"{limits.memory_bytes} {limits.stack_bytes} {limits.jobs} {limits.output_bytes}\n"
            )
            end_s = time.monotonic() + limits.wall_us / 1e6
            self.calling = number
            try:
                self.send(pack((words + text).encode()), end_s)
                return self.receive_frame(limits.output_bytes + CHUNK_BYTES, end_s)
            except TimeoutError:
                self.ended("another script in the same process ran over its time")
                seconds = limits.wall_us / 1e6
                raise VmLimitError(
                    "wall", f"the script did not come back within {seconds:g} s and was killed"
                ) from None
            except OSError:
                if self.broken_off != number:
                    raise self.ended("it broke off") from None
                self.ended("another script in the same process was cancelled as it computed")
                raise VmLimitError("died", STOPPED) from None
            except BaseException:  # the answer is lost, so nobody may read the next one as it
                self.ended("its host was interrupted")
                raise
            finally:
                self.calling = 0

    def break_off(self, number: int) -> None:
        """Kill the process if the call of a VM is still going on, from any thread."""
        if self.calling == number:
            self.broken_off = number
            self.process.kill()

    def drop(self, number: int) -> None:
        """Have the process forget a VM: now, or with its next call if it is at work."""
        self.dropped.append(number)
        if self.lock.acquire(blocking=False):
            try:
                if self.death is None:
                    frame = pack(f"drop 0 {self.take_dropped()} 0 0 0 0 0 0\n".encode())
                    self.send(frame, time.monotonic() + 1)
            except OSError:
                self.ended("it broke off")
            finally:
                self.lock.release()

    def take_dropped(self) -> str:
        """The VMs to forget, as a call names them; other threads may add some meanwhile."""
        numbers = []
        while self.dropped:
            numbers.append(self.dropped.pop())
        return ",".join(map(str, numbers)) or "-"

    def send(self, frame: bytes, end_s: float) -> None:
        """Write all of it. Raises TimeoutError, and OSError when the process is gone."""
        left = memoryview(frame)
        while left:
            try:
                left = left[os.write(self.input, left) :]
            except BlockingIOError:
                wait_for(self.input, select.POLLOUT, end_s)

    def receive_frame(self, limit_bytes: int, end_s: float) -> bytes:
        """Read an answer. Raises TimeoutError, and OSError when the process is gone or errs."""
        size = int.from_bytes(self.receive(LENGTH_BYTES, end_s), "little")
        if size > limit_bytes:
            raise OSError(f"an answer of {size} bytes")
        return self.receive(size, end_s)

    def receive(self, count: int, end_s: float) -> bytes:
        """Read so many bytes. Raises TimeoutError, and OSError when the process is gone."""
        parts: list[bytes] = []
        while count:
            try:
                part = os.read(self.output, min(count, CHUNK_BYTES))
            except BlockingIOError:
                wait_for(self.output, select.POLLIN, end_s)
                continue
            if not part:
                raise BrokenPipeError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def ended(self, why: str) -> VmLimitError:
        """Kill the process, and return the error for its VMs."""
        self.kill(f"the process of the script's VM is gone: {why}")
        assert self.death is not None
        return VmLimitError("died", self.death)

    def kill(self, why: str) -> None:
        """End the process and wait until it is gone. A call under way fails."""
        if os.getpid() != self.owner:
            self.forget()
            return
        self.process.kill()
        with self.lock:
            if self.death is None:
                self.death = why
                self.retired = True
                self.process.wait()
                self.close_pipes()

    def close_pipes(self) -> None:
        """Close this end of the pipes, which alone ends a process that waits for a call."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def forget(self) -> None:
        """Leave the process to the one that started it, of which this is a fork."""
        self.close_pipes()
        self.process.returncode = 0  # nobody's child here: no warning, no wait


def wait_for(descriptor: int, event: int, end_s: float) -> None:
    """Wait until a pipe is ready. Raises TimeoutError."""
    poll = select.poll()
    poll.register(descriptor, event)
    left_ms = (end_s - time.monotonic()) * 1000
    if left_ms <= 0 or not poll.poll(left_ms):
        raise TimeoutError


def error_of(answer: str) -> VmLimitError | VmMissingError:
    """The error that a worker tells of."""
    if answer.startswith("?"):
        return not_loading(answer[1:])
    word, _, sentence = answer.removeprefix("!").partition(" ")
    kind: LimitKind = next((kind for kind in KINDS if kind == word), "died")
    return VmLimitError(kind, sentence)


class ProcessVm(TextVm):
    """A VM of the seam, in a child process."""

    def __init__(self, port: ProcessVmPort, worker: Worker, limits: VmLimits) -> None:
        super().__init__(limits)
        self.port = port
        self.worker = worker
        self.number = next(worker.numbers)
        self.closed = False
        self.hurried = False

    def turn(self, op: Call, text: str) -> VmTurn:
        """Run one turn; a VM that went over a limit is closed, its process takes no new ones."""
        if self.closed:
            raise VmLimitError("died", "the script's VM is closed")
        if self.hurried:
            self.close()
            raise VmLimitError("died", STOPPED)
        try:
            answer = self.worker.call(op, self.number, self.limits, text)
            if answer.startswith(b"="):
                return read_turn(answer[1:], self.lines)
            raise error_of(answer.decode(errors="replace"))
        except (VmLimitError, VmMissingError):
            self.worker.retired = True
            self.close()
            raise

    def hurry(self) -> None:
        """See Vm."""
        self.hurried = True
        if self.worker.calling == self.number:
            wait_s = ALONE_S if self.worker.live == 1 else AMONG_OTHERS_S
            timer = threading.Timer(wait_s, self.worker.break_off, (self.number,))
            timer.daemon = True
            timer.start()

    def close(self) -> None:
        """See Vm."""
        if not self.closed:
            self.closed = True
            self.port.leave(self.worker, self.number)


class ProcessVmPort:
    """Opens VMs in child processes. Close it at the end; its own end closes it too.

    Threads may share it. After a fork the child gets processes of its own. With `spare` an empty
    process is kept ready, so that no script waits for one to start.
    """

    def __init__(self, vms_per_worker: int = VMS_PER_WORKER, *, spare: bool = True) -> None:
        self.vms_per_worker = vms_per_worker
        self.spare = spare
        self.prelude = read_prelude()
        self.lock = threading.Lock()
        self.workers: list[Worker] = []
        self.owner = os.getpid()
        self.finalizer = weakref.finalize(self, kill_all, self.workers)

    def open(self, limits: VmLimits) -> ProcessVm:
        """See VmPort."""
        with self.lock:
            if os.getpid() != self.owner:
                for worker in self.workers:
                    worker.forget()
                self.workers.clear()
                self.owner = os.getpid()
            worker = self.worker_with_room() or self.start_worker()
            worker.live += 1
            if self.spare:
                self.keep_spare()
            return ProcessVm(self, worker, limits)

    def worker_with_room(self) -> Worker | None:
        """The first process that takes another VM; those that have ended are removed."""
        for worker in list(self.workers):
            if worker.process.poll() is not None:
                worker.kill("the process of the script's VM was ended by someone else")
                self.workers.remove(worker)
        fitting = (w for w in self.workers if not w.retired and w.live < self.vms_per_worker)
        return next(fitting, None)

    def start_worker(self) -> Worker:
        """Start a process and return without waiting for it."""
        worker = Worker(self.prelude, self.vms_per_worker)
        self.workers.append(worker)
        return worker

    def keep_spare(self) -> None:
        """Have an empty process ready for when this one is full or killed."""
        if not any(worker.live == 0 and not worker.retired for worker in self.workers):
            with contextlib.suppress(VmLimitError):  # no room for it now: the next VM tells
                self.start_worker()

    def leave(self, worker: Worker, number: int) -> None:
        """Forget a closed VM, and its process if that takes no new ones and this was its last."""
        with self.lock:
            worker.live -= 1
            last = worker.retired and worker.live == 0
            if last and worker in self.workers:
                self.workers.remove(worker)
        if last:
            worker.kill("the process of the script's VM is closed")
        else:
            worker.drop(number)

    def close(self) -> None:
        """End all processes. Their VMs fail with VmLimitError ("died"); a new one may be opened."""
        with self.lock:
            kill_all(self.workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


def kill_all(workers: list[Worker]) -> None:
    """End processes, so that none is left behind."""
    while workers:
        workers.pop().kill("the process of the script's VM is closed")
