"""Idempotency: a call that is repeated under its key queues nothing a second time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from actors.messages import GraphRun, RunGraphSession
from logs.record import MessageRecord
from scenarios.checks.history import History, Violation
from scenarios.problems import listed

_meaning = msgspec.json.Encoder(order="sorted").encode


class _Use:
    """What a key was used for: the meaning that got the first ticket, and the proof of each run."""

    def __init__(self, first: RunGraphSession) -> None:
        self.first = first
        self.runs: dict[str, int] = {}


def same_key_one_run(history: History) -> Iterator[Violation]:
    """An agent's key stands for one run, and for one meaning.

    Reads the calls that ask for a run, their answers, and which call made the server log
    `run.queued`: so it sees a second run though the ticket was lost.
    """
    uses: dict[tuple[str, str], _Use] = {}
    for event in history.events("run.queued"):
        turn = history.turn(event.cause)
        if isinstance(turn, MessageRecord) and isinstance(turn.envelope.body, RunGraphSession):
            use = _use(uses, turn.envelope.source, turn.envelope.body)
            use.runs.setdefault(event.fields["run"], event.n)
    for answer in history.said_by("server", GraphRun):
        question = history.question(answer)
        if question is None or type(question.envelope.body) is not RunGraphSession:
            continue
        agent, call = answer.envelope.target, question.envelope.body
        use = _use(uses, agent, call)
        use.runs.setdefault(answer.envelope.body.command_id, answer.n)
        if call is not use.first and _differ(call, use.first):
            yield Violation(
                "same_key_one_run",
                f"{agent} used its key {call.idempotency_key} for another request "
                f"and got the ticket of run {answer.envelope.body.command_id}",
                (question.n, answer.n),
            )
    for (agent, key), use in uses.items():
        if len(use.runs) > 1:
            yield Violation(
                "same_key_one_run",
                f"{agent}'s key {key} stands for the runs {listed(list(use.runs), last='and')}",
                tuple(sorted(use.runs.values())),
            )


def _use(uses: dict[tuple[str, str], _Use], agent: str, call: RunGraphSession) -> _Use:
    key = (agent, call.idempotency_key)
    known = uses.get(key)
    if known is None:
        known = uses[key] = _Use(call)
    return known


def _differ(one: RunGraphSession, other: RunGraphSession) -> bool:
    return _bytes(one) != _bytes(other)


def _bytes(call: Any) -> bytes:
    return _meaning((call.graph_session_id, call.arguments))
