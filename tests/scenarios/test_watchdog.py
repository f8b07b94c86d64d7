"""The watchdog: what stands still is ended, and named."""

import contextlib
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from scenarios import watchdog as module
from scenarios.watchdog import StuckError, is_ours, watchdog
from scenarios.work import Range, run_range
from tests.scenarios.test_work import foreign_job, nothing_known

__all__ = ["nothing_known"]


class World:
    """As much of a simulator as the watchdog looks at."""

    def __init__(self) -> None:
        self.replication = self.now_us = self.serial = 0


def stand_still(world: Any, real_s: float, move: bool = False) -> None:
    end = time.monotonic() + real_s
    while time.monotonic() < end:
        world.now_us += move
        time.sleep(0.001)


def careless(world: Any) -> None:
    while True:
        with contextlib.suppress(Exception):
            stand_still(world, 5)


def flood(world: Any) -> None:
    while True:
        world.serial += 1
        time.sleep(0.001)


def test_time_that_goes_on_is_let_be() -> None:
    world: Any = World()
    with watchdog(world, 0.1):
        stand_still(world, 0.4, move=True)


def test_time_that_stands_still_is_ended_even_where_everything_is_caught() -> None:
    world: Any = World()
    begun = time.monotonic()
    with (
        pytest.raises(StuckError, match=r"a turn at 0 s did not end within 0.1 s"),
        watchdog(world, 0.1),
    ):
        careless(world)
    assert time.monotonic() - begun < 1


def test_an_instant_of_too_many_messages_is_ended_before_the_memory_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MESSAGES_LIMIT", 10)
    world: Any = World()
    with pytest.raises(StuckError, match="more than 10 messages and timers"), watchdog(world, 4.0):
        flood(world)


def test_a_stopped_process_is_not_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    world: Any = World()
    look = module._Look(world, 1.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3600)
    look(0, None)
    look(0, None)
    assert look._still_s <= 2 * look.tick_s


def test_nothing_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with watchdog(World(), 0.1):  # type: ignore[arg-type]  # as much of it as is looked at
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_in_another_thread_it_does_nothing() -> None:
    world: Any = World()
    ended = []

    def work() -> None:
        with watchdog(world, 0.05):
            stand_still(world, 0.3)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended


def test_actors_that_keep_each_other_busy_are_all_named() -> None:
    world: Any = World()
    look = module._Look(world, 1.0)
    look._turns = dict.fromkeys(f"agent-{number} on GraphRun from server" for number in range(6))
    assert str(look.error()) == (
        "time stands still at 0 s: actors keep each other busy without end: agent-0 on GraphRun "
        "from server, agent-1 on GraphRun from server, agent-2 on GraphRun from server and agent-3 "
        "on GraphRun from server and 2 more"
    )


def test_whose_turn_it_is_and_the_users_line(tmp_path: Path) -> None:
    body = "context.set_timer('right' if timer == 'left' else 'left', 0)\nreturn"
    rows = run_range(foreign_job(tmp_path, body), Range(first=0, last=1, patience_s=0.4))
    assert rows.trouble is not None
    assert rows.trouble.kind == "stuck"
    assert "relay on timer 'left'" in rows.trouble.sentence or (
        "relay on timer 'right'" in rows.trouble.sentence
    )


def test_which_files_are_ours() -> None:
    root = Path(module.__file__).parent.parent
    assert is_ours(str(root / "actors" / "relay.py"))
    assert is_ours(str(root / "scenarios" / "work.py"))
    assert not is_ours(str(root / "scenarios" / "examples" / "eager_relay.py"))
    assert not is_ours(str(root / "tests" / "actors" / "x.py"))
    assert not is_ours("/home/me/actors/relay.py")
