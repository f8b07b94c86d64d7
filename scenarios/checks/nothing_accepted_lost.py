"""Durability of results: what the server accepted, the relay has forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import TERMINAL, Accepted, Complete, Completion, GraphRun
from scenarios.checks.history import History, Said, Story, Violation, said_in

_NAME = "nothing_accepted_lost"


def nothing_accepted_lost(history: History) -> Iterator[Violation]:
    """A completion that the server accepted is what the agent can read from then on.

    One that came after the run had ended is kept beside it. Reads `Complete`, `Accepted`,
    `GraphRun`, `run.terminal` and `run.late`, and the server's table `runs` at the end. A
    completion of a run that the server says it does not know is not judged.
    """
    unknown = {event.cause for event in history.events("run.completion_unknown")}
    late = {event.cause for event in history.events("run.late")}
    closed: set[str] = set()
    for accepted in sorted(history.said_by("server", Accepted), key=said_in):
        posted = history.question(accepted)
        if posted is None or not isinstance(posted.envelope.body, Complete):
            continue
        turn = said_in(accepted)
        story = history.stories.get(posted.envelope.body.command_id)
        if story is None or story.begun is None or turn in unknown:
            continue
        ended = story.first()
        known = story.run in closed or (ended is not None and said_in(ended) < turn)
        if known or turn in late:  # a server that died at a run's end never told of the end
            yield from _kept_beside(history, story, posted, accepted)
        else:
            closed.add(story.run)
            yield from _readable(history, story, posted, accepted)


def _readable(history: History, story: Story, posted: Said, accepted: Said) -> Iterator[Violation]:
    """Judge what is said of a run after the completion that ended it."""
    done: Completion = posted.envelope.body.completion
    turn = said_in(accepted)
    for answer in story.answers:
        if answer.envelope.cause > turn and not _tells(answer.envelope.body, done):
            yield Violation(
                _NAME,
                f"the server accepted that run {story.run} is {done.status}, and then told "
                f"{answer.envelope.target} {_told(answer.envelope.body, done)}",
                (posted.n, accepted.n, answer.n),
            )
            return
    row = history.run_rows.get(story.run)
    if row is not None and (row.status != done.status or row.completion != done):
        kept = row.status if row.status != done.status else "another result"
        yield Violation(
            _NAME,
            f"the server accepted that run {story.run} is {done.status}, and kept {kept}",
            (posted.n, accepted.n),
        )


def _kept_beside(
    history: History, story: Story, posted: Said, accepted: Said
) -> Iterator[Violation]:
    """Judge what is kept of a completion that came late."""
    row = history.run_rows.get(story.run)
    if row is None or row.status not in TERMINAL or row.late is not None:
        return
    if row.completion != posted.envelope.body.completion:
        yield Violation(
            _NAME,
            f"the server accepted a late completion of run {story.run}, and kept nothing of it",
            (posted.n, accepted.n),
        )


def _tells(body: GraphRun, done: Completion) -> bool:
    """Whether an answer says what a completion says."""
    if body.status != done.status:
        return False
    if body.replayed and body.execution_id is None:
        return True  # the key outlives its run: of a deleted one the status alone is left
    return (
        body.result == (done.result if done.status == "completed" else None)
        and body.result_truncated == done.result_truncated
        and body.execution_id == done.execution_id
        and body.total_tokens == done.total_tokens
        and body.reported_cost == done.reported_cost
        and body.error == done.error
    )


def _told(body: GraphRun, done: Completion) -> str:
    return f"that it is {body.status}" if body.status != done.status else "another result"
