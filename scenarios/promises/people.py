"""What those who act for people promise besides: agents and owners."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final

from actors.messages import Message, Noted, RunGraphSession, Share, Unshare
from scenarios.promises.stage import Death, Play, Promise, Record, Subject, step
from transports.faults.drop import Drop

STEPS: Final = (step(3, "unshare"), step(4, "share"), step(9, "unshare"), step(200, "share"))
CHANGES: Final[tuple[type[Message], ...]] = (Unshare, Share, Unshare, Share)


def keys(record: Record) -> set[str]:
    """Return the keys of all calls that queue a run, those that were lost too."""
    said = [each.envelope for each in record.said] + record.lost
    return {each.body.idempotency_key for each in said if isinstance(each.body, RunGraphSession)}


def keeps_its_keys(subject: Subject) -> Iterator[str]:
    """A call without an answer is made again under its key, also by the next boot."""
    wanted = len(keys(Play().run(subject)))
    for name in ("RunGraphSession", "GraphRun"):
        used = len(keys(Play(lost=Drop(message=name, nth=1)).run(subject)))
        if used != wanted:
            yield f"when the first {name} was lost, it used {used} keys for {wanted} runs"
    for turn in range(1, 6):
        used = len(keys(Play(death=Death("agent", turn)).run(subject)))
        if used != wanted:
            yield f"when it was killed in its turn {turn}, it used {used} keys for {wanted} runs"


def says_when_it_is_done(subject: Subject) -> Iterator[str]:
    """A replication ends when its agents and owners have finished."""
    record = Play(steps=STEPS if subject.kind == "owner" else ()).run(subject)
    if subject.kind not in record.finished:
        yield "it never called context.done()"


def tells_every_step_in_order(subject: Subject) -> Iterator[str]:
    """Each until it is noted, and none before the one before it was."""
    for name in (None, "Unshare", "Share", "Noted"):
        lost = None if name is None else Drop(message=name, nth=1)
        record = Play(steps=STEPS, lost=lost).run(subject)
        told: list[type[Any]] = [
            type(each.envelope.body)
            for each in record.said
            if isinstance(each.envelope.body, Share | Unshare)
        ]
        order = tuple(kind for kind, _ in groupby(told))
        when = f"when the first {name} was lost, " if name else ""
        if order != CHANGES:
            yield f"{when}the relay heard {', '.join(kind.__name__ for kind in order)}"
        if len(record.of(Noted)) < len(STEPS):
            yield f"{when}{len(record.of(Noted))} of {len(STEPS)} steps were noted"


AGENT: Final = (
    Promise("A call without an answer is made again under the same key", keeps_its_keys),
    Promise("It says when it has finished", says_when_it_is_done),
)
OWNER: Final = (
    Promise("Every step is told in order until it is noted", tells_every_step_in_order),
    Promise("It says when it has finished", says_when_it_is_done),
)
