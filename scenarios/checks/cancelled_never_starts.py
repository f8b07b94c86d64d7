"""Cancellation: who reads `cancelled` may rely on what has not begun never to begin."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.checks.history import History, Violation, said_in


def cancelled_never_starts(history: History) -> Iterator[Violation]:
    """Nothing of a run starts after the server has said that it is cancelled.

    Reads `run.terminal` and `GraphRun`, and then `run.started` and `engine.started`.
    """
    for story in history.stories.values():
        cancelled = story.first("cancelled")
        if cancelled is None:
            continue
        turn = said_in(cancelled)
        for started in (*story.starts, *story.executions):
            if said_in(started) > turn:
                who = "the engine" if started.event == "engine.started" else "the server"
                yield Violation(
                    "cancelled_never_starts",
                    f"run {story.run} was cancelled, and then {who} let it start",
                    (cancelled.n, started.n),
                )
                break
