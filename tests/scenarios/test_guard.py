"""The guard of a run's processes, as its owner has it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from scenarios import guard as guarding
from scenarios.guard import Guard, keep_guard
from tests.scenarios.own_programs import is_alive, is_gone


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


async def guard_and_cancel(process: subprocess.Popen[bytes], remove: bool) -> None:
    """Let a guard know a process, and end the guard; meanwhile remove the process, or don't."""
    async with trio.open_nursery() as nursery:
        guard: Guard = await nursery.start(keep_guard)
        guard.add(process.pid)
        nursery.start_soon(_wait_to_remove, guard, process.pid if remove else 0)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def _wait_to_remove(guard: Guard, group: int) -> None:
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.05)
        if group:
            guard.remove(group)


async def test_its_owner_has_time_to_end_what_is_guarded(sleeper: subprocess.Popen[bytes]) -> None:
    await guard_and_cancel(sleeper, remove=True)
    assert is_alive(sleeper.pid)


async def test_what_its_owner_leaves_it_ends(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "PARTING_LIMIT_S", 0.1)
    await guard_and_cancel(sleeper, remove=False)
    assert is_gone(sleeper.pid)


async def test_it_removes_a_folder_that_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "left"
    folder.mkdir()
    async with trio.open_nursery() as nursery:
        await nursery.start(keep_guard, folder)
        nursery.cancel_scope.cancel()
    assert not folder.exists()


async def test_one_that_was_killed_is_no_trouble(sleeper: subprocess.Popen[bytes]) -> None:
    async with trio.open_nursery() as nursery:
        guard: Guard = await nursery.start(keep_guard)
        guard._process.kill()
        await guard._process.wait()
        guard.add(sleeper.pid)
        guard.remove(sleeper.pid)
        nursery.cancel_scope.cancel()
    assert is_alive(sleeper.pid)
