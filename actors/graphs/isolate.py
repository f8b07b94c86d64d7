"""One JavaScript context, text in and text out, within its limits.

The engine has no I/O of its own, and no Python object is ever handed to it. Its own time limit
starts anew with every promise reaction, so the loop over these is bounded here. What it can't stop
(a native loop that never asks whether it should go on) needs the process's end: see
edges/vm_process.

The child process imports this module at each start, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import time
from importlib import import_module

TYPE_CHECKING = False  # typing itself takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from actors.graphs.seam import LimitKind

# How often the time is looked at closely: the thread's clock costs as much as a short reaction.
CHECK_S = 0.005
# How a turn ends whose script met the memory limit. Inside a text the quotes would be escaped.
FAILED = '"finished":{"error":{"name":'
OUT_OF_MEMORY = FAILED + '"InternalError","message":"out of memory"'
# What a script without room may look like, too: it threw null, or an async function ended silently.
PERHAPS = (FAILED + '"Error","message":"null was thrown: ', '"code":"graph_stalled"')
TOO_LARGE = "what the script asks for, says and returns in one turn is too large"
ARCHIVED = (
    "the JavaScript engine that is installed is the archived package quickjs: "
    "pip uninstall quickjs, then pip install --force-reinstall 'pullcord[graphs]'"
)


class OverLimitError(Exception):
    """A script went over a limit: the kind, and one sentence. The isolate is of no use any more."""

    def __init__(self, kind: LimitKind, sentence: str) -> None:
        self.kind: LimitKind = kind
        self.sentence = sentence
        super().__init__(sentence)


class Isolate:
    """See the module's docstring. `prelude` is what script.read_prelude returns.

    Raises ImportError without an engine, or with one that is too old.
    """

    def __init__(self, prelude: str) -> None:
        engine: Any = import_module("_quickjs")
        self.failure: type[Exception] = engine.JSException
        self.context: Any = engine.Context()
        try:
            self.call: Callable[..., str] = self.context.eval(prelude)
        except self.failure as failure:
            if not str(failure).startswith("SyntaxError"):
                raise
            raise ImportError(ARCHIVED) from None

    def limit(
        self, *, cpu_s: float, memory_bytes: int, stack_bytes: int, jobs: int, output_bytes: int
    ) -> None:
        """Set the limits, once and before the first turn."""
        self.cpu_s = cpu_s
        self.memory_bytes = memory_bytes
        self.jobs = jobs
        self.output_bytes = output_bytes
        self.context.set_max_stack_size(stack_bytes)
        self.context.set_memory_limit(memory_bytes)

    def turn(self, op: str, text: str) -> bytes:
        """Give the script a message, "start" or "settle", run it until it waits, return its turn.

        Raises OverLimitError.
        """
        clock = time.thread_time
        end_s = clock() + self.cpu_s
        self.context.set_time_limit(self.cpu_s)
        try:
            self.call(op, text)
            self.check_time(end_s)
            self.run_jobs(end_s)
            self.check_time(end_s)
            taken = self.call("take")
        except self.failure as failure:
            raise self.over(str(failure), clock() >= end_s) from None
        except MemoryError:
            raise self.out_of_memory() from None
        if OUT_OF_MEMORY in taken:
            raise self.out_of_memory()
        if any(perhaps in taken for perhaps in PERHAPS) and self.is_half_full():
            raise self.out_of_memory()
        turn = taken.encode()
        if not turn or len(turn) > self.output_bytes:
            raise OverLimitError("output", TOO_LARGE)
        return turn

    def is_half_full(self) -> bool:
        """Whether so much memory is in use that a script may well have met its limit."""
        used_bytes: int = self.context.memory()["malloc_size"]
        return used_bytes * 2 > self.memory_bytes

    def run_jobs(self, end_s: float) -> None:
        """Run promise reactions until none is left, or one of the limits."""
        run, now = self.context.execute_pending_job, time.monotonic
        check_s = now() + CHECK_S
        for _ in range(self.jobs):
            if not run():
                return
            if now() > check_s:
                self.check_time(end_s)
                check_s = now() + CHECK_S
        raise OverLimitError(
            "jobs", f"the script ran {self.jobs} promise reactions without waiting for the host"
        )

    def check_time(self, end_s: float) -> None:
        """Give the engine what is left; a script may catch its interruption and go on."""
        left_s = end_s - time.thread_time()
        if left_s <= 0:
            raise self.out_of_time()
        self.context.set_time_limit(left_s)

    def over(self, words: str, timed_out: bool) -> OverLimitError:
        """The limit behind an error of the engine, which has only words for it."""
        if timed_out or "interrupted" in words:
            return self.out_of_time()
        if "out of memory" in words or words.startswith("null"):
            return self.out_of_memory()
        return OverLimitError("died", f"the JavaScript engine failed: {words[:200]}")

    def out_of_time(self) -> OverLimitError:
        """The error of a script that computes too long."""
        return OverLimitError(
            "cpu", f"the script computed for {self.cpu_s:g} s without waiting for the host"
        )

    def out_of_memory(self) -> OverLimitError:
        """The error of a script that needs too much memory."""
        megabytes = self.memory_bytes / 2**20
        return OverLimitError("memory", f"the script needs more than {megabytes:g} MiB of memory")
