"""What runs ranges: processes by default, any `concurrent.futures.Executor` that a user names."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Set
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scenarios.load import problem_of
from scenarios.work import begin_worker

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

GRACE_S = 1.0  # what a worker gets to end after SIGTERM


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """Give an executor of so many processes; when an exception ends its use, none stays behind."""
    import multiprocessing  # noqa: PLC0415  10 ms that a run in one process saves
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  likewise

    # Forked workers have the plans already; a process with threads must not be forked.
    forks = sys.platform == "linux" and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if forks else "spawn")
    before = set(multiprocessing.active_children())
    # What a worker that is ended can't tidy up lies in a folder of ours.
    with TemporaryDirectory(prefix="pullcord-", ignore_cleanup_errors=True) as folder:
        executor = ProcessPoolExecutor(
            jobs, mp_context=context, initializer=begin_worker, initargs=(folder,)
        )
        with _ended(executor, before):
            yield executor


@contextmanager
def _ended(executor: Executor, before: Set[BaseProcess]) -> Iterator[None]:
    """Start an executor's processes, and end them and all they have: none stays behind."""
    import multiprocessing  # noqa: PLC0415  10 ms that a run in one process saves

    try:
        with _blocked():
            executor.submit(cores)  # starts the workers, whatever it is
        yield
    except BaseException:
        with undisturbed():
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
                child.join(GRACE_S)
                if child.exitcode is None:
                    child.kill()
            # The executor's thread may be reaping one, and only one of two threads learns of it.
            until = time.monotonic() + GRACE_S
            while set(multiprocessing.active_children()) - before and time.monotonic() < until:
                time.sleep(0.001)
        raise
    executor.shutdown()


@contextmanager
def _blocked() -> Iterator[None]:
    """Hold Ctrl-C back while processes begin, which would tell of it by a traceback each."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no second Ctrl-C break off what cleans up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def named(name: str) -> Iterator[Executor]:
    """Give the executor that `module:factory` makes; ScenarioError if there is none."""
    executor = _made(name)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _made(name: str) -> Executor:
    """Call the factory; its module may lie in the working directory."""
    module, colon, factory = name.partition(":")
    cure = "write --executor module:factory, with a callable that returns one"
    if not (module and colon and factory):
        raise problem_of("--executor", f'"{name}" names no factory of an executor', cure)
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        made = getattr(importlib.import_module(module), factory)()
    except Exception as error:
        words = f'"{name}" gives no executor: {type(error).__name__}: {error}'
        raise problem_of("--executor", words, cure) from error
    finally:
        if here in sys.path:
            sys.path.remove(here)
    if not (hasattr(made, "submit") and hasattr(made, "shutdown")):
        kind = type(made).__name__
        words = f'"{name}" gives a {kind}, which is no concurrent.futures.Executor'
        raise problem_of("--executor", words, cure)
    executor: Executor = made
    return executor
