"""An actor's process by itself: the job that it is told, and what a stop tells it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from scenarios.separate import child
from scenarios.separate.child import _went_on, main, packed, read_job
from scenarios.separate.lone import LoneWorld
from scenarios.separate.report import OVER
from scenarios.separate.store import DurableStore
from tests.scenarios.separate.jobs import job_for

OWN = """import helper_of_mine
import msgspec
from pullcord import Relay


class Mine(Relay):
    class Config(Relay.Config, frozen=True, kw_only=True):
        extra: int = 3
"""


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where a test writes what the process reads from its standard input."""
    ours, theirs = os.pipe()
    monkeypatch.setattr(child, "STDIN", ours)
    yield theirs
    os.close(ours)
    os.close(theirs)


def test_a_job_arrives_as_it_was_told(stdin: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setattr(sys, "path", sys.path[:])
    job = job_for("agent", cwd=str(Path.cwd()), import_path=("/a", *sys.path))
    os.write(stdin, packed(job))
    assert read_job() == job
    assert sys.path[0] == "/a"


def test_a_user_s_file_is_imported_before_its_config_is_read(
    stdin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from scenarios.cast import actor_class

    (tmp_path / "helper_of_mine.py").write_text("")
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    mine = actor_class("relay", "own.py:Mine", tmp_path)
    job = job_for("relay", folder=str(tmp_path), cwd=str(Path.cwd()), import_path=tuple(sys.path))
    cast = msgspec.structs.replace(job.cast, use="own.py:Mine", config=mine.Config(extra=5))
    os.write(stdin, packed(msgspec.structs.replace(job, cast=cast)))
    del sys.modules[mine.__module__]
    again = read_job().cast.config
    assert (type(again).__qualname__, again.extra) == ("Mine.Config", 5)


@pytest.mark.parametrize("begun", [b"", b"\x00\x00", b"\x00\x00\x00\x09half"])
def test_with_its_input_closed_it_does_nothing(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.pipe()
    monkeypatch.setattr(child, "STDIN", ours)
    os.write(theirs, begun)
    os.close(theirs)
    before = signal.getsignal(signal.SIGCONT)
    main()
    assert signal.getsignal(signal.SIGCONT) is before
    os.close(ours)


def test_each_time_that_it_goes_on_it_knows_how_long_its_clock_stood_still(
    stdin: int, tmp_path: Path
) -> None:
    os.set_blocking(child.STDIN, False)
    store = DurableStore(tmp_path / "store")
    world = LoneWorld(job_for("relay"), store)
    from scenarios.cast import make_actor

    world.take(make_actor(world.job.cast, world.job.place, tmp_path))
    os.write(stdin, b"15\n0\n")
    _went_on(world, signal.SIGCONT, None)
    assert world.naps == [15, 0]
    _went_on(world, signal.SIGCONT, None)  # somebody else's signal
    assert world.naps == [15, 0]
    over = [world.over]
    os.write(stdin, OVER + b"\n")
    _went_on(world, signal.SIGCONT, None)
    over.append(world.over)
    assert over == [False, True]
    store.close()
