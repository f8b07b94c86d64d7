"""Finality: an agent may act on the first terminal status that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from logs.record import EventRecord
from scenarios.checks.history import History, Said, Story, Violation, said_in

_NAME = "terminal_never_changes"


def terminal_never_changes(history: History) -> Iterator[Violation]:
    """A run that has a terminal status keeps it, and never runs again.

    Reads `GraphRun` in the order in which servers said it, `run.terminal`, `run.started`, and the
    server's table `runs` at the end. What comes later may be kept beside the status.
    """
    for story in history.stories.values():
        first = story.first()
        if first is None:
            continue
        other = _other(story, first)
        row = history.run_rows.get(story.run)
        if other is not None:
            yield Violation(
                _NAME,
                f"run {story.run} was {status_of(first)} and then {status_of(other)}",
                (first.n, other.n),
            )
        elif row is not None and row.status != status_of(first):
            yield Violation(
                _NAME,
                f"run {story.run} was {status_of(first)} and is {row.status} at the end",
                (first.n,),
            )


def _other(story: Story, first: Said | EventRecord) -> Said | EventRecord | None:
    """Return the first thing said later that does not fit."""
    turn, status = said_in(first), status_of(first)
    later: list[Said | EventRecord] = [*story.answers, *story.ends, *story.starts]
    others = [each for each in later if said_in(each) > turn and status_of(each) != status]
    return min(others, key=said_in, default=None)


def status_of(record: Said | EventRecord) -> str:
    """The status that an answer or an event gives a run."""
    if not isinstance(record, EventRecord):
        return str(record.envelope.body.status)
    return str(record.fields.get("status")) if record.event == "run.terminal" else "running"
