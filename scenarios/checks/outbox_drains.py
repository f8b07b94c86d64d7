"""The outbox: a result waits there until the server has it, and no longer."""

from __future__ import annotations

from collections.abc import Iterator

from actors.journal import OUTBOX
from actors.messages import CHANNEL, Accepted, Complete, FleetFinished
from scenarios.checks.history import History, Violation

_NAME = "outbox_drains"


def outbox_drains(history: History) -> Iterator[Violation]:
    """No result stays in an outbox once it was accepted, or long after the last fault.

    Reads the relay's table `outbox` at the end. That a result is not sent yet counts only where the
    history says when the faults ended and how long the system then may take; a result that came
    later has as long. A relay that is down at the end is not judged. The table's keys are runs, or
    end with them.
    """
    rows = [
        (relay, key if isinstance(key, str) else key[-1])
        for relay in history.actors("relay")
        if history.settled and relay not in history.down
        for key in history.stores.get(relay, {}).get(OUTBOX.name, {})
    ]
    if not rows:
        return
    accepted = {
        (record.actor, record.envelope.body.command_id): record.n
        for record in history.delivered(Accepted)
    }
    since = _since(history)
    for relay, run in rows:
        number = accepted.get((relay, run))
        known = since.get((relay, run))
        if number is not None and known is not None and known[2] < number:
            yield Violation(
                _NAME,
                f"{relay} still holds the result of run {run}, which the server has accepted",
                (known[1], number),
            )
            continue
        began_us, first, _ = known or (0, 0, 0)
        due_us = history.due_us(began_us)
        if due_us is not None:
            yield Violation(
                _NAME,
                f"{relay} has not brought the result of run {run} to the server by "
                f"{due_us / 1e6:g} s",
                (first,) if first else (),
            )


def _since(history: History) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Since when a relay is known to have each run's result: time, record, and its last post."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for record in history.delivered(FleetFinished):
        run = record.envelope.body.channel.removeprefix(CHANNEL)
        found.setdefault((record.actor, run), (record.t, record.n, record.n))
    for each in history.sent(Complete):
        place = (each.envelope.source, each.envelope.body.command_id)
        began_us, first, _ = found.get(place, (each.t, each.n, 0))
        found[place] = (began_us, first, each.envelope.cause or each.n)
    return found
