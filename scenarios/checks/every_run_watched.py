"""Liveness of the queue: a run that nobody watches would stand still for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from actors.messages import TERMINAL
from scenarios.checks.history import History, Violation
from transports.clock import EPOCH_US

SWEEP = "sweep"  # the server's timer that closes what is overdue


def every_run_watched(history: History) -> Iterator[Violation]:
    """Each run that has not ended has a time at which it is due, and the server wakes by then.

    Reads the server's table `runs` and its timer `sweep` at the end. A server that is down then is
    not judged, nor is its timer where the history doesn't have its timers.
    """
    for server, row in history.runs_at_end:
        if row.status in TERMINAL or server in history.down:
            continue
        story = history.stories.get(row.command_id)
        begun = None if story is None else story.begun
        proof = () if begun is None else (begun.n,)
        if row.due_us is None:
            words = f"run {row.command_id} is {row.status}, and nothing watches it"
            yield Violation("every_run_watched", words, proof)
            continue
        timers = history.timers.get(server)
        if timers is None:
            continue
        sweep_us = timers.get(SWEEP)
        if sweep_us is None:
            words = f"run {row.command_id} is {row.status}, and {server} has set no {SWEEP} timer"
            yield Violation("every_run_watched", words, proof)
        elif sweep_us > row.due_us - _ahead_us(history, row):
            words = (
                f"run {row.command_id} is {row.status}, and {server} sweeps only after it is due"
            )
            yield Violation("every_run_watched", words, proof)


def _ahead_us(history: History, row: Any) -> int:
    """How far the server's stamps were ahead of the records' time when it wrote the due time.

    A server's clock may be wrong, so this is read from what it stamped, where that is on record.
    """
    story = history.stories.get(row.command_id)
    if story is not None and row.status == "running" and story.starts and row.started_us:
        return int(row.started_us) - story.starts[-1].t
    if story is not None and story.queued is not None:
        return int(row.queued_us) - story.queued.t
    return EPOCH_US
