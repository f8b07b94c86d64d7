"""The server: every legal transition by messages and no other, offers, leave, ends."""

from __future__ import annotations

import msgspec
import pytest

from actors.messages import (
    TERMINAL,
    Command,
    ControlAnswer,
    StartAnswer,
)
from actors.server import (
    OFFER_LIMIT,
    SWEEP_LIMIT,
    SWEEP_PAUSE_US,
)
from actors.transitions import ERRORS, TRANSITIONS
from tests.actors.harness import SESSION, S
from tests.actors.service import DAY, RESULT, STATES, Service, completion, service_with
from transports.units import Duration

# The table


def start(service: Service, run: str) -> None:
    """Offer what may be offered, and ask leave for the last offer."""
    row = service.row(run)
    if row is not None and row.status == "queued":
        service.sync()
    service.start_run(run)


def stop_at_every_pickup(service: Service, run: str) -> None:
    """Offer what may be offered to one boot after another, each of which says nothing of it."""
    for number in range(4):
        service.sync(*[run] * (service.status(run) == "running"), boot=f"boot-{number}")


def revoke(service: Service, run: str) -> None:
    """Close a run as a device's removal does, if it is open."""
    row = service.row(run)
    if row is not None and row.status not in TERMINAL:
        service.actor.close(service.context, row, "revoked")


CAUSES = {
    "poison": stop_at_every_pickup,
    "revoked": revoke,
    "start": start,
    "cancel": lambda service, run: service.cancel(run),
    "deadline": lambda service, _run: service.sweep_at(30 * DAY),
    "forgotten": lambda service, _run: service.sync(boot="boot-2"),
} | {
    status: lambda service, run, status=status: service.complete(run, completion(status))
    for status in ("completed", "failed", "cancelled", "interrupted")
}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("state", STATES)
def test_a_run_moves_as_the_table_says_and_no_other_way(state: str, cause: str) -> None:
    service, run = service_with(state)
    before = len(service.events("run.terminal"))
    CAUSES[cause](service, run)
    rules = {(rule.source, rule.cause): rule.target for rule in TRANSITIONS}
    want = rules.get((state, cause), state)
    assert service.status(run) == want
    closed = service.events("run.terminal")[before:]
    if want in TERMINAL and state not in TERMINAL:
        assert [(e["run"], e["status"], e["cause"], e["was"]) for e in closed] == [
            (run, want, cause, state)
        ]
    else:
        assert closed == []


def test_a_new_run_is_queued() -> None:
    (first,) = [rule for rule in TRANSITIONS if not rule.source]
    assert (first.cause, first.target) == ("queue", "queued")
    service = Service()
    assert service.run().status == "queued"
    assert [e["agent"] for e in service.events("run.queued")] == ["agent"]


def test_every_cause_of_the_table_was_tried() -> None:
    assert {rule.cause for rule in TRANSITIONS} == {"queue", *CAUSES}
    assert {rule.target for rule in TRANSITIONS} == set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_in_every_state_a_timer_is_set_that_will_look_at_the_run(state: str) -> None:
    service, run = service_with(state)
    row = service.row(run)
    assert row is not None
    sweep_us = service.context.wall_us + service.context.timers["sweep"]
    assert sweep_us <= row.due_us


@pytest.mark.parametrize("state", STATES)
def test_a_restart_loses_nothing_of_a_run(state: str) -> None:
    service, run = service_with(state)
    before = service.get(run)
    service.start()
    assert service.get(run) == before
    row = service.row(run)
    assert row is not None
    assert service.context.wall_us + service.context.timers["sweep"] <= row.due_us


# Offers and leave to start


def test_commands_are_offered_oldest_first_up_to_the_capacity() -> None:
    service = Service()
    runs = []
    for number in range(5):
        service.context.now_us += 1
        runs.append(service.run(f"key-000{number}").command_id)
    assert [command.command_id for command in service.sync(capacity=2)] == runs[:2]
    assert [command.command_id for command in service.sync(runs[0])] == runs[1:]
    assert service.sync(*runs) == ()
    assert service.sync(capacity=0) == ()


def offered_agents(service: Service, capacity: int = 100) -> list[str]:
    """Whose runs a sync brings, in their order."""
    rows = [service.row(command.command_id) for command in service.sync(capacity=capacity)]
    return [row.agent for row in rows if row is not None]


def queue_many(service: Service, agent: str, count: int) -> None:
    for _ in range(count):
        service.context.now_us += 1
        service.run(f"key-{service.context.now_us:06}", agent=agent)


def test_a_fair_server_offers_by_turns() -> None:
    service = Service(fair=True)
    queue_many(service, "a", 100)
    queue_many(service, "b", 1)
    queue_many(service, "c", 1)
    assert offered_agents(service, 4) == ["a", "b", "c", "a"]
    assert offered_agents(Service(fair=True)) == []


def test_an_agent_that_comes_later_comes_before_the_rest_of_a_long_queue() -> None:
    service = Service(fair=True)
    queue_many(service, "a", 10)
    for _ in range(5):
        (command,) = service.sync(capacity=1)
        service.start_run(command.command_id)
        service.complete(command.command_id)
    queue_many(service, "b", 2)
    assert offered_agents(service, 4) == ["a", "b", "a", "b"]
    queue_many(service, "a", 1)
    assert offered_agents(service)[-1] == "a", "its own turn comes behind what it has queued"


def test_without_fairness_the_oldest_come_first() -> None:
    service = Service()
    queue_many(service, "a", 3)
    queue_many(service, "b", 1)
    assert offered_agents(service) == ["a", "a", "a", "b"]


def test_a_run_that_stops_every_boot_fails_and_those_behind_it_go_on() -> None:
    service = Service(delivery_limit=2)
    run, other = service.run("key-0001").command_id, None
    for boot in ("boot-1", "boot-2"):
        assert [each.command_id for each in service.sync(boot=boot)] == [run]
        assert [each.command_id for each in service.sync(boot=boot)] == [run], "the same boot"
    other = service.run("key-0002").command_id
    assert [each.command_id for each in service.sync(boot="boot-3")] == [other]
    answer = service.get(run)
    assert (answer.status, answer.error) == ("failed", ERRORS["poison"])


def test_a_command_is_offered_again_until_the_relay_holds_it() -> None:
    service = Service()
    run = service.run(to="x").command_id
    (first,) = service.sync()
    assert first == Command(
        command_id=run,
        delivery=1,
        session=SESSION.id,
        slug="demo",
        generation=0,
        arguments={"to": "x"},
    )
    (second,) = service.sync(boot="boot-2")
    assert second.delivery == 2
    assert service.sync(run, boot="boot-2") == ()
    assert service.status(run) == "queued", "an offer is no state that an agent sees"
    assert [e["delivery"] for e in service.events("run.offered")] == [1, 2]


def test_a_sync_offers_100_at_most() -> None:
    service = Service()
    for number in range(OFFER_LIMIT + 5):
        service.run(f"key-{number:04}")
    assert len(service.sync(capacity=1_000)) == OFFER_LIMIT


@pytest.mark.parametrize("state", ["running", *sorted(TERMINAL)])
def test_what_may_not_start_is_not_offered(state: str) -> None:
    service, run = service_with(state)
    assert service.sync(run) == ()
    assert service.sync() == ()
    assert not service.start_run(run, delivery=2).go


def test_leave_is_given_once_and_again_to_the_same_question() -> None:
    service = Service()
    run = service.queued()
    service.sync()
    for _ in range(3):
        assert service.start_run(run) == StartAnswer(go=True)
    assert len(service.events("run.started")) == 1
    row = service.row(run)
    assert row is not None
    due_us = row.due_us
    service.context.now_us += S
    service.start_run(run)
    row = service.row(run)
    assert row is not None
    assert row.due_us == due_us, "asking again gives no more time"


def test_a_stale_delivery_is_superseded_and_changes_nothing() -> None:
    service = Service()
    run = service.queued()
    service.sync()
    service.sync(boot="boot-2")
    for delivery, boot in ((1, "boot-1"), (1, "boot-2"), (2, "boot-1"), (3, "boot-2")):
        answer = service.start_run(run, delivery, boot)
        assert answer == StartAnswer(go=False, reason="superseded")
    assert service.status(run) == "queued"
    assert service.start_run(run, 2, "boot-2").go
    assert service.start_run(run, 1, "boot-1") == StartAnswer(go=False, reason="running")
    assert service.start_run("nobody") == StartAnswer(go=False, reason="unknown")


def test_a_run_that_was_never_offered_can_t_start() -> None:
    service = Service()
    run = service.queued()
    assert not service.start_run(run, 0, "").go
    assert not service.start_run(run, 0, "boot-1").go
    assert not service.start_run(run, 1, "").go
    assert service.events("run.started") == []


def test_a_run_cancelled_after_its_offer_does_not_start() -> None:
    service = Service()
    run = service.queued()
    service.sync()
    assert service.cancel(run).status == "cancelled"
    assert service.start_run(run) == StartAnswer(go=False, reason="cancelled")
    assert service.sync() == ()


# What a relay no longer holds


def test_a_new_boot_that_does_not_hold_a_run_ends_it_at_once() -> None:
    service = Service(reconcile=True)
    run = service.running()
    service.sync(run, boot="boot-2")
    assert service.status(run) == "running", "this boot reports it"
    service.sync(boot="boot-2")
    answer = service.get(run)
    assert answer.status == "interrupted"
    assert answer.error is not None
    assert "may have had effects" in answer.error
    service.sync(boot="boot-2")
    assert len(service.events("run.terminal")) == 1


def test_without_reconcile_the_run_waits_for_its_deadline() -> None:
    service = Service()
    run = service.running()
    service.sync(boot="boot-2")
    assert service.status(run) == "running"
    service.sweep_at(2 * DAY)
    assert service.status(run) == "interrupted"


def test_reconcile_leaves_other_relays_and_queued_runs_alone() -> None:
    service = Service(reconcile=True)
    run = service.running()
    service.context.now_us += 1
    second = service.run("key-0002").command_id
    service.sync(device="relay-2", boot="x")
    assert (service.status(run), service.status(second)) == ("running", "queued")


# Cancel


def test_a_queued_run_is_cancelled_at_once() -> None:
    service = Service()
    run = service.queued()
    answer = service.cancel(run)
    assert (answer.status, answer.cancel_requested) == ("cancelled", False)
    assert service.events("run.cancel_asked") == [{"run": run, "status": "queued"}]
    assert service.sync() == ()


def test_a_running_run_is_flagged_for_the_control_poll() -> None:
    service = Service()
    run = service.running()
    assert service.control(run) == ControlAnswer(stop=False)
    answer = service.cancel(run)
    assert (answer.status, answer.cancel_requested) == ("running", True)
    assert service.control(run) == ControlAnswer(stop=True, reason="cancel")
    service.complete(run, completion("completed"))
    answer = service.get(run)
    assert (answer.status, answer.cancel_requested) == ("completed", True)
    assert answer.result == "R", "it ended by itself before the flag was read"
    assert service.control(run) == ControlAnswer(stop=True, reason="closed")


def test_cancelling_what_has_ended_changes_nothing() -> None:
    for state in sorted(TERMINAL):
        service, run = service_with(state)
        before = service.get(run)
        assert service.cancel(run) == before


def test_the_result_of_a_cancelled_run_is_withheld() -> None:
    service = Service()
    run = service.running()
    service.complete(run, completion("cancelled"))
    answer = service.get(run)
    assert (answer.status, answer.result, answer.total_tokens) == ("cancelled", None, 7)


# Completions


def test_a_completion_is_accepted_again_and_again_and_counts_once() -> None:
    service = Service()
    run = service.running()
    service.complete(run)
    before = service.row(run)
    for _ in range(2):
        service.complete(run)
    assert service.row(run) == before
    assert len(service.events("run.terminal")) == 1
    answer = service.get(run)
    assert (answer.result, answer.execution_id, answer.total_tokens) == ("R", "x", 7)


def test_a_late_completion_is_kept_beside_the_outcome() -> None:
    service = Service()
    run = service.running()
    service.sweep_at(2 * DAY)
    answer = service.get(run)
    service.complete(run)
    service.complete(run, completion("failed"))
    assert service.get(run) == answer
    assert answer.status == "interrupted"
    row = service.row(run)
    assert row is not None
    assert row.late == RESULT
    assert [e["status"] for e in service.events("run.late")] == ["completed"]


def test_a_completion_for_nobody_is_accepted_so_that_the_outbox_empties() -> None:
    service = Service()
    service.complete("0" * 36)
    assert [e["run"] for e in service.events("run.completion_unknown")] == ["0" * 36]


def test_a_completion_of_another_boot_is_taken() -> None:
    service = Service()
    run = service.running()
    service.complete(run, boot="boot-2")
    assert service.status(run) == "completed"


def test_the_end_of_a_run_says_how_large_its_result_is() -> None:
    for result, chars, size in (("ab", 2, 2), ("あ", 1, 3), ("🙂", 2, 4), (None, 0, 0)):
        service = Service()
        run = service.running()
        service.complete(run, msgspec.structs.replace(RESULT, result=result))
        (end,) = service.events("run.terminal")
        assert (end["chars"], end["bytes"], end["tokens"]) == (chars, size, 7)


# Time limits


def test_a_run_that_never_starts_expires() -> None:
    service = Service()
    run = service.queued()
    service.sync()
    service.sweep_at(7 * DAY - 1)
    assert service.status(run) == "queued"
    service.sweep_at(7 * DAY)
    answer = service.get(run)
    assert answer.status == "expired"
    assert answer.error == "the time limit passed before the run ended"


def test_a_run_has_a_deadline_of_its_own_once_it_started() -> None:
    service = Service()
    run = service.queued()
    service.sweep_at(6 * DAY)
    service.sync()
    service.start_run(run)
    service.sweep_at(7 * DAY - 1)
    assert service.status(run) == "running"
    service.sweep_at(7 * DAY)
    assert service.status(run) == "interrupted"
    assert service.control(run) == ControlAnswer(stop=True, reason="closed")


def test_retention_counts_from_the_end() -> None:
    service = Service(retention_us=Duration(5 * DAY))
    run = service.queued()
    service.sweep_at(3 * DAY)
    service.cancel(run)
    service.sweep_at(8 * DAY - 1)
    assert service.status(run) == "cancelled"
    service.sweep_at(8 * DAY)
    assert service.row(run) is None


def test_the_sweep_survives_being_lost_at_any_point() -> None:
    service = Service()
    run = service.queued()
    for _ in range(5):
        service.context.now_us = 2 * DAY
        service.start()
    service.sweep_at(7 * DAY)
    assert service.status(run) == "expired"


def test_a_sweep_after_a_start_waits_a_moment_for_one_that_fails_is_followed_by_a_start() -> None:
    service = Service()
    run = service.queued()
    service.context.now_us = 8 * DAY
    service.start()
    assert service.context.timers["sweep"] == SWEEP_PAUSE_US
    service.fire("sweep")
    assert service.status(run) == "expired"
    assert "sweep" not in Service().context.timers, "where nothing can be due, nothing comes"


def test_a_sweep_is_a_short_turn_and_comes_again_at_once_for_the_rest() -> None:
    service = Service(agent_limit=10_000)
    runs = [service.run(f"key-{number:04}").command_id for number in range(SWEEP_LIMIT + 30)]
    service.fire("sweep")  # the first comes by the shortest of all limits
    service.fire("sweep")
    assert sum(service.status(run) == "expired" for run in runs) == SWEEP_LIMIT
    assert service.context.timers["sweep"] == service.context.now_us
    service.fire("sweep")
    assert all(service.status(run) == "expired" for run in runs)
    assert service.context.timers["sweep"] == 37 * DAY, "the first retention is over"


def test_the_sweep_comes_by_any_limit_that_a_run_may_meet_and_then_when_it_is_due() -> None:
    service = Service(run_deadline_us=Duration(60 * S))
    service.queued()
    assert service.context.timers["sweep"] == 60 * S
    service.fire("sweep")
    assert service.context.timers["sweep"] == 7 * DAY
    run = service.sync()[0].command_id
    service.start_run(run)
    assert service.context.timers["sweep"] == 120 * S


def test_deadlines_are_wall_time_that_never_goes_back() -> None:
    service = Service()
    run = service.queued()
    service.context.wall_us += 3 * DAY  # the machine slept: only the wall clock went on
    service.start()
    service.sweep_at(4 * DAY)
    assert service.status(run) == "expired"
