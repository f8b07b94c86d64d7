"""What ends processes and removes folders once nobody tells it anything any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scenarios import watch_parent
from tests.scenarios.own_programs import is_alive, is_gone

SLEEPS = ["/bin/sh", "-c", "sleep 60 & echo $!; exec sleep 60"]


def start() -> tuple[subprocess.Popen[bytes], int]:
    """A process that leads a group, and the pid of another one in the group."""
    leader = subprocess.Popen(SLEEPS, stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    with leader.stdout:
        return leader, int(leader.stdout.readline())


def test_it_ends_the_groups_that_are_left_and_removes_the_folders(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text("x")
    (left, its_child), (released, other) = start(), start()
    os.kill(left.pid, 19)  # stopped, it can see nothing close
    lines = f"+{left.pid}\n+{released.pid}\n+999999999\n-{released.pid}\n"
    command = [sys.executable, "-I", "-S", watch_parent.__file__, str(folder)]
    subprocess.run(command, input=lines.encode(), check=True)
    assert left.wait() == -9
    assert is_gone(its_child)
    assert is_alive(other)
    assert not folder.exists()
    os.killpg(released.pid, 9)
    released.wait()
