"""Integrity of results: what an agent reads was made by a Graph, and by that run's own."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import CHANNEL, Completion, FleetFinished, GraphRun
from actors.text import bounded
from scenarios.checks.history import History, Said, Violation


def result_from_engine(history: History) -> Iterator[Violation]:
    """The result of a completed run is what its engine reported, within the bounds of a result.

    Reads `FleetFinished` and `GraphRun`. Without an engine in the cast nothing is judged. A run
    that did not complete may have another outcome than its Graph: it was cancelled or given up.
    """
    if not history.actors("engine"):
        return
    reports: dict[str, list[Said]] = {}
    for report in history.said_by("engine", FleetFinished):
        run = report.envelope.body.channel.removeprefix(CHANNEL)
        reports.setdefault(run, []).append(report)
    for story in history.stories.values():
        judged: GraphRun | None = None
        for answer in story.answers:
            body = answer.envelope.body
            if body.status != "completed" or body == judged:
                continue
            judged = body
            if body.replayed and body.execution_id is None:
                continue  # the key outlives its run: of a deleted one the status alone is left
            made = reports.get(story.run, [])
            if not any(_same(body, report.envelope.body.completion) for report in made):
                what = "another result than" if made else "a result without"
                yield Violation(
                    "result_from_engine",
                    f"run {story.run} is completed with {what} one from its engine",
                    (*(report.n for report in made), answer.n),
                )
                break


def _same(body: GraphRun, made: Completion) -> bool:
    """Whether an answer has what a Graph made, as it may be posted."""
    done = bounded(made)
    return (
        done.status == "completed"
        and body.result == done.result
        and body.result_truncated == done.result_truncated
        and body.execution_id == done.execution_id
        and body.total_tokens == done.total_tokens
        and body.reported_cost == done.reported_cost
    )
