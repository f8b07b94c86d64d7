"""The way of a result: what a relay took from its engine, the engine forgets."""

from __future__ import annotations

from collections.abc import Iterator

from actors.messages import CHANNEL, FleetAcknowledged
from scenarios.checks.history import History, Violation


def results_arrive(history: History) -> Iterator[Violation]:
    """A result that a relay acknowledged to its engine reaches the server.

    Reads `FleetAcknowledged`, and the server's table `runs` at the end, where the history says when
    the faults ended and how long the system then may take. A result that comes after its run has
    ended is kept beside it.
    """
    seen: set[str] = set()
    for acknowledged in history.said_by("relay", FleetAcknowledged):
        run = acknowledged.envelope.body.channel.removeprefix(CHANNEL)
        row = history.run_rows.get(run)
        if run in seen or row is None or history.due_us(acknowledged.t) is None:
            continue
        seen.add(run)
        if row.completion is None and row.late is None:
            yield Violation(
                "results_arrive",
                f"{acknowledged.envelope.source} took the result of run {run} from its engine, "
                f"and the server, where the run is {row.status}, never got it",
                (acknowledged.n,),
            )
