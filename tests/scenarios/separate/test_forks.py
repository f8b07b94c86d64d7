"""The process that forks others: what it gives them, what it tells of them, and its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import trio

from scenarios.separate.forks import LOST_CODE, Forked, Forker, forker_of_this_process
from tests.scenarios.own_programs import is_gone


@pytest.fixture
def forker() -> Iterator[Forker]:
    one = Forker()
    yield one
    one.close()


async def forked(forker: Forker) -> Forked:
    """A process that waits to be told its job."""
    process = await forker.fork()
    assert process is not None
    return process


async def test_a_process_ends_by_itself_when_it_is_told_no_job(forker: Forker) -> None:
    one, other = await forked(forker), await forked(forker)
    assert os.getpgid(one.pid) == one.pid  # a group of its own, from the start
    assert os.getpgid(other.pid) == other.pid
    await one.stdin.aclose()
    assert await one.wait() == 0
    assert (one.poll(), other.poll()) == (0, None)
    os.kill(other.pid, signal.SIGKILL)
    assert await other.wait() == await other.wait() == -signal.SIGKILL


async def test_what_it_prints_comes_to_us(forker: Forker) -> None:
    one = await forked(forker)
    await one.stdin.send_all(b"\x00\x00\x00\x04none")
    words = b"".join([piece async for piece in one.stdout])
    assert b"UnpicklingError" in words
    assert await one.wait() == 1


async def test_with_the_forker_all_of_them_end(forker: Forker) -> None:
    one, stopped = await forked(forker), await forked(forker)
    os.kill(stopped.pid, signal.SIGSTOP)
    forker.close()
    assert await one.wait() == await stopped.wait() == LOST_CODE
    assert is_gone(one.pid)
    assert is_gone(stopped.pid)
    assert not forker.is_alive


async def test_a_forker_that_is_gone_forks_nothing(forker: Forker) -> None:
    forker._process.kill()
    with trio.fail_after(2):
        assert await forker.fork() is None


def test_one_serves_all_and_is_replaced_when_it_is_gone() -> None:
    one = forker_of_this_process()
    assert forker_of_this_process() is one
    one._process.kill()
    one._process.wait()
    another = forker_of_this_process()
    assert another is not one
    assert another.is_alive
    one.close()
