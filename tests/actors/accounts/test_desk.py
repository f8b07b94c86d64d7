"""What owners ask: pages of their own, limits, removals, runs that they cancel and forget."""

from __future__ import annotations

import msgspec
import pytest

from actors.accounts.desk import COUNT_PAUSE_US, LOOKED_AT, OWNERS_LIMIT
from actors.accounts.messages import (
    GATEWAY,
    AddAgent,
    AddOwner,
    Agents,
    CancelRun,
    Changed,
    Devices,
    ForgetRun,
    GetServerStatus,
    ListAgents,
    ListDevices,
    ListOwners,
    ListRuns,
    PrincipalAdded,
    PrincipalRevoked,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    RevokeOwner,
    Runs,
    RunShown,
    ServerStatus,
    SetOpenLimit,
    ShowRun,
)
from actors.accounts.pairing import BAD_CODE
from actors.accounts.rows import OWNED_RUNS
from actors.accounts.tokens import LOCAL_OWNER, REVOKED, UNKNOWN
from actors.messages import NOT_FOUND, Failure, GraphRun
from tests.actors.accounts.deployed import RESULT, Deployed, hashed, meta
from tests.actors.harness import S
from transports.units import Duration

HASH = hashed("h")
DAY = 86_400 * S


class Place:
    """A server with an owner, its agent and its device, which shares session 1."""

    def __init__(self, session: int = 1, server: Deployed | None = None) -> None:
        self.server = server or Deployed()
        self.owner = self.server.add_owner()
        self.agent = self.server.add_agent(self.owner)
        self.device = self.server.add_device(self.owner)
        self.session = session
        self.server.share(self.device, session)

    def queued(self) -> str:
        self.server.context.now_us += S
        return self.server.queued(self.agent, self.session)

    def running(self) -> str:
        run = self.queued()
        assert self.server.start_run(self.device, run, self.session)
        return run

    def completed(self) -> str:
        run = self.running()
        self.server.complete(self.device, run)
        return run


def runs(place: Place, **filters: str) -> list[str]:
    """The runs of every page, the newest first."""
    found: list[str] = []
    cursor = ""
    for _ in range(100):
        page = place.server.owner(ListRuns(limit=3, cursor=cursor, **filters), Runs, place.owner)
        found += [run.command_id for run in page.runs]
        cursor = page.cursor
        if not cursor:
            break
    return found


def test_runs_are_listed_in_pages_and_by_filters() -> None:
    place = Place()
    ended = [place.completed() for _ in range(4)]
    going, waiting = place.running(), [place.queued() for _ in range(3)]
    everything = [*ended, going, *waiting][::-1]
    assert runs(place) == everything
    assert runs(place, status="completed") == ended[::-1]
    assert runs(place, status="running") == [going]
    assert runs(place, agent=place.agent, device=place.device) == everything
    assert runs(place, agent="agt_other") == []
    page = place.server.owner(ListRuns(status="asleep"), Failure, place.owner)
    assert page.error.startswith("status is one of queued, running, cancelled")


def test_a_filtered_page_looks_at_so_many_runs_and_goes_on() -> None:
    place = Place()
    rare = place.queued()
    table = place.server.context.store.table(OWNED_RUNS)
    row = table.get(rare)
    assert row is not None
    for number in range(LOOKED_AT + 5):
        name = f"run-{number}"
        table.put(
            name, msgspec.structs.replace(row, command_id=name, listed=name, status="expired")
        )
    page = place.server.owner(ListRuns(status="queued", limit=5), Runs, place.owner)
    while page.cursor and not page.runs:
        body = ListRuns(status="queued", limit=5, cursor=page.cursor)
        page = place.server.owner(body, Runs, place.owner)
    assert [run.command_id for run in page.runs] == [rare]


def test_a_run_is_shown_with_its_arguments_and_result_and_that_is_audited() -> None:
    place = Place()
    run = place.completed()
    shown = place.server.owner(ShowRun(command_id=run), RunShown, place.owner)
    assert (shown.arguments, shown.completion) == ({}, RESULT)
    assert shown.run.total_tokens == RESULT.total_tokens
    assert shown.late is None
    late = msgspec.structs.replace(RESULT, execution_id="y")
    place.server.complete(place.device, run, late)
    shown = place.server.owner(ShowRun(command_id=run), RunShown, place.owner)
    assert shown.completion == RESULT
    assert shown.late == msgspec.structs.replace(late, result=None), "two may be over a frame"
    assert place.server.acts(place.owner)[-1] == (place.owner, "run.show", run, "ok")


def test_an_owner_cancels_a_run_as_its_agent_could() -> None:
    place = Place()
    going, waiting = place.running(), place.queued()
    for run in (going, waiting):
        assert place.server.owner(CancelRun(command_id=run), Changed, place.owner).subject == run
        place.server.owner(CancelRun(command_id=run), Changed, place.owner)
    assert [place.server.status(run) for run in (going, waiting)] == ["running", "cancelled"]
    row = place.server.row(going)
    assert row is not None
    assert row.cancel_requested
    acts = [act for act in place.server.acts(place.owner) if act[1] == "run.cancel"]
    assert acts == [(place.owner, "run.cancel", run, "ok") for run in (going, waiting)]


def test_a_forgotten_run_is_gone_but_its_key_queues_nothing() -> None:
    place = Place()
    place.server.context.now_us += S
    first = place.server.run(place.agent, key="key-0001")
    assert isinstance(first, GraphRun)
    run = first.command_id
    failure = place.server.owner(ForgetRun(command_id=run), Failure, place.owner)
    assert "cancel it first" in failure.error
    place.server.start_run(place.device, run)
    place.server.complete(place.device, run)
    place.server.owner(ForgetRun(command_id=run), Changed, place.owner)
    assert place.server.row(run) is None
    assert place.server.get(place.agent, run) == NOT_FOUND
    again = place.server.run(place.agent, key="key-0001")
    assert isinstance(again, GraphRun)
    assert (again.command_id, again.status, again.replayed) == (run, "completed", True)
    assert again.result is None
    assert runs(place) == []


def test_a_removed_device_s_runs_are_closed_and_it_is_told() -> None:
    place = Place()
    going, waiting = place.running(), place.queued()
    sent = place.server.deliver(place.owner, RevokeDevice(device=place.device))
    assert [each.target for each in sent] == [GATEWAY, place.owner]
    place.server.keep()
    assert [place.server.status(run) for run in (going, waiting)] == ["interrupted", "cancelled"]
    answer = place.server.get(place.agent, waiting)
    assert isinstance(answer, GraphRun)
    assert answer.error is not None
    assert "removed by its owner" in answer.error
    assert place.server.run(place.agent) == NOT_FOUND, "what it shared is shared no more"
    acts = [act for act in place.server.acts(place.owner) if act[0] == "server"]
    assert [act[1] for act in acts] == ["run.interrupted", "run.cancelled"]


def test_very_many_runs_are_not_counted_again_at_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.accounts.desk.MANY", 3)
    place = Place()

    def counted() -> int:
        return place.server.owner(GetServerStatus(), ServerStatus, place.owner).counts["queued"]

    for expected in (1, 2, 3):
        place.queued()
        assert counted() == expected
    place.server.queued(place.agent)
    place.server.context.now_us += 3 * COUNT_PAUSE_US - 1
    assert counted() == 3
    place.server.context.now_us += 1
    assert counted() == 4


def test_a_removal_of_many_runs_takes_several_turns_and_outlives_a_restart() -> None:
    place = Place()
    waiting = [place.queued() for _ in range(250)]
    place.server.deliver(place.owner, RevokeDevice(device=place.device))
    place.server.fire("keep")
    assert {place.server.status(run) for run in waiting} == {"queued", "cancelled"}
    place.server.start()
    place.server.keep()
    assert {place.server.status(run) for run in waiting} == {"cancelled"}
    assert place.server.principal(place.device).closing_us is None


def test_a_removed_agent_s_work_stops_and_its_keys_go_with_its_runs() -> None:
    place = Place()
    going, waiting = place.running(), [place.queued() for _ in range(120)]
    place.server.deliver(place.owner, RevokeAgent(agent=place.agent))
    place.server.keep()
    assert {place.server.status(run) for run in waiting} == {"cancelled"}
    row = place.server.row(going)
    assert row is not None
    assert row.cancel_requested
    place.server.owner(ForgetRun(command_id=waiting[0]), Changed, place.owner)
    assert len(place.server.context.store.snapshot()["tickets"]) == 120


def test_a_removed_owner_goes_with_all_that_it_has() -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    run, code = theirs.queued(), server.code(theirs.owner)
    denied = server.owner(RevokeOwner(owner=theirs.owner), Failure, mine.owner)
    assert denied.code == "denied"
    assert server.owner(RevokeOwner(owner=LOCAL_OWNER), Failure).code == "not_found"
    assert server.owner(RevokeOwner(owner=mine.agent), Failure).code == "not_found"
    server.owner(RevokeOwner(owner=theirs.owner), Changed)
    server.owner(RevokeOwner(owner=theirs.owner), Changed)
    server.keep()
    assert server.status(run) == "cancelled"
    for gone in (theirs.owner, theirs.agent, theirs.device):
        assert server.principal(gone).revoked_us is not None
        (sent,) = server.deliver(gone, ListAgents())
        assert isinstance(sent.body, PrincipalRevoked)
    assert server.pair(code) == BAD_CODE
    assert mine.queued()


def test_removed_principals_are_forgotten_with_the_audit_and_count_for_nothing() -> None:
    server = Deployed(audit_retention_us=Duration(30 * DAY))
    device, agent = server.add_device(bearer="d"), server.add_agent(bearer="a")
    server.owner(RevokeDevice(device=device), Changed)
    server.owner(RevokeAgent(agent=agent), Changed)
    assert server.actor.accounts.count(LOCAL_OWNER, "device") == 0
    assert server.actor.accounts.count(LOCAL_OWNER, "agent") == 0
    server.context.now_us += 29 * DAY
    server.keep()
    assert server.sign_in("d") == server.sign_in("a") == REVOKED
    server.context.now_us += 2 * DAY
    server.keep()
    assert server.sign_in("d") == server.sign_in("a") == UNKNOWN
    assert server.owner(ListDevices(), Devices).devices == ()
    assert "tokens" not in server.context.store.snapshot()


def test_limits_of_one_s_own_come_before_the_server_s() -> None:
    place = Place()
    body = SetOpenLimit(principal=place.agent, open_limit=2)
    place.server.owner(body, Changed, place.owner)
    place.queued()
    place.queued()
    full = place.server.run(place.agent)
    assert isinstance(full, Failure)
    assert full.error.startswith("this agent has 2 open runs")
    body = SetOpenLimit(principal=place.device, open_limit=2)
    place.server.owner(body, Changed, place.owner)
    other = place.server.add_agent(place.owner)
    full = place.server.run(other)
    assert isinstance(full, Failure)
    assert full.error.startswith("this desktop has 2 open runs")
    body = SetOpenLimit(principal=place.device, open_limit=None)
    place.server.owner(body, Changed, place.owner)
    place.server.queued(other)
    listed = place.server.owner(ListAgents(), Agents, place.owner).agents
    assert sorted(each.open_limit for each in listed) == [2, 1000]


def test_another_owner_s_things_are_answered_as_what_does_not_exist() -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    run = theirs.completed()
    for body, missing in [
        (RevokeDevice(device=theirs.device), RevokeDevice(device="dev_x")),
        (RevokeAgent(agent=theirs.agent), RevokeAgent(agent="agt_x")),
        (RevokeAgent(agent=mine.device), RevokeAgent(agent="agt_x")),
        (SetOpenLimit(principal=theirs.agent, open_limit=1),) * 2,
        (RenewToken(principal=theirs.agent, token_hash=HASH),) * 2,
        (RenewToken(principal=mine.device, token_hash=HASH),) * 2,
        (ShowRun(command_id=run), ShowRun(command_id="x")),
        (CancelRun(command_id=run), CancelRun(command_id="x")),
        (ForgetRun(command_id=run), ForgetRun(command_id="x")),
    ]:
        failure = server.owner(body, Failure, mine.owner)
        assert failure.code == "not_found"
        assert failure == server.owner(missing, Failure, mine.owner)
    assert runs(mine) == []
    assert len(server.owner(ListDevices(), Devices, mine.owner).devices) == 1


@pytest.mark.parametrize("body", [AddOwner(name="x", token_hash=HASH), ListOwners()])
def test_the_administrator_alone_looks_after_owners(body: AddOwner | ListOwners) -> None:
    server = Deployed()
    owner = server.add_owner("second")
    assert server.owner(body, Failure, owner).code == "denied"
    listed = server.owner(ListOwners(), Agents).agents
    assert [each.name for each in listed] == ["second", "local"][:: 1 if len(listed) == 2 else -1]


def test_what_an_owner_adds_needs_a_name_of_its_own_and_a_token() -> None:
    server = Deployed()
    server.add_agent(name="claude")
    for name in ("claude", " claude ", "", "\n"):
        assert server.owner(AddAgent(name=name, token_hash=HASH), Failure).code == "bad_request"
    assert server.owner(AddAgent(name="x"), Failure).code == "bad_request"
    assert server.owner(AddOwner(name="x"), Failure).code == "bad_request"
    held = hashed("held")
    server.add_agent(bearer="held")
    assert server.owner(AddAgent(name="x", token_hash=held), Failure).code == "bad_request"
    assert server.owner(AddOwner(name="x", token_hash=held), Failure).code == "bad_request"
    other = server.add_agent()
    body = RenewToken(principal=other, token_hash=held)
    assert server.owner(body, Failure).code == "bad_request"
    server.owner(AddAgent(name="x", token_hash=hashed("x")), PrincipalAdded)
    for number in range(OWNERS_LIMIT - 1):
        server.add_owner(f"owner {number}")
    one_more = AddOwner(name="one more", token_hash=hashed("y"))
    assert server.owner(one_more, Failure).code == "limit"


def test_the_status_tells_what_waits_since_when() -> None:
    server = Deployed()
    mine, theirs = Place(1, server), Place(2, server)
    mine.completed()
    server.context.now_us += 7 * S
    theirs.queued()
    server.context.now_us += 5 * S
    mine.queued()
    server.sync(mine.device, (meta(1),), boot="boot-2")
    server.context.now_us += 3 * S
    status = server.owner(GetServerStatus(), ServerStatus, mine.owner)
    assert (status.counts["queued"], status.counts["completed"]) == (1, 1)
    assert status.oldest_queued_us == 3 * S
    assert [(each.device, each.synced_ago_us) for each in status.devices] == [(mine.device, 3 * S)]
    assert status.writable
    for everybody in (
        server.owner(GetServerStatus(), ServerStatus),
        server.told(GATEWAY, GetServerStatus(), ServerStatus),
    ):
        assert everybody.counts["queued"] == 2
        assert everybody.oldest_queued_us == 9 * S
        assert {each.device for each in everybody.devices} == {mine.device, theirs.device}
    server.keep()
    swept = server.owner(GetServerStatus(), ServerStatus).swept_ago_us
    assert swept is not None
