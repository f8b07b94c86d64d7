"""Privacy: ids leak into chats and logs, so an id alone must open nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from actors.messages import (
    NOT_FOUND,
    CancelGraphRun,
    Failure,
    GetGraphRun,
    GraphRun,
)
from scenarios.checks.history import History, Said, Violation

_NAME = "strangers_learn_nothing"
_bytes = msgspec.json.Encoder().encode


def strangers_learn_nothing(history: History) -> Iterator[Violation]:
    """An agent gets for another agent's run, byte for byte, the answer for an id that nobody has.

    Reads the answers to `GetGraphRun` and `CancelGraphRun`. What an unknown id gets is seen in the
    same history where somebody asked for one; otherwise it is the protocol's own answer.
    """
    stories = history.stories
    shown: set[int] = set()
    strange: list[tuple[Said, Said]] = []
    unknown: dict[type[Any], Any] = {}
    for answer in (*history.said_by("server", GraphRun), *history.said_by("server", Failure)):
        question = history.question(answer)
        asked = None if question is None else question.envelope.body
        if question is not None and isinstance(asked, GetGraphRun | CancelGraphRun):
            story = stories.get(asked.command_id)
            if story is None or story.begun is None:
                unknown.setdefault(type(asked), answer.envelope.body)
            elif story.agent not in (None, answer.envelope.target):
                strange.append((question, answer))
                shown.add(answer.n)
        body = answer.envelope.body
        if type(body) is GraphRun and answer.n not in shown:
            owner = stories[body.command_id].agent
            if owner not in (None, answer.envelope.target):
                yield Violation(
                    _NAME,
                    f"{answer.envelope.target} was shown {owner}'s run {body.command_id}",
                    (answer.n,),
                )
    for question, answer in strange:
        run = question.envelope.body.command_id
        expected = unknown.get(type(question.envelope.body), NOT_FOUND)
        if _bytes(answer.envelope.body) != _bytes(expected):
            yield Violation(
                _NAME,
                f"{answer.envelope.target} asked for {stories[run].agent}'s run {run} and got "
                "another answer than for an id that nobody has",
                (question.n, answer.n),
            )
