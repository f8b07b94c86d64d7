"""The child process in which Graphs' scripts run: it reads calls, runs them, writes turns.

Nothing that a script does can keep it alive. A call that never returns, even in native code that
holds every lock of the interpreter, is ended by the kernel: before each call an alarm is set whose
default action ends the process, so it works also when the host has died in the meantime. Between
calls it reads, and the end of its input, which the host's death brings about, ends it.

A frame is its length in 4 bytes, the lowest first, then UTF-8. A call is a line of words, then JSON
for the isolate. An answer is one character and a text: `=` a turn, `!` a limit, its kind before the
sentence, `?` why no script can run here. The first frame is the prelude.
"""

from __future__ import annotations

import os
import resource
import select
import signal

from actors.graphs.isolate import Isolate, OverLimitError

IN, OUT = 0, 1
LENGTH_BYTES = 4
# The host kills first and knows why; the alarm is for a host that can't any more.
ALARM_MARGIN_S = 1.0
# Standard input, output and error, and a few while Python starts; a script opens none.
FILES_LIMIT = 16
STACK_BYTES = 8 << 20  # of the thread in which scripts run: twice what they may use
# Isolates made ahead: a few scripts that start together all find one. Each takes 0.25 MB.
SPARES = 4
# How long the host may take between two starts of one burst: meanwhile nothing is made ahead, or
# the second one would wait for it.
BURST_MS = 1


def pack(body: bytes) -> bytes:
    """A frame."""
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def read_exactly(count: int) -> bytes:
    """So many bytes of the input; ends the process at the input's end."""
    parts = []
    while count:
        part = os.read(IN, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame() -> str:
    """The next frame's text."""
    return read_exactly(int.from_bytes(read_exactly(LENGTH_BYTES), "little")).decode()


def write_frame(body: bytes) -> None:
    """Write a frame; ends the process if nobody reads any more."""
    frame = memoryview(pack(body))
    try:
        while frame:
            frame = frame[os.write(OUT, frame) :]
    except OSError:
        os._exit(0)


def limit_process(memory_bytes: int) -> None:
    """Take from this process what no script needs: files, children, dumps, more memory."""
    limits = (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES_LIMIT),
        (resource.RLIMIT_NPROC, 0),
    )
    for which, limit in limits:
        try:
            resource.setrlimit(which, (limit, limit))
        except (OSError, ValueError):
            continue  # a stricter one holds already, or this system has none: the others still hold
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if 0 <= soft < STACK_BYTES:  # a shell's limit would end a script that may recurse deeper
        with_room = STACK_BYTES if hard < 0 else min(STACK_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (with_room, hard))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


class Worker:
    """The isolates of this process by the numbers that the host gave them."""

    def __init__(self, prelude: str, isolates_limit: int) -> None:
        self.prelude = prelude
        self.isolates_limit = isolates_limit
        self.isolates: dict[int, Isolate] = {}
        self.spares: list[Isolate] = []
        self.calls = select.poll()
        self.calls.register(IN, select.POLLIN)

    def prepare(self) -> None:
        """Make the next scripts' isolates while the host is silent: three quarters of a start."""
        while len(self.spares) < min(SPARES, self.isolates_limit - len(self.isolates)):
            if self.calls.poll(BURST_MS if self.spares else 0):
                return
            try:
                self.spares.append(Isolate(self.prelude))
            except ImportError:
                return  # it is told when a script is to be started

    def answer(self, call: str) -> bytes | None:
        """Do what a frame asks for; a drop needs no answer.

        Its words are what to do (start, settle, drop), the isolate's number, the numbers of others
        to drop before, with commas (- for none), then the limits: wall time, computing time, both
        in microseconds, memory, stack, promise reactions, output.
        """
        head, _, text = call.partition("\n")
        op, name, dropped, *words = head.split(" ")
        wall_us, cpu_us, memory_bytes, stack_bytes, jobs, output_bytes = map(int, words)
        if dropped != "-":
            for each in dropped.split(","):
                self.isolates.pop(int(each), None)
        if op == "drop":
            return None
        number = int(name)
        signal.setitimer(signal.ITIMER_REAL, wall_us / 1e6 + ALARM_MARGIN_S)
        try:
            if op == "start":
                isolate = self.spares.pop() if self.spares else Isolate(self.prelude)
                isolate.limit(
                    cpu_s=cpu_us / 1e6,
                    memory_bytes=memory_bytes,
                    stack_bytes=stack_bytes,
                    jobs=jobs,
                    output_bytes=output_bytes,
                )
                self.isolates[number] = isolate
            return b"=" + self.isolates[number].turn(op, text)
        except OverLimitError as over:
            self.isolates.pop(number, None)
            return f"!{over.kind} {over.sentence}".encode()
        except ImportError as error:
            return f"?{error}".encode()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def main(memory_bytes: int, isolates_limit: int) -> None:
    """Serve until the host closes the pipe."""
    worker = Worker(read_frame(), isolates_limit)
    worker.prepare()
    limit_process(memory_bytes)
    while True:
        answer = worker.answer(read_frame())
        if answer is not None:
            write_frame(answer)
        worker.prepare()
