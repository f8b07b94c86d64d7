"""SIGTERM as Ctrl-C, in the process and from outside."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from scenarios.signals import TERMINATED, term_as_interrupt
from tests.scenarios.commandline import MAIN, SMALL, await_end, environment, write

SEPARATE = "-j 2 --transport unix --processes separate"
LONG = SMALL.replace("replications = 40", "replications = 200000")


def test_a_sigterm_interrupts_and_the_next_would_end_us() -> None:
    with term_as_interrupt() as came:
        assert not came()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert came()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_somebody_else_handles_stays_theirs(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with term_as_interrupt() as came:
            ours = signal.SIG_IGN if number == signal.SIGTERM else signal.SIG_DFL
            assert signal.getsignal(signal.SIGTERM) is ours
            assert not came()
    finally:
        signal.signal(number, before)


def test_another_thread_has_no_signals() -> None:
    told: list[bool] = []

    def elsewhere() -> None:
        with term_as_interrupt() as came:
            told.append(came())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert told == [False]


@pytest.mark.parametrize(
    "flags", ["-j 1", "-j 2", "-j 1 --transport unix", "-j 2 --transport unix", SEPARATE]
)
def test_a_run_that_is_terminated_says_how_to_go_on_and_leaves_nothing(
    tmp_path: Path, flags: str
) -> None:
    write(tmp_path, LONG)
    with TemporaryDirectory(dir="/tmp") as temporary:
        terminated(tmp_path, flags, temporary)
        assert list(Path(temporary).iterdir()) == []


def terminated(folder: Path, flags: str, temporary: str) -> None:
    """Begin a run, send it SIGTERM once it has begun, and see that it ends as it should."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *f"run small.toml --out out {flags}".split()],
        cwd=folder,
        env=environment(TMPDIR=temporary),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 20
    journal, pattern = folder / "out" / "journal.jsonl", "*.sqlite" if "separate" in flags else "0"
    while not (
        any(Path(temporary).rglob(pattern))
        if "unix" in flags
        else journal.exists() and journal.read_bytes().count(b"\n") > 2
    ):
        assert time.monotonic() < limit
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (TERMINATED, "")
    assert re.fullmatch(
        r"pullcord: interrupted; [\d,]+ replications are kept\n"
        r"help: go on with it: pullcord run --resume out\n",
        err,
    )
    assert await_end(process.pid) == []
