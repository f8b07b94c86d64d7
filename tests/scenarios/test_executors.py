"""What runs ranges, and what is left behind of it: nothing."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scenarios.executors import cores, named, processes, undisturbed
from scenarios.problems import ScenarioError

MODULE = """
from concurrent.futures import ThreadPoolExecutor
def make(): return ThreadPoolExecutor(2)
def broken(): raise RuntimeError("no cluster")
def wrong(): return 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_pool.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_pool", raising=False)


def interrupt(_running: "Future[Any]") -> None:
    raise KeyboardInterrupt


def test_processes_work_and_end() -> None:
    with processes(2) as executor:
        pids = {executor.submit(os.getpid).result() for _ in range(8)}
        ignored = executor.submit(signal.getsignal, signal.SIGINT).result()
    assert os.getpid() not in pids
    assert ignored is signal.SIG_IGN
    assert not multiprocessing.active_children()


def test_an_exception_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.executors.GRACE_S", 30.0)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), processes(2) as executor:
        interrupt(executor.submit(time.sleep, 60))
    assert time.monotonic() - begun < 10
    assert not multiprocessing.active_children()


def test_a_program_with_threads_is_not_forked() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with processes(1) as executor:
            assert executor.submit(os.getpid).result() != os.getpid()
            assert executor._mp_context.get_start_method() == "spawn"  # type: ignore[attr-defined]  # no other way to see it
    finally:
        stop.set()
        thread.join()


@pytest.mark.usefixtures("module")
def test_a_factory_in_the_working_directory_is_found() -> None:
    before = list(sys.path)
    with named("my_pool:make") as executor:
        assert isinstance(executor, ThreadPoolExecutor)
    assert sys.path == before
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_pool", "names no factory"),
        ("my_pool:", "names no factory"),
        ("nowhere:make", "ModuleNotFoundError"),
        ("my_pool:missing", "AttributeError"),
        ("my_pool:broken", "RuntimeError: no cluster"),
        ("my_pool:wrong", "gives a int, which is no concurrent.futures.Executor"),
    ],
)
def test_what_gives_no_executor_is_refused(name: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words), named(name):
        pass


@pytest.mark.usefixtures("module")
def test_a_named_executor_is_not_waited_for_after_an_exception() -> None:
    begun = time.monotonic()
    release = threading.Event()
    with pytest.raises(KeyboardInterrupt), named("my_pool:make") as executor:
        interrupt(executor.submit(release.wait, 10))
    assert time.monotonic() - begun < 1
    release.set()


def test_cores_are_those_that_this_process_may_use() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_second_interrupt_does_not_break_off_the_cleaning_up() -> None:
    with undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
