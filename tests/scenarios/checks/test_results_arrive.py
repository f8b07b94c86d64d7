"""A result that a relay acknowledged to its engine reaches the server."""

from __future__ import annotations

from typing import Any

from actors.ledger import RUNS
from actors.messages import FleetAcknowledged
from scenarios.checks.history import Violation
from scenarios.checks.results_arrive import results_arrive
from tests.scenarios.checks.tale import DONE, S, Tale
from tests.scenarios.rows import run_row

TAKEN = FleetAcknowledged(channel="graph:external:r1")


def stores(**fields: Any) -> Any:
    return {"server": {RUNS.name: {"r1": run_row(**fields)}}}


def test_a_result_that_was_taken_and_never_came_is_found() -> None:
    tale = Tale()
    made = tale.finish()
    taken = tale.say("relay", "engine", TAKEN, to=made)
    lost = stores(status="interrupted")
    healed: dict[str, Any] = {"healed_us": 0, "converge_us": 60 * S, "ended_us": 600 * S}
    assert tale.judge(results_arrive, stores=lost, **healed) == [
        Violation(
            "results_arrive",
            "relay took the result of run r1 from its engine, and the server, where the run is "
            "interrupted, never got it",
            (taken,),
        )
    ]
    assert tale.judge(results_arrive, stores=stores(completion=DONE), **healed) == []
    assert tale.judge(results_arrive, stores=stores(late=DONE), **healed) == []
    assert tale.judge(results_arrive, **healed) == [], "nothing is known of its row"


def test_nothing_is_said_before_the_system_had_its_time() -> None:
    tale = Tale()
    tale.say("relay", "engine", TAKEN, to=tale.finish())
    lost = stores(status="running")
    assert tale.judge(results_arrive, stores=lost) == []
    late: dict[str, Any] = {"healed_us": 0, "converge_us": 60 * S, "ended_us": 59 * S}
    assert tale.judge(results_arrive, stores=lost, **late) == []
