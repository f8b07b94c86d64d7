"""The audit: a row for each act, a count for each minute of denials, pages, an end by age."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.accounts.audit import MINUTE_US, SUBJECT_CHARS, SWEEP_LIMIT
from actors.accounts.messages import Audit, ListAudit
from actors.accounts.rows import AUDIT
from actors.accounts.tokens import LOCAL_OWNER
from actors.messages import Complete, Control, Failure, GetGraphRun, Message, Start
from tests.actors.accounts.deployed import RESULT, Deployed, meta
from tests.actors.harness import S
from transports.units import Duration

DAY = 86_400 * S


def counted(server: Deployed, act: str) -> list[tuple[str, str, int]]:
    """Subject, outcome and count of every row of an act, the oldest first."""
    rows = [row for row in server.audit(everybody=True) if row.act == act]
    return [(row.subject, row.outcome, row.count) for row in rows[::-1]]


def test_denied_reads_are_one_row_a_minute() -> None:
    server = Deployed()
    agent, other = server.add_agent(), server.add_agent()
    for number in range(50):
        server.get(agent, f"run-{number}")
    server.get(other, "run-x")
    server.context.now_us += MINUTE_US
    server.get(agent, "run-y")
    assert sorted(counted(server, "GetGraphRun")) == [
        ("run-49", "unknown", 50),
        ("run-x", "unknown", 1),
        ("run-y", "unknown", 1),
    ]


@pytest.mark.parametrize("kind", [Start, Control, Complete])
def test_what_a_device_says_of_another_s_run_is_one_row_a_minute(kind: type[Message]) -> None:
    said: dict[type[Message], Callable[[str], Message]] = {
        Start: lambda run: Start(command_id=run, boot="b", delivery=1),
        Control: lambda run: Control(command_id=run, boot="b"),
        Complete: lambda run: Complete(command_id=run, boot="b", delivery=1, completion=RESULT),
    }
    server = Deployed()
    agent, device, other = server.add_agent(), server.add_device(), server.add_device(name="desk")
    server.sync(device, (meta(1),))
    run = server.queued(agent)
    for _ in range(50):
        server.deliver(other, said[kind](run))
    assert counted(server, kind.__name__) == [(run, "another's", 50)]
    assert [row.who for row in server.audit() if row.act == kind.__name__] == [other]
    server.deliver(device, said[kind](run))
    server.deliver(device, said[kind]("run-x"))
    assert counted(server, kind.__name__)[1:] == [("run-x", "unknown", 1)], "its own is none"


def test_who_has_no_token_is_one_row_a_minute_whatever_it_calls_itself() -> None:
    server = Deployed()
    for number in range(50):
        server.sign_in(f"guess-{number}", name=f"agent-{number}", address=f"10.0.0.{number}")
    assert counted(server, "sign_in") == [("agent-49", "unknown", 50)]
    assert server.audit()[0].act == "owner.add", "it is in nobody's book"


def test_what_somebody_made_up_is_cut() -> None:
    server = Deployed()
    agent = server.add_agent()
    server.get(agent, "x" * 10_000)
    assert [subject for subject, _, _ in counted(server, "GetGraphRun")] == ["x" * SUBJECT_CHARS]


def test_pages_go_on_behind_the_last_row_while_rows_are_added() -> None:
    server = Deployed()
    for number in range(10):
        server.context.now_us += 1
        server.add_agent(name=f"agent {number}")
    first = server.owner(ListAudit(limit=4), Audit)
    server.add_agent(name="one more")
    rest = server.owner(ListAudit(limit=100, cursor=first.cursor), Audit)
    assert rest.cursor == ""
    subjects = [row.subject for row in (*first.entries, *rest.entries)]
    assert len(subjects) == len(set(subjects)) == 11
    ages = [row.at_us for row in (*first.entries, *rest.entries)]
    assert ages == sorted(ages, reverse=True)


def test_an_owner_reads_its_own_book_and_the_administrator_all() -> None:
    server = Deployed()
    owner = server.add_owner()
    agent = server.add_agent(owner)
    assert [row.subject for row in server.audit(owner)] == [agent]
    assert agent not in [row.subject for row in server.audit()]
    assert agent in [row.subject for row in server.audit(everybody=True)]
    server.owner(ListAudit(everybody=True), Failure, owner)


def test_rows_go_when_they_are_old_and_no_other_way() -> None:
    server = Deployed(audit_retention_us=Duration(30 * DAY))
    for _ in range(SWEEP_LIMIT + 20):
        server.add_agent()
    server.context.now_us = 29 * DAY
    server.keep()
    assert len(server.audit()) == SWEEP_LIMIT + 21
    late = server.add_agent()
    server.context.now_us += 1
    server.deliver(late, GetGraphRun(command_id="x"))
    server.context.now_us = 31 * DAY
    server.keep()
    assert [row.act for row in server.audit()] == ["GetGraphRun", "agent.add"]
    assert len(server.context.store.snapshot()[AUDIT.name]) == 2
    assert server.principal(LOCAL_OWNER).administrator
