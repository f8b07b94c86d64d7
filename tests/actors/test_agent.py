"""The agent: keys before questions, polls by plan, retries, cancels, and gives up when told."""

from __future__ import annotations

from typing import Any

import pytest

from actors.actor import Place, Session
from actors.agent import JOBS, Agent
from actors.chance import Durations
from actors.messages import (
    TERMINAL,
    CancelGraphRun,
    Failure,
    GetGraphRun,
    GraphRun,
    Leak,
    RunGraphSession,
)
from actors.polls import parse_polls
from tests.actors.harness import SESSION, Bench, S, Sent, only
from transports.units import Duration

OTHER = Session(id="gs_" + "1" * 32, name="two", slug="two", project="default", relay="relay")


def run(status: str = "queued", run_id: str = "r1", **fields: Any) -> GraphRun:
    return GraphRun(command_id=run_id, status=status, **fields)


class Client(Bench):
    """An agent that polls every 10 s."""

    actor: Agent

    def __init__(self, *, sessions: tuple[Session, ...] = (SESSION,), **config: Any) -> None:
        fields: dict[str, Any] = {"poll": parse_polls("every 10s")}
        place = Place(name="agent", sessions=sessions)
        super().__init__(Agent(Agent.Config(**fields | config), place), "agent")

    def ticket(self) -> None:
        """Answer the first question with a ticket."""
        question = only(self.started, RunGraphSession, "server")
        assert self.answer(question, run()) == []

    def poll(self, number: int = 0) -> Sent:
        """Let time come to the next poll, and return it."""
        return only(self.fire(f"poll:{number}"), GetGraphRun, "server")


def plan_of(client: Client, count: int, **fields: Any) -> list[int]:
    """The delays before so many polls, each answered as still running, in seconds."""
    (question,) = client.started
    client.answer(question, run(**fields))
    delays = []
    for _ in range(count):
        delays.append((client.context.timers["poll:0"] - client.context.now_us) // S)
        client.answer(client.poll(), run("running", **fields))
    return delays


# A ticket


def test_a_run_is_queued_under_a_key_that_was_stored_before() -> None:
    client = Client(arguments={"to": "x"})
    question = only(client.started, RunGraphSession, "server")
    assert question.body.graph_session_id == SESSION.id
    assert question.body.arguments == {"to": "x"}
    assert 8 <= len(question.body.idempotency_key) <= 128
    job = client.context.store.table(JOBS).get("0")
    assert job is not None
    assert (job.key, job.command_id) == (question.body.idempotency_key, None)
    assert question.timeout_us == 10 * S


def test_an_unanswered_call_is_made_again_with_the_same_key() -> None:
    client = Client()
    (question,) = client.started
    for _ in range(3):
        again = only(client.unanswered(question), RunGraphSession)
        assert again.body == question.body
        question = again
    assert client.answer(question, run(replayed=True)) == []
    assert client.context.timers == {"poll:0": 10 * S}


def test_an_agent_without_keys_makes_a_new_one() -> None:
    client = Client(retry="new key")
    (question,) = client.started
    keys = {question.body.idempotency_key}
    for _ in range(3):
        question = only(client.unanswered(question), RunGraphSession)
        keys.add(question.body.idempotency_key)
    assert len(keys) == 4
    job = client.context.store.table(JOBS).get("0")
    assert job is not None
    assert job.key == question.body.idempotency_key, "stored before it is sent"


def test_a_restart_asks_under_the_stored_key() -> None:
    client = Client()
    (question,) = client.started
    assert only(client.start(), RunGraphSession).body == question.body
    client.ticket()
    assert client.start() == []
    assert client.context.timers == {"poll:0": 10 * S}
    assert client.poll().body.command_id == "r1"


def test_an_agent_that_can_t_write_waits_before_it_asks_again() -> None:
    client = Client()
    client.context.store.writable = False
    assert client.start() == [], "or question, ticket and failed write would go round at one time"
    again = only(client.fire("again:0"), RunGraphSession, "server")
    assert client.answer(again, run()) == []


def test_a_refused_call_gives_the_job_up() -> None:
    client = Client()
    (question,) = client.started
    assert client.answer(question, Failure(code="not_found", error="no such session")) == []
    assert client.events("agent.refused") == [{"code": "not_found"}]
    assert (client.context.dones, client.context.timers) == (1, {})
    assert client.start() == []
    assert client.context.dones == 2


def test_a_full_queue_is_asked_again_later_with_the_same_key() -> None:
    client = Client()
    (question,) = client.started
    assert client.answer(question, Failure(code="queue_full", error="too many")) == []
    assert (client.context.dones, client.context.timers) == (0, {"again:0": 10 * S})
    assert only(client.fire("again:0"), RunGraphSession).body == question.body


def test_a_refused_poll_does_not_queue_the_next_run_of_a_series() -> None:
    client = Client(runs=3, submit="in turn")
    question = only(client.started, RunGraphSession)
    only(client.answer(question, run()), RunGraphSession)  # the second run, after the first ticket
    assert client.answer(client.poll(), Failure(code="not_found", error="gone")) == []


# Polls


@pytest.mark.parametrize(
    ("plan", "delays"),
    [
        ("every 2s", [2, 2, 2, 2, 2, 2]),
        ("backoff 2s x2 max 30s", [2, 4, 8, 16, 30, 30]),
        ("wait 20s then every 10s", [20, 10, 10, 10, 10, 10]),
        ("after 1s, 5s, 9s", [1, 5, 9, 9, 9, 9]),
        ("hinted", [20, 10, 10, 10, 10, 10]),
    ],
)
def test_polls_follow_the_plan(plan: str, delays: list[int]) -> None:
    assert plan_of(Client(poll=parse_polls(plan)), 6) == delays


def test_a_hinted_agent_polls_when_the_server_says() -> None:
    hinted, other = Client(poll=parse_polls("hinted")), Client(poll=parse_polls("every 2s"))
    assert plan_of(hinted, 3, poll_after_us=7 * S) == [7, 7, 7]
    assert plan_of(other, 3, poll_after_us=7 * S) == [2, 2, 2]


def test_a_lost_poll_is_made_again_at_once_and_counts_in_the_plan() -> None:
    client = Client(poll=parse_polls("after 1s, 2s, 3s, 4s, 5s"))
    client.ticket()
    question = client.poll()
    again = only(client.unanswered(question), GetGraphRun)
    assert again.body == question.body
    client.answer(again, run("running"))
    assert client.context.timers["poll:0"] - client.context.now_us == 3 * S


def test_a_poll_may_wait_at_the_server() -> None:
    client = Client(wait_us=Duration(5 * S))
    client.ticket()
    assert client.poll().body == GetGraphRun(command_id="r1", wait_us=5 * S)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_terminal_status_ends_the_job(status: str) -> None:
    client = Client(cancel_us=Durations.parse("500s"))
    client.ticket()
    assert set(client.context.timers) == {"poll:0", "cancel:0"}
    assert client.answer(client.poll(), run(status)) == []
    assert (client.context.dones, client.context.timers) == (1, {})
    assert client.start() == []
    assert client.context.timers == {}


def test_an_agent_that_never_polls_has_its_ticket_and_is_done() -> None:
    client = Client(poll=parse_polls("never"))
    client.ticket()
    assert (client.context.dones, client.context.timers) == (1, {})


def test_a_run_that_is_gone_ends_the_job() -> None:
    client = Client()
    client.ticket()
    client.answer(client.poll(), Failure(code="not_found", error="gone"))
    assert client.context.dones == 1


# Cancel


def cancelling(**config: Any) -> tuple[Client, Sent]:
    """An agent that has just asked to cancel, 15 s after its ticket."""
    client = Client(cancel_us=Durations.parse("15s"), **config)
    client.ticket()
    return client, only(client.fire("cancel:0"), CancelGraphRun, "server")


def test_a_cancel_is_asked_so_long_after_the_ticket() -> None:
    client, question = cancelling()
    assert question.body.command_id == "r1"
    assert client.context.now_us == 15 * S


def test_a_queued_run_that_is_cancelled_ends_the_job() -> None:
    client, question = cancelling()
    client.answer(question, run("cancelled"))
    assert (client.context.dones, client.context.timers) == (1, {})


def test_a_running_run_is_polled_on_until_it_has_stopped() -> None:
    client, question = cancelling()
    assert client.answer(question, run("running", cancel_requested=True)) == []
    assert set(client.context.timers) == {"poll:0"}, "one poll is set, not two"
    client.answer(client.poll(), run("cancelled"))
    assert client.context.dones == 1


def test_a_lost_cancel_is_asked_again() -> None:
    client, question = cancelling()
    again = only(client.unanswered(question), CancelGraphRun)
    assert again.body == question.body
    client.answer(again, run("cancelled"))
    assert client.context.dones == 1


@pytest.mark.parametrize("order", ["cancel first", "poll first"])
def test_a_poll_and_a_cancel_may_be_open_at_once(order: str) -> None:
    client = Client(cancel_us=Durations.parse("10s"))
    client.ticket()
    poll, cancel = client.poll(), only(client.fire("cancel:0"), CancelGraphRun)
    first, second = (cancel, poll) if order == "cancel first" else (poll, cancel)
    client.answer(first, run("running"))
    client.answer(second, run("running", cancel_requested=True))
    assert list(client.context.timers) == ["poll:0"]
    client.answer(client.poll(), run("cancelled"))
    assert client.context.dones == 1


def test_a_terminal_answer_while_another_question_is_open_ends_the_job_once() -> None:
    client = Client(cancel_us=Durations.parse("10s"))
    client.ticket()
    poll, cancel = client.poll(), only(client.fire("cancel:0"), CancelGraphRun)
    client.answer(cancel, run("cancelled"))
    client.answer(poll, run("cancelled"))
    assert (client.context.dones, client.context.timers) == (1, {})


def test_an_agent_that_never_polls_ends_with_the_answer_to_its_cancel() -> None:
    client, question = cancelling(poll=parse_polls("never"))
    assert client.context.dones == 0
    client.answer(question, run("running", cancel_requested=True))
    assert client.context.dones == 1


def test_a_cancel_is_asked_in_the_next_boot_too() -> None:
    client = Client(cancel_us=Durations.parse("15s"))
    client.ticket()
    client.start()
    assert client.context.timers["cancel:0"] == 15 * S
    assert only(client.fire("cancel:0"), CancelGraphRun).body.command_id == "r1"


# Several runs


def test_all_at_once() -> None:
    client = Client(runs=3, sessions=(SESSION, OTHER))
    sessions = [each.body.graph_session_id for each in client.started]
    assert sessions == [SESSION.id, OTHER.id, SESSION.id], "the sessions take turns"
    assert len({each.body.idempotency_key for each in client.started}) == 3


def test_a_session_can_be_named() -> None:
    client = Client(runs=2, sessions=(SESSION, OTHER), session=OTHER.name)
    assert {each.body.graph_session_id for each in client.started} == {OTHER.id}


def test_start_and_every_are_times_between() -> None:
    client = Client(runs=3, start_us=Durations.parse("5s"), every_us=Durations.parse("20s"))
    assert client.started == []
    times = []
    while "queue" in client.context.timers:
        only(client.fire("queue"), RunGraphSession)
        times.append(client.context.now_us // S)
    assert times == [5, 25, 45]


def test_in_turn_each_waits_for_the_ticket_before() -> None:
    client = Client(runs=3, submit="in turn")
    (question,) = client.started
    for number in (1, 2):
        (question,) = client.answer(question, run(run_id=f"r{number}"))
        assert isinstance(question.body, RunGraphSession)
    assert client.answer(question, run(run_id="r3")) == []
    assert set(client.context.timers) == {"poll:0", "poll:1", "poll:2"}


def test_in_turn_a_refusal_is_an_answer_too() -> None:
    client = Client(runs=2, submit="in turn")
    (question,) = client.started
    question = only(client.answer(question, Failure(code="x", error="y")), RunGraphSession)
    assert client.context.dones == 0
    client.answer(question, Failure(code="x", error="y"))
    assert client.context.dones == 1


def test_done_is_said_when_all_have_ended() -> None:
    client = Client(runs=2)
    for number, question in enumerate(client.started):
        client.answer(question, run(run_id=f"r{number}"))
    client.answer(client.poll(0), run("completed", "r0"))
    assert client.context.dones == 0
    client.answer(client.poll(1), run("failed", "r1"))
    assert client.context.dones == 1


def test_an_agent_with_nothing_to_do_is_done() -> None:
    client = Client(runs=0)
    assert (client.started, client.context.dones) == ([], 1)


def test_a_restart_takes_up_every_job_where_it_stood() -> None:
    client = Client(runs=4)
    first, second, third, fourth = client.started
    client.answer(first, run(run_id="r0"))
    client.answer(second, run(run_id="r1"))
    client.answer(client.poll(1), run("completed", "r1"))
    client.answer(fourth, run(run_id="r3"))
    assert only(client.start(), RunGraphSession).body == third.body
    assert set(client.context.timers) == {"poll:0", "poll:3"}


def test_a_restart_between_two_runs_goes_on_with_the_next() -> None:
    client = Client(runs=2, every_us=Durations.parse("20s"))
    (first,) = client.started
    again = client.start()
    keys = [each.body.idempotency_key for each in again]
    assert keys[0] == first.body.idempotency_key
    assert len(set(keys)) == len(keys) == 2


# Leaks


def test_a_ticket_is_leaked_to_who_is_named() -> None:
    client = Client(leak_to="thief")
    (question,) = client.started
    leak = only(client.answer(question, run()), Leak, "thief")
    assert leak.body.command_id == "r1"


def test_a_thief_tries_the_ticket_and_one_that_nobody_has_and_learns_nothing() -> None:
    thief = Client(runs=0)
    sent = thief.deliver("agent", Leak(command_id="r1"))
    assert [type(each.body) for each in sent] == [GetGraphRun, CancelGraphRun] * 2
    assert [each.body.command_id for each in sent[:2]] == ["r1", "r1"]
    assert sent[2].body.command_id == sent[3].body.command_id != "r1"
    for each in sent[:2]:
        assert thief.answer(each, Failure(code="not_found", error="no")) == []
    assert thief.unanswered(sent[2]) == [], "a thief doesn't insist"
    assert thief.answer(sent[3], run("cancelled")) == [], "if it were told, it would keep quiet"
    assert thief.context.timers == {}
    assert thief.events("agent.refused") == []
