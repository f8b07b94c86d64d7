"""The server as agents see it: keys and tickets, what is not theirs, limits, listings, waiting."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from actors.hints import RUNNING_HINT_US
from actors.ledger import RUNS
from actors.messages import (
    NOT_FOUND_TEXT,
    CancelGraphRun,
    Commands,
    Complete,
    Control,
    ControlAnswer,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    RunGraphSession,
    SessionMeta,
    Start,
    Sync,
)
from actors.server import ARGUMENTS_LIMIT_BYTES, DEFAULT_POLL_US, SESSIONS_LIMIT
from tests.actors.harness import SESSION, S, body_of, only
from tests.actors.service import DAY, META, RESULT, STATES, Service, service_with
from transports.codec import Codec
from transports.envelope import Envelope
from transports.units import Duration

# Keys and tickets


def test_the_same_key_returns_the_same_ticket_in_every_state() -> None:
    for state in STATES:
        service, run = service_with(state)
        answer = service.run()
        assert (answer.command_id, answer.status, answer.replayed) == (run, state, True)
        assert msgspec.structs.replace(answer, replayed=False) == service.get(run)
        assert len(service.events("run.queued")) == 1
        assert service.events("run.replayed") == [{"run": run}]


@pytest.mark.parametrize("state", STATES)
def test_the_same_key_for_something_else_is_refused_in_every_state(state: str) -> None:
    service, run = service_with(state)
    body = RunGraphSession(
        graph_session_id=SESSION.id, idempotency_key="key-0000", arguments={"to": "other"}
    )
    failure = body_of(service.deliver("agent", body), Failure)
    assert failure.code == "idempotency_key_reused"
    assert run not in failure.error, "nothing of the first request is revealed"
    other = RunGraphSession(graph_session_id="gs_" + "9" * 32, idempotency_key="key-0000")
    assert body_of(service.deliver("agent", other), Failure).code == "idempotency_key_reused"
    assert len(service.events("run.queued")) == 1
    assert service.status(run) == state


def test_meaning_is_the_arguments_in_any_order() -> None:
    service = Service()
    first = service.run(a=1, b={"x": [1, 2], "y": None})
    again = service.run(b={"y": None, "x": [1, 2]}, a=1)
    assert (again.command_id, again.replayed) == (first.command_id, True)
    for other in ({"a": 2}, {"a": "1"}, {"a": 1.0, "b": {"x": [1, 2], "y": None}}, {"a": True}, {}):
        body = RunGraphSession(
            graph_session_id=SESSION.id, idempotency_key="key-0000", arguments=other
        )
        assert isinstance(service.deliver("agent", body)[0].body, Failure)


def test_agents_don_t_share_keys() -> None:
    service = Service()
    assert service.run(agent="agent").command_id != service.run(agent="agent-2").command_id


@pytest.mark.parametrize(("length", "fits"), [(0, 0), (7, 0), (8, 1), (128, 1), (129, 0)])
def test_a_key_has_8_to_128_characters(length: int, fits: int) -> None:
    service = Service()
    body = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="ä" * length)
    (sent,) = service.deliver("agent", body)
    if not fits:
        assert isinstance(sent.body, Failure)
        assert sent.body == Failure(
            code="bad_request", error="idempotency_key must have 8 to 128 characters"
        )
    assert len(service.events("run.queued")) == fits


def test_a_key_outlives_its_run() -> None:
    service = Service(retention_us=Duration(2 * DAY))
    run = service.running()
    service.complete(run)
    service.sweep_at(3 * DAY)
    assert service.row(run) is None
    assert (
        body_of(service.deliver("agent", GetGraphRun(command_id=run)), Failure).code == "not_found"
    )
    for _ in range(2):
        answer = service.run()
        assert (answer.command_id, answer.status, answer.replayed) == (run, "completed", True)
        assert answer.result is None, "the key is kept, the result is not"
        service.start()
    body = RunGraphSession(
        graph_session_id=SESSION.id, idempotency_key="key-0000", arguments={"to": "other"}
    )
    assert body_of(service.deliver("agent", body), Failure).code == "idempotency_key_reused"
    assert len(service.events("run.queued")) == 1


def test_a_session_that_nobody_shares_can_t_be_run() -> None:
    service = Service()
    body = RunGraphSession(graph_session_id="gs_" + "9" * 32, idempotency_key="key-0000")
    assert body_of(service.deliver("agent", body), Failure).error == NOT_FOUND_TEXT
    assert service.run().status == "queued", "a refusal uses no key up"


def test_answers_are_kept_for_open_runs_and_for_so_many_of_them_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.server.ANSWERS_LIMIT", 3)
    service = Service()
    kept = service.actor.answers
    runs = [service.run(f"key-{number:04}").command_id for number in range(5)]
    for run in runs:
        assert service.get(run) is kept[run][1], "one that is the same is built once"
        assert len(kept) <= 3
    service.cancel(runs[-1])
    assert service.get(runs[-1]).status == "cancelled"
    assert runs[-1] not in kept


# Who may see a run


@pytest.mark.parametrize("state", STATES)
def test_not_yours_and_does_not_exist_are_equal_in_every_byte(state: str) -> None:
    service, run = service_with(state)
    for ask in (GetGraphRun, CancelGraphRun):
        answers = {
            msgspec.msgpack.encode(
                only(service.deliver("thief", ask(command_id=id_)), Failure).body
            )
            for id_ in (run, "0" * 36, "", "gs_" + "0" * 32)
        }
        assert answers == {msgspec.msgpack.encode(Failure(code="not_found", error=NOT_FOUND_TEXT))}
    assert service.status(run) == state
    assert service.events("run.cancel_asked") == []


def test_an_answer_is_equal_in_every_byte_while_nothing_changes() -> None:
    service = Service(hints=True)
    run = service.running()
    first = msgspec.msgpack.encode(service.get(run))
    service.control(run)
    service.sync(run)
    service.context.now_us += 60 * S
    assert msgspec.msgpack.encode(service.get(run)) == first
    service.start()
    assert msgspec.msgpack.encode(service.get(run)) == first


def test_another_relay_may_not_touch_a_run() -> None:
    service = Service()
    run = service.running()
    assert not service.start_run(run, device="relay-2").go
    assert service.control(run, device="relay-2") == ControlAnswer(stop=True, reason="closed")
    service.complete(run, device="relay-2")
    assert service.status(run) == "running"
    assert [e["run"] for e in service.events("run.completion_unknown")] == [run]
    assert service.sync(device="relay-2") == ()


# Limits


def test_an_agent_may_have_so_many_open_runs() -> None:
    service = Service(agent_limit=2)
    first, _ = service.run("key-0001"), service.run("key-0002")
    body = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="key-0003")
    assert body_of(service.deliver("agent", body), Failure) == Failure(
        code="queue_full",
        error="this agent has 2 open runs, as many as it may: "
        "wait for some to end, or ask the owner for a higher limit",
    )
    assert service.run("key-0001").replayed, "a ticket that exists is no new run"
    assert service.run("key-0003", agent="agent-2").status == "queued"
    service.cancel(first.command_id)
    assert service.run("key-0003").status == "queued", "the refusal used no key up"


def test_a_device_may_have_so_many_open_runs() -> None:
    service = Service(device_limit=2)
    for number in range(2):
        service.run(f"key-000{number}", agent=f"agent-{number}")
    body = RunGraphSession(graph_session_id=SESSION.id, idempotency_key="key-0003")
    failure = body_of(service.deliver("agent", body), Failure)
    assert failure.code == "queue_full"
    assert failure.error.startswith("this desktop has 2 open runs")


def test_arguments_fit_a_frame_alone_and_together() -> None:
    service = Service()
    codec = Codec([Commands])
    whole = "x" * (ARGUMENTS_LIMIT_BYTES - len(SESSION.id) - len('["",{"a":""}]'))
    for number in range(3):
        service.context.now_us += 1
        service.run(f"key-000{number}", a=whole)
    body = RunGraphSession(
        graph_session_id=SESSION.id, idempotency_key="key-0009", arguments={"a": whole + "x"}
    )
    failure = body_of(service.deliver("agent", body), Failure)
    assert failure.error == f"arguments may have {ARGUMENTS_LIMIT_BYTES:,} bytes of JSON"
    held: list[str] = []
    for _ in range(3):
        (offer,) = service.sync(*held)
        codec.encode(Envelope(1, "server", "relay", 0, 0, Commands(commands=(offer,))))
        held.append(offer.command_id)
    assert len(set(held)) == 3


def test_numbers_which_are_longer_on_the_wire_fit_too() -> None:
    service = Service()
    service.run(a=[0.5] * (ARGUMENTS_LIMIT_BYTES // 4 - 20))
    offers = service.sync()
    frame = Envelope(1, "server", "relay", 0, 0, Commands(commands=offers))
    assert len(Codec([Commands]).encode(frame)) > 2 * ARGUMENTS_LIMIT_BYTES


# Sessions


def listed(service: Service, project: str = "default", limit: int = 50) -> list[str]:
    body = ListGraphSessions(project_id=project, limit=limit)
    answer = body_of(service.deliver("agent", body), GraphSessions)
    assert answer.project_id == project
    return [session.graph_session_id for session in answer.sessions]


def metas(count: int, project: str = "default") -> tuple[SessionMeta, ...]:
    return tuple(
        SessionMeta(id=f"gs_{number:032x}", project=project, name="n", slug="n")
        for number in range(count)
    )


def upload(service: Service, sessions: tuple[SessionMeta, ...], device: str = "relay") -> None:
    body = Sync(boot="b", sessions=sessions, open=(), capacity=0, poll_us=20 * S)
    service.deliver(device, body)


def test_a_listing_is_what_the_last_sync_uploaded() -> None:
    service = Service()
    assert listed(service) == [SESSION.id], "what the scenario shares is shared from the start"
    upload(service, metas(3))
    assert listed(service) == [meta.id for meta in metas(3)]
    upload(service, metas(2))
    assert len(listed(service)) == 2
    upload(service, metas(1, "other"))
    assert (listed(service), len(listed(service, "other"))) == ([], 1)
    upload(service, ())
    assert listed(service, "other") == []
    service.start()
    assert listed(service) == [], "a restart does not share it again"


def test_a_listing_shows_the_session_as_it_is_now() -> None:
    service = Service()
    changed = msgspec.structs.replace(META, name="New", slug="new", version=3, description="D")
    upload(service, (changed,))
    answer = body_of(
        service.deliver("agent", ListGraphSessions(project_id="default")), GraphSessions
    )
    (session,) = answer.sessions
    assert (session.name, session.slug, session.version) == ("New", "new", 3)
    assert (session.description, session.status) == ("D", "ready")


@pytest.mark.parametrize(
    ("limit", "fits"), [(-1, False), (0, False), (1, True), (50, True), (51, False)]
)
def test_a_listing_has_1_to_50_sessions(limit: int, fits: bool) -> None:
    service = Service()
    upload(service, metas(60))
    if fits:
        assert len(listed(service, limit=limit)) == limit
    else:
        body = ListGraphSessions(project_id="default", limit=limit)
        failure = body_of(service.deliver("agent", body), Failure)
        assert failure == Failure(code="bad_request", error="limit must be 1 to 50")


def test_a_sync_shares_100_sessions_at_most() -> None:
    service = Service()
    upload(service, metas(SESSIONS_LIMIT + 20, "p"))
    body = RunGraphSession(graph_session_id=metas(101)[-1].id, idempotency_key="key-0000")
    assert isinstance(service.deliver("agent", body)[0].body, Failure)


def test_a_relay_takes_no_session_of_another() -> None:
    service = Service()
    stolen = msgspec.structs.replace(META, project="evil")
    upload(service, (stolen,), device="relay-2")
    run = service.queued()
    row = service.row(run)
    assert row is not None
    assert row.device == "relay"
    assert listed(service) == [SESSION.id]


def test_a_session_that_its_device_gives_up_goes_to_who_asked_before() -> None:
    service = Service()
    moved = msgspec.structs.replace(META, project="other")
    upload(service, (moved,), device="relay-2")
    upload(service, (), device="relay")
    assert listed(service) == []
    upload(service, (moved,), device="relay-2")
    row = service.row(service.queued())
    assert row is not None
    assert row.device == "relay-2"


def test_a_run_goes_with_the_slug_and_generation_of_its_queueing() -> None:
    service = Service()
    run = service.queued()
    upload(service, (msgspec.structs.replace(META, slug="new", generation=4),))
    second = service.run("key-0002").command_id
    offers = {command.command_id: command for command in service.sync()}
    assert (offers[run].slug, offers[run].generation) == ("demo", 0)
    assert (offers[second].slug, offers[second].generation) == ("new", 4)


# Hints and waiting


def test_hints_are_fixed_at_each_change_of_the_run() -> None:
    service = Service(hints=True)
    run = service.queued()
    assert service.get(run).poll_after_us == DEFAULT_POLL_US
    service.sync()
    service.start_run(run)
    assert service.get(run).poll_after_us == RUNNING_HINT_US
    service.complete(run)
    assert service.get(run).poll_after_us is None
    other = Service()
    assert other.get(other.queued()).poll_after_us is None, "no hints unless configured"


def test_a_hint_follows_the_poll_that_the_relay_said() -> None:
    service = Service(hints=True)
    body = Sync(boot="b", sessions=(META,), open=(), capacity=0, poll_us=5 * S)
    service.deliver("relay", body)
    assert service.run().poll_after_us == 5 * S


def wait(service: Service, run: str, wait_us: int = 30 * S) -> list[Any]:
    return service.deliver("agent", GetGraphRun(command_id=run, wait_us=wait_us))


def test_nobody_waits_unless_the_server_lets_them() -> None:
    service = Service()
    assert body_of(wait(service, service.queued()), GraphRun).status == "queued"


def test_a_poll_is_held_back_until_the_run_changes() -> None:
    service = Service(wait_limit_us=Duration(25 * S))
    run = service.queued()
    assert wait(service, run) == []
    assert wait(service, run) == []
    service.sync()
    sent = service.deliver("relay", Start(command_id=run, boot="boot-1", delivery=1))
    answers = [each.body for each in sent if each.target == "agent"]
    assert [answer.status for answer in answers] == ["running", "running"]
    assert not [timer for timer in service.context.timers if timer.startswith("wait")]
    assert wait(service, run) == []
    answers = [
        each.body
        for each in service.deliver(
            "relay", Complete(command_id=run, boot="boot-1", delivery=1, completion=RESULT)
        )
        if each.target == "agent"
    ]
    assert [answer.status for answer in answers] == ["completed"]
    assert body_of(wait(service, run), GraphRun).status == "completed", "nothing more to wait for"


def test_a_poll_is_held_back_no_longer_than_it_asked_and_the_server_allows() -> None:
    for asked_us, held_us in ((30 * S, 25 * S), (5 * S, 5 * S)):
        service = Service(wait_limit_us=Duration(25 * S))
        run = service.queued()
        wait(service, run, asked_us)
        timer = f"wait:{run}"
        assert service.context.timers[timer] == held_us
        assert body_of(service.fire(timer), GraphRun).status == "queued"


def test_a_poll_that_asks_for_less_is_not_held_back_by_one_that_asked_for_more() -> None:
    service = Service(wait_limit_us=Duration(60 * S))
    run = service.queued()
    wait(service, run, 50 * S)
    service.context.now_us = 10 * S
    wait(service, run, 5 * S)
    assert service.context.timers[f"wait:{run}"] <= 15 * S


def test_a_stranger_who_waits_learns_nothing() -> None:
    service = Service(wait_limit_us=Duration(25 * S))
    run = service.queued()
    sent = service.deliver("thief", GetGraphRun(command_id=run, wait_us=S))
    assert body_of(sent, Failure).error == NOT_FOUND_TEXT


def test_an_agent_sees_how_many_calls_of_its_run_wait_for_the_owner() -> None:
    service = Service(wait_limit_us=Duration(25 * S))
    run = service.queued()
    service.sync()
    service.deliver("relay", Start(command_id=run, boot="boot-1", delivery=1))
    before = service.get(run)
    assert before.awaiting_approval is UNSET
    assert b"awaiting" not in msgspec.json.encode(before)
    assert wait(service, run) == []
    asks = Control(command_id=run, boot="boot-1", waiting=2)
    told = [one.body for one in service.deliver("relay", asks) if one.target == "agent"]
    assert [one.awaiting_approval for one in told] == [2], "who waits for a change is told"
    row = service.context.store.table(RUNS).get(run)
    service.deliver("relay", asks)
    assert service.context.store.table(RUNS).get(run) is row, "the same again writes nothing"
    service.deliver("stranger", Control(command_id=run, boot="boot-1", waiting=9))
    assert service.get(run).awaiting_approval == 2
    service.deliver("relay", Control(command_id=run, boot="boot-1", waiting=0))
    assert service.get(run) == before
    service.deliver("relay", asks)
    service.deliver("relay", Complete(command_id=run, boot="b", delivery=1, completion=RESULT))
    assert service.get(run).awaiting_approval is UNSET
