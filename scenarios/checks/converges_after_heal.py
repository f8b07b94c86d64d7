"""Convergence: faults may delay a run, and once they are over nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import TERMINAL, Complete, GetGraphRun, GraphRun
from scenarios.checks.history import History, Said, Violation

_NAME = "converges_after_heal"


def converges_after_heal(history: History) -> Iterator[Violation]:
    """So long after the last fault every run has ended, and every agent who polls has seen it.

    Reads `run.queued`, `run.terminal`, `Complete`, `GetGraphRun` and `GraphRun`. A server that was
    killed right after it committed a result has said nothing of that end, and it is one. A run that
    was queued later has as long from then. Judged only where the history says when the faults ended
    and how long the system then may take, and only for runs whose time was up before the end. An
    agent that is down at the end need not have seen anything.
    """
    if history.due_us(0) is None:
        return
    polls: dict[tuple[str, str], Said] = {}
    for poll in history.sent(GetGraphRun):
        polls.setdefault((poll.envelope.source, poll.envelope.body.command_id), poll)
    seen: dict[tuple[str, str], int] = {}
    for answer in history.delivered(GraphRun):
        body = answer.envelope.body
        if body.status in TERMINAL:
            seen.setdefault((answer.actor, body.command_id), answer.t)
    for story in history.stories.values():
        begun = story.begun
        due_us = None if begun is None else history.due_us(begun.t)
        if begun is None or due_us is None:
            continue
        ended = story.first() or _untold(history, story.run)
        if ended is None or ended.t > due_us:
            how = "has not ended" if ended is None else f"ended only at {ended.t / 1e6:g} s"
            numbers = (begun.n,) if ended is None else (begun.n, ended.n)
            words = f"run {story.run} should have ended by {due_us / 1e6:g} s and {how}"
            yield Violation(_NAME, words, numbers)
            continue
        polled = polls.get((story.agent or "", story.run))
        if polled is None or polled.t > due_us or story.agent in history.down:
            continue
        seen_us = seen.get((story.agent or "", story.run))
        if seen_us is None or seen_us > due_us:
            words = f"{story.agent} should have seen the end of run {story.run} by "
            yield Violation(_NAME, f"{words}{due_us / 1e6:g} s and has not", (ended.n, polled.n))


def _untold(history: History, run: str) -> Said | None:
    """Return the completion after whose commit the server was killed, if there was one."""
    for said in history.delivered(Complete):
        if said.envelope.body.command_id == run and said.n in history.silenced:
            return said
    return None
