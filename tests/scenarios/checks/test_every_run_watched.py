"""Each run that has not ended is due at some time, and the server wakes by then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.checks.every_run_watched import every_run_watched
from scenarios.checks.history import History, Violation
from tests.scenarios.checks.broken import OTHERS, played
from tests.scenarios.checks.tale import KINDS, Act, S, Tale
from tests.scenarios.checks.test_nothing_queued_lost import row, stores
from transports.clock import EPOCH_US

NAME = "every_run_watched"
SHORT = '[run]\nuntil = "5s"\n'
AHEAD_US = 1_000 * S  # how far this server's clock is ahead


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("BlindServer", "and server has set no sweep timer"),
        ("TardyServer", "and server sweeps only after it is due"),
    ],
)
def test_a_server_that_does_not_sweep_in_time_is_found(
    tmp_path: Path, server: str, words: str
) -> None:
    history = played(tmp_path, "server", server, SHORT)
    (found,) = every_run_watched(history)
    (queued,) = history.events("run.queued")
    run = queued.fields["run"]
    assert found == Violation(NAME, f"run {run} is queued, {words}", (queued.n,))


def test_the_built_in_server_watches(tmp_path: Path) -> None:
    for until in ("5s", "25s"):
        text = f'[run]\nuntil = "{until}"\n'
        history = played(tmp_path, "server", "Server", text, file=OTHERS)
        assert [one.due_us > EPOCH_US for one in history.run_rows.values()] == [True]
        assert list(every_run_watched(history)) == []


def test_a_run_without_a_due_time_is_found() -> None:
    tale = Tale()
    queued = tale.queue()
    words = "run r1 is queued, and nothing watches it"
    assert tale.judge(every_run_watched, stores=stores(row(due_us=None))) == [
        Violation(NAME, words, (queued,))
    ]


@pytest.mark.parametrize("status", ["queued", "running"])
@pytest.mark.parametrize(("late_us", "found"), [(0, 0), (1, 1), (-5, 0)])
def test_a_sweep_is_due_by_the_clock_that_stamped_the_run(
    status: str, late_us: int, found: int
) -> None:
    tale = Tale()
    tale.now_us = 10 * S
    tale.queue()
    tale.now_us = 20 * S
    tale.event("run.started", run="r1", device="relay")
    begun_s = 10 if status == "queued" else 20
    times = {"queued_us": 10 * S + AHEAD_US, "due_us": (begun_s + 60) * S + AHEAD_US}
    if status == "running":
        times |= {"started_us": 20 * S + AHEAD_US, "queued_us": 1}  # the later stamp counts
    timers = {"server": {"sweep": (begun_s + 60) * S + late_us}}
    assert (
        len(tale.judge(every_run_watched, stores=stores(row(status, **times)), timers=timers))
        == found
    )


def test_a_run_that_was_there_before_is_judged_by_the_virtual_clock() -> None:
    old = stores(row(due_us=EPOCH_US + 5 * S))
    good: dict[str, Any] = {"server": {"sweep": 5 * S}}
    assert Tale().judge(every_run_watched, stores=old, timers=good) == []
    bad: dict[str, Any] = {"server": {"sweep": 5 * S + 1}}
    words = "run r1 is queued, and server sweeps only after it is due"
    assert Tale().judge(every_run_watched, stores=old, timers=bad) == [Violation(NAME, words)]


def test_who_is_down_and_what_has_ended_is_not_judged() -> None:
    unwatched: dict[str, Any] = {
        "stores": stores(row()),
        "timers": {"server": {}},
        "kinds": KINDS,
    }
    killed = Act(1, 0, "server", 0, "kill")
    tale = Tale()
    tale.recorder.start(0, "server", 0)
    tale.recorder.start(0, "server", 1)
    started = tale.recorder.records[1]
    assert len(list(every_run_watched(History([], **unwatched)))) == 1
    assert list(every_run_watched(History([killed], **unwatched))) == []
    assert len(list(every_run_watched(History([killed, started], **unwatched)))) == 1
    ended = {**unwatched, "stores": stores(row("expired"))}
    assert list(every_run_watched(History([], **ended))) == []
    assert list(every_run_watched(History([], **{**unwatched, "timers": {}}))) == []
