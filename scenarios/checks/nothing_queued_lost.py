"""Durability of the queue: a run that the server took is never simply gone."""

from __future__ import annotations

from collections.abc import Iterator

from scenarios.checks.history import History, Violation


def nothing_queued_lost(history: History) -> Iterator[Violation]:
    """Each queued run has ended, or still stands on the server with a time at which it is due.

    Reads `run.queued`, `run.terminal`, tickets and answers, and the server's table `runs` at the
    end. A server that keeps its runs in other tables is not judged.
    """
    if not history.keeps_runs:
        return
    rows = history.run_rows
    for story in history.stories.values():
        begun = story.begun
        if begun is None or story.first() is not None:
            continue
        row = rows.get(story.run)
        if row is None:
            yield Violation(
                "nothing_queued_lost",
                f"run {story.run} was queued and never ended, and the server no longer has it",
                (begun.n,),
            )
        elif row.due_us is None:
            yield Violation(
                "nothing_queued_lost",
                f"run {story.run} was queued and never ended, and nothing watches it",
                (begun.n,),
            )
