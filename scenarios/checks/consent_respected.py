"""Consent: an owner's no counts from the moment at which the desktop has taken it."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import FleetRun, Share, Unshare
from scenarios.checks.history import History, Violation, said_in


def consent_respected(history: History) -> Iterator[Violation]:
    """No run of a session starts on a desktop whose owner has unshared it.

    Reads `Unshare` and `Share` as the relay got them, and the `FleetRun` that it then sends.
    """
    changes: dict[tuple[str, str], list[tuple[int, bool]]] = {}
    for kind in (Unshare, Share):
        for record in history.delivered(kind):
            place = (record.actor, record.envelope.body.session)
            changes.setdefault(place, []).append((record.n, kind is Share))
    for run in history.said_by("relay", FleetRun) if changes else ():
        place, turn = (run.envelope.source, run.envelope.body.session), said_in(run)
        before = max((one for one in changes.get(place, ()) if one[0] < turn), default=(0, True))
        if not before[1]:
            channel = run.envelope.body.channel
            yield Violation(
                "consent_respected",
                f"{run.envelope.source} started {channel} after its owner had unshared the session",
                (before[0], run.n),
            )
