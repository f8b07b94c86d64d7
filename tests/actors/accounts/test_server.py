"""The deployed server: every message is checked, nothing tells of another owner, all is audited."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.accounts.messages import (
    GATEWAY,
    LOCAL,
    MAY_SEND,
    Authenticate,
    AuthenticateLocal,
    CancelRun,
    Changed,
    GetServerStatus,
    PrincipalRevoked,
    RevokeAgent,
    RevokeDevice,
)
from actors.accounts.rows import OWNED_RUNS, Principal
from actors.accounts.server import KEEP_US, RELOOK_US, AccountedServer
from actors.accounts.tokens import LOCAL_OWNER
from actors.messages import (
    NOT_FOUND,
    CancelGraphRun,
    Commands,
    Complete,
    Completion,
    Control,
    ControlAnswer,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    Message,
    RunGraphSession,
    Start,
    StartAnswer,
)
from actors.server import SWEEP_PAUSE_US, Server
from tests.actors.accounts.deployed import Deployed, meta
from tests.actors.accounts.test_desk import Place
from tests.actors.drawing import drawn
from tests.actors.harness import S, Sent
from transports.units import Duration

EVERY = sorted(
    {kind for kinds in MAY_SEND.values() for kind in kinds} | set(LOCAL),
    key=lambda kind: kind.__name__,
)


# The check


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("who", ["agent", "device", "owner", "gateway", "nobody"])
def test_each_kind_of_principal_says_its_own_messages_alone(who: str, kind: type[Message]) -> None:
    place = Place()
    sources = {
        "agent": place.agent,
        "device": place.device,
        "owner": place.owner,
        "gateway": GATEWAY,
        "nobody": "agt_nobody",
    }
    own = [types for name, types in MAY_SEND.items() if name == who]
    may = kind in (LOCAL if who == "gateway" else own[0] if own else ())

    @settings(max_examples=5, deadline=None)
    @given(drawn(kind))
    def check(body: Message) -> None:
        before = place.server.context.store.snapshot()
        *_, sent = place.server.deliver(sources[who], body)
        denied = isinstance(sent.body, Failure) and sent.body.code == "denied"
        if not may:
            assert denied
            after = place.server.context.store.snapshot()
            assert {name for name in after if after[name] != before.get(name)} <= {"audit"}
        elif kind.__name__ not in {"AddOwner", "RevokeOwner", "ListOwners", "ListAudit"}:
            assert not denied

    check()


def test_an_agent_needs_the_scope() -> None:
    place = Place()
    reader = place.server.add_agent(place.owner, scopes=("graphs:read",))
    runner = place.server.add_agent(place.owner, scopes=("graphs:run",))
    needs = "this needs the scope graphs:run: ask the owner"
    assert place.server.run(reader) == Failure(code="scope", error=needs)
    run = place.server.queued(runner)
    refused = place.server.get(runner, run)
    assert isinstance(refused, Failure)
    assert refused.code == "scope"
    (sent,) = place.server.deliver(reader, ListGraphSessions(project_id="default"))
    assert isinstance(sent.body, GraphSessions)


def test_a_revoked_principal_is_told_so_whatever_it_says() -> None:
    place = Place()
    hints = place.server.actor.hints
    assert hints is not None
    assert place.device in hints.heard
    place.server.deliver(place.owner, RevokeAgent(agent=place.agent))
    place.server.deliver(place.owner, RevokeDevice(device=place.device))
    assert place.device not in hints.heard, "what is kept of devices grows with those there are"
    (sent,) = place.server.deliver(place.agent, GetGraphRun(command_id="x"))
    assert isinstance(sent.body, PrincipalRevoked)
    (sent,) = place.server.sync(place.device, (meta(1),))
    assert isinstance(sent.body, PrincipalRevoked)
    assert place.server.acts(place.owner)[-1][1:] == ("Sync", "", "revoked")


def test_the_first_owner_is_made_once() -> None:
    server = Deployed()
    before = server.context.store.snapshot()
    server.deliver(GATEWAY, AuthenticateLocal())
    server.start()
    server.deliver(GATEWAY, AuthenticateLocal())
    assert server.context.store.snapshot() == before
    assert server.principal(LOCAL_OWNER).administrator


# Owners know nothing of each other


def said_by_a_stranger(run: str, session: str, key: str = "key-0000") -> list[Message]:
    return [
        GetGraphRun(command_id=run, wait_us=20 * S),
        GetGraphRun(command_id=run),
        CancelGraphRun(command_id=run),
        RunGraphSession(graph_session_id=session, idempotency_key=key),
    ]


def calls_of(server: Deployed, source: str, body: Message) -> list[tuple[str, str]]:
    """Which tables a turn reads and writes, in its order: what its time is made of."""
    calls: list[tuple[str, str]] = []
    tables = list(server.context.store.tables.items())
    actor = server.actor
    names = {id(table): name for name, table in tables}

    class Watched:
        def __init__(self, table: Any) -> None:
            self.table = table

        def __getattr__(self, name: str) -> Any:
            calls.append((names[id(self.table)], name))
            return getattr(self.table, name)

    kept = actor.runs, actor.sessions, actor.tickets, actor.accounts.rows, actor.audit.rows
    actor.runs, actor.sessions, actor.tickets = map(Watched, kept[:3])
    actor.accounts.rows, actor.audit.rows = map(Watched, kept[3:])
    try:
        server.deliver(source, body)
    finally:
        actor.runs, actor.sessions, actor.tickets = kept[:3]
        actor.accounts.rows, actor.audit.rows = kept[3:]
    return calls


@pytest.mark.parametrize("state", ["queued", "running", "completed"])
@pytest.mark.parametrize("number", range(4))
def test_what_is_another_s_is_answered_as_what_does_not_exist_by_the_same_steps(
    state: str, number: int
) -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    run: str = getattr(theirs, state)()
    body = said_by_a_stranger(run, meta(2).id)[number]
    missing = said_by_a_stranger("x", meta(3).id)[number]
    for agent in (mine.agent, server.add_agent(theirs.owner)):
        if agent != mine.agent and isinstance(body, RunGraphSession):
            continue  # its own owner's sessions are for each of its agents
        assert [sent.body for sent in server.deliver(agent, body)] == [NOT_FOUND]
        assert [sent.body for sent in server.deliver(agent, missing)] == [NOT_FOUND]
        assert calls_of(server, agent, body) == calls_of(server, agent, missing)
    assert server.status(run) == state


def test_the_audit_keeps_the_difference_that_the_answer_hides() -> None:
    place = Place()
    run = place.queued()
    other = place.server.add_agent(place.owner)
    for subject, outcome in ((run, "another's"), ("x", "unknown")):
        place.server.get(other, subject)
        assert place.server.acts(place.owner)[-1] == (other, "GetGraphRun", subject, outcome)
        place.server.context.now_us += 60 * S


def test_what_an_owner_is_refused_is_counted_too() -> None:
    place = Place()
    for _ in range(3):
        place.server.owner(CancelRun(command_id="x"), Failure, place.owner)
    row = place.server.audit(place.owner)[0]
    told = (row.who, row.act, row.subject, row.outcome, row.count)
    assert told == (place.owner, "CancelRun", "x", "not_found", 3)


def test_a_server_that_cannot_write_does_not_begin_again_without_a_pause() -> None:
    place = Place()
    place.queued()
    place.server.deliver(place.owner, RevokeDevice(device=place.device))
    place.server.start()
    assert place.server.context.timers["keep"] == SWEEP_PAUSE_US


def test_projects_of_one_name_are_each_owner_s_own() -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    for place, number in ((mine, 1), (theirs, 2)):
        (sent,) = server.deliver(place.agent, ListGraphSessions(project_id="default"))
        assert isinstance(sent.body, GraphSessions)
        assert [each.graph_session_id for each in sent.body.sessions] == [meta(number).id]
        (sent,) = server.deliver(place.agent, ListGraphSessions(project_id="other"))
        assert isinstance(sent.body, GraphSessions)
        assert sent.body.sessions == ()


def test_a_device_starts_and_completes_no_run_of_another() -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    run = theirs.running()
    row = server.row(run)
    assert row is not None
    start = Start(command_id=run, boot=row.boot, delivery=row.delivery)
    assert not server.told(mine.device, start, StartAnswer).go
    control = Control(command_id=run, boot=row.boot)
    assert server.told(mine.device, control, ControlAnswer).stop
    server.complete(mine.device, run)
    assert server.status(run) == "running"
    server.share(mine.device, 2)
    assert server.offers(mine.device, 2) == []
    assert server.run(mine.agent, 2) == NOT_FOUND, "nor does it take a session over"


def test_calls_that_wait_for_an_owner_are_no_second_start_in_the_audit() -> None:
    place = Place()
    run = place.running()
    row = place.server.row(run)
    assert row is not None
    for waiting in (1, 0):
        control = Control(command_id=run, boot=row.boot, waiting=waiting)
        place.server.told(place.device, control, ControlAnswer)
        answer = place.server.get(place.agent, run)
        assert isinstance(answer, GraphRun)
        assert (answer.awaiting_approval or 0) == waiting
    acts = [act for _, act, subject, _ in place.server.acts(place.owner) if subject == run]
    assert acts == ["run.queue", "run.start"]


# Several processes


def test_a_run_that_another_process_changed_is_told_within_a_second() -> None:
    place = Place(server=Deployed(shared=True))
    run = place.queued()
    body = GetGraphRun(command_id=run, wait_us=20 * S)
    assert place.server.deliver(place.agent, body) == []
    assert place.server.fire("relook") == []
    row = place.server.row(run)
    assert row is not None
    changed = msgspec.structs.replace(row, status="cancelled")
    place.server.context.store.table(OWNED_RUNS).put(run, changed)
    before_us = place.server.context.now_us
    (sent,) = place.server.fire("relook")
    assert place.server.context.now_us == before_us + RELOOK_US
    assert isinstance(sent.body, GraphRun)
    assert (sent.target, sent.body.status) == (place.agent, "cancelled")
    assert not [
        timer for timer in place.server.context.timers if timer in {"relook", f"wait:{run}"}
    ]


def test_nobody_looks_again_while_nobody_waits_or_the_database_is_its_own() -> None:
    alone = Place()
    alone.server.deliver(alone.agent, GetGraphRun(command_id=alone.queued(), wait_us=20 * S))
    assert "relook" not in alone.server.context.timers
    place = Place(server=Deployed(shared=True))
    run = place.queued()
    place.server.get(place.agent, run)
    assert "relook" not in place.server.context.timers
    place.server.deliver(place.agent, GetGraphRun(command_id=run, wait_us=20 * S))
    place.server.owner(CancelRun(command_id=run), Changed, place.owner)
    place.server.fire("relook")
    assert "relook" not in place.server.context.timers, "it was answered by its own process"


def test_deadlines_that_another_process_wrote_are_kept() -> None:
    place = Place(server=Deployed(shared=True, start_deadline_us=Duration(3600 * S)))
    run = place.queued()
    place.server.context.cancel_timer("sweep")  # as if another process had queued it
    place.server.context.now_us += 3600 * S
    place.server.fire("keep")
    assert place.server.status(run) == "expired"
    assert place.server.context.timers["keep"] == place.server.context.now_us + KEEP_US


def test_the_defaults_are_the_recommended_ones() -> None:
    config = AccountedServer.Config()
    assert (config.hints, config.reconcile, config.fair) == (True, True, True)
    assert (config.wait_limit_us, config.delivery_limit) == (20 * S, 10)
    assert not Server.Config().hints


def test_who_sends_a_message_is_read_once_in_its_turn() -> None:
    server = Deployed()
    agent, device = server.add_agent(), server.add_device()
    server.share(device, 1)
    find, read = server.actor.accounts.find, []

    def counted(principal: str) -> Principal | None:
        read.append(principal)
        return find(principal)

    server.actor.accounts.find = counted  # type: ignore[method-assign]  # to count
    server.queued(agent)
    assert read == [agent, device]


def test_rows_are_read_anew_and_none_is_kept_in_memory() -> None:
    place = Place()
    for _ in range(3):
        place.server.get(place.agent, place.completed())
    assert place.server.actor.answers == {}


# Any sequence of messages

AGENTS, DEVICES, OWNERS = 4, 2, 2
LIMIT = 3
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["run"] * 5 + ["get", "cancel", "list", "take", "done", "owner", "wait", "time"]
        ),
        st.integers(0, AGENTS - 1),
        st.integers(0, 9),
    ),
    min_size=5,
    max_size=60,
)


class Crowd:
    """Two owners, each with two agents and a device, who say whatever they like."""

    def __init__(self, server: Deployed | None = None) -> None:
        self.server = server or Deployed(agent_limit=LIMIT, device_limit=LIMIT + 1)
        self.owners = [self.server.add_owner() for _ in range(OWNERS)]
        self.agents = [self.server.add_agent(self.owners[n % OWNERS]) for n in range(AGENTS)]
        self.devices = [self.server.add_device(self.owners[n]) for n in range(DEVICES)]
        for number, device in enumerate(self.devices):
            self.server.share(device, number)
        self.runs: list[tuple[str, str]] = []  # each run with its agent
        self.serial = 0

    def step(self, what: str, who: int, which: int) -> None:
        self.server.context.now_us += S
        agent, device = self.agents[who], self.devices[who % DEVICES]
        run = self.runs[which % len(self.runs)][0] if self.runs else "x"
        if what == "run":
            self.queue(agent, which % 3 if which > 7 else who % OWNERS)
        elif what == "list":
            self.list_sessions(agent, meta(who % OWNERS).id)
        elif what == "take":
            self.take(device, who % DEVICES)
        elif what == "time":
            self.time()
        else:
            done = Completion(execution_id="x", status="completed", result=run)
            owner = self.owners[which % OWNERS]
            source, body = {
                "get": (agent, GetGraphRun(command_id=run)),
                "wait": (agent, GetGraphRun(command_id=run, wait_us=5 * S)),
                "cancel": (agent, CancelGraphRun(command_id=run)),
                "done": (device, Complete(command_id=run, boot="b", delivery=1, completion=done)),
                "owner": (owner, CancelRun(command_id=run)),
            }[what]
            before = self.server.row(run)
            self.notices(self.server.deliver(source, body))
            if before is not None and source not in {before.agent, before.device, before.owner}:
                assert self.server.row(run) == before, "it is none of theirs"

    def queue(self, agent: str, session: int) -> None:
        self.serial += 1
        body = RunGraphSession(
            graph_session_id=meta(session).id, idempotency_key=f"key-{self.serial:06}"
        )
        sent = self.server.deliver(agent, body)
        for each in sent:
            if isinstance(each.body, GraphRun):
                assert self.owners[session] == self.server.principal(agent).owner
                self.runs.append((each.body.command_id, agent))
        self.notices(sent)

    def list_sessions(self, agent: str, own: str) -> None:
        (sent,) = self.server.deliver(agent, ListGraphSessions(project_id="default"))
        assert isinstance(sent.body, GraphSessions)
        assert {each.graph_session_id for each in sent.body.sessions} <= {own}

    def take(self, device: str, number: int) -> None:
        sent = self.server.sync(device, (meta(number),), capacity=1)
        commands = [each.body for each in sent if isinstance(each.body, Commands)]
        for command in commands[0].commands:
            row = self.server.row(command.command_id)
            assert row is not None
            assert row.owner == self.owners[number]
            body = Start(command_id=row.command_id, boot=row.boot, delivery=row.delivery)
            self.notices(self.server.deliver(device, body))

    def time(self) -> None:
        """Wake the server for whatever is due first."""
        timers = self.server.context.timers
        self.notices(self.server.fire(min(timers, key=lambda timer: (timers[timer], timer))))

    def notices(self, sent: list[Sent]) -> None:
        """An agent hears of its own runs alone."""
        owned = dict(self.runs)
        for each in sent:
            if isinstance(each.body, GraphRun):
                assert owned[each.body.command_id] == each.target

    def count_open(self) -> None:
        """No limit is exceeded, not for a moment."""
        rows = [row for run, _ in self.runs if (row := self.server.row(run)) is not None]
        limits = dict.fromkeys(self.agents, LIMIT) | dict.fromkeys(self.devices, LIMIT + 1)
        for principal, limit in limits.items():
            mine = [row for row in rows if row.open_on and principal in {row.agent, row.device}]
            assert len(mine) <= limit

    def check(self) -> None:
        """The audit's rows tell the state of every run."""
        rows = {run: self.server.row(run) for run, _ in self.runs}
        told: dict[str, list[str]] = {run: [] for run in rows}
        for owner in self.owners:
            for _, act, subject, _ in self.server.acts(owner):
                if act.startswith("run."):
                    told[subject].append(act)
        for run, row in rows.items():
            assert row is not None
            want = ["run.queue"]
            want += ["run.start"] if row.started_us else []
            want += [f"run.{row.status}"] if row.finished_us else []
            assert [act for act in told[run] if act != "run.cancel"] == want


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_no_sequence_of_messages_crosses_owners_or_limits_or_escapes_the_audit(
    steps: list[tuple[str, int, int]],
) -> None:
    crowd = Crowd()
    for step in steps:
        crowd.step(*step)
        crowd.count_open()
    crowd.check()


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 9))
def test_a_stranger_hears_the_same_whatever_another_owner_does(
    steps: list[tuple[str, int, int]], which: int
) -> None:
    """What an agent is answered about an id does not change as its run comes, goes on and ends."""
    crowd = Crowd()
    stranger = crowd.server.add_agent(crowd.server.add_owner())
    for step in steps:
        crowd.step(*step)
        run = crowd.runs[which % len(crowd.runs)][0] if crowd.runs else "x"
        for body in said_by_a_stranger(run, meta(step[2] % 3).id):
            sent = crowd.server.deliver(stranger, body)
            assert [(each.target, each.body) for each in sent] == [(stranger, NOT_FOUND)]


def test_what_the_gateway_asks_is_never_taken_from_a_wire() -> None:
    server = Deployed()
    for body in (Authenticate(token_hash="x"), AuthenticateLocal(), GetServerStatus()):  # noqa: S106  # no secret
        (sent,) = server.deliver("agt_x", body)
        assert isinstance(sent.body, Failure)
