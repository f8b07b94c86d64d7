"""At-most-once execution: what may have had effects is never started again."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import CHANNEL, FleetStarted
from scenarios.checks.history import History, Said, Violation
from scenarios.problems import listed


def executed_at_most_once(history: History) -> Iterator[Violation]:
    """Each run's Graph is started once at most, whatever is lost, repeated or killed.

    Reads `engine.started`, and the execution ids that engines tell relays.
    """
    twice: set[str] = set()
    for story in history.stories.values():
        if len(story.executions) > 1:
            twice.add(story.run)
            yield Violation(
                "executed_at_most_once",
                f"run {story.run} was started {len(story.executions)} times",
                tuple(record.n for record in story.executions),
            )
    told: dict[str, dict[str, Said]] = {}
    for answer in history.said_by("engine", FleetStarted):
        body = answer.envelope.body
        told.setdefault(body.channel, {}).setdefault(body.execution_id, answer)
    for channel, answers in told.items():
        run = channel.removeprefix(CHANNEL)
        if len(answers) > 1 and run not in twice:
            yield Violation(
                "executed_at_most_once",
                f"run {run} was started as {listed(list(answers), last='and')}",
                tuple(answer.n for answer in answers.values()),
            )
