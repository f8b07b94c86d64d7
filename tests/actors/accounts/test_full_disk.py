"""A server whose disk is full: what reads is answered, what writes is refused in words."""

from __future__ import annotations

from actors.accounts.messages import Authenticated, Denied, RevokeAgent
from actors.accounts.server import NOT_WRITABLE
from actors.accounts.tokens import LOCAL_OWNER
from actors.messages import (
    NOT_FOUND,
    Failure,
    GetGraphRun,
    GraphRun,
    GraphSessions,
    ListGraphSessions,
    RunGraphSession,
)
from tests.actors.accounts.deployed import Deployed, meta


def test_while_the_disk_is_full_what_reads_is_answered_and_new_work_refused() -> None:
    it = Deployed()
    agent = it.add_agent(bearer="word")
    device = it.add_device(bearer="first")
    it.share(device, 1)
    store = it.context.store
    before = it.audit()
    store.writable = False
    assert isinstance(it.sign_in("word"), Authenticated)
    assert isinstance(it.sign_in("nobody's"), Denied)
    body = ListGraphSessions(project_id="default")
    assert it.told(agent, body, GraphSessions).sessions
    assert it.told(agent, GetGraphRun(command_id="c"), Failure) == NOT_FOUND
    run = RunGraphSession(
        graph_session_id=meta(1).id, arguments={}, idempotency_key="a key of mine"
    )
    for source, change in ((agent, run), (LOCAL_OWNER, RevokeAgent(agent=agent))):
        assert it.told(source, change, Failure) == NOT_WRITABLE
    assert it.principal(agent).seen_us is None
    store.writable = True
    assert it.audit() == before, "nothing was written"
    assert it.told(agent, run, GraphRun).status == "queued"
