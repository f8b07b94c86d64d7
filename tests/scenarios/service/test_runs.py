"""What a server's owner sees of runs and of who did what: as it is printed, and with processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from actors.accounts.messages import (
    Audit,
    AuditEntry,
    ListRuns,
    RunExplained,
    RunListing,
    Runs,
    RunShown,
)
from actors.messages import Completion
from scenarios.problems import ScenarioError
from scenarios.service import runs
from tests.scenarios.service.test_owner import Asked
from tests.scenarios.test_service import Deployment

RUN = RunListing(
    command_id="c-1",
    agent="agt_1",
    device="dev_1",
    session="gs_1",
    slug="greet",
    status="queued",
    delivery=0,
    cancel_requested=False,
    queued_ago_us=61_000_000,
    started_ago_us=None,
    finished_ago_us=None,
    total_tokens=0,
    reported_cost=0.0,
    error=None,
)
FAILED = msgspec.structs.replace(
    RUN,
    command_id="c-2",
    status="failed",
    started_ago_us=9_000_000,
    finished_ago_us=2_000_000,
    error="it broke\nin \x1b two lines",
)
ENTRY = AuditEntry(
    at_us=0,
    ago_us=1,
    who="agt_1",
    act="run.queue",
    subject="c-1",
    outcome="ok",
    address="",
    count=1,
)


def test_runs_of_every_page_are_listed_up_to_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [Runs(runs=(RUN,), cursor="a"), Runs(runs=(), cursor="b"), Runs(runs=(FAILED, FAILED))]
    it = Asked(ListRuns=list(pages))
    runs.list_runs(it, ListRuns(status="queued"), 2, json=False)
    assert capsys.readouterr().out.splitlines() == [
        "c-1  greet  queued 1m1s ago",
        "c-2  greet  failed 2s ago: it broke in ␛ two lines",
    ]
    assert [body.cursor for body in it.asked] == ["", "a", "b"]
    assert {body.status for body in it.asked} == {"queued"}
    runs.list_runs(Asked(ListRuns=Runs(runs=())), ListRuns(), 50, json=True)
    assert json.loads(capsys.readouterr().out) == []
    with pytest.raises(ScenarioError, match="at least 1 row"):
        runs.list_runs(it, ListRuns(), 0, json=False)


def test_a_run_is_shown_with_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    shown = RunShown(run=RUN, arguments={"who": "Ada"}, completion=None, late=None)
    told = RunExplained(
        command_id="c-1", reason="away", device="dev_1", name="laptop", synced_ago_us=None
    )
    it = Asked(ShowRun=shown, ExplainRun=told)
    runs.show_run(it, "c-1", json=False)
    out = capsys.readouterr().out
    assert "status     queued 1m1s ago\n" in out
    why = "its desktop has not been heard of lately (laptop, never synced)"
    assert f"why        {why}\n" in out
    assert 'arguments  {"who":"Ada"}\n' in out
    runs.show_run(it, "c-1", json=True)
    assert json.loads(capsys.readouterr().out)["why"]["reason"] == "away"


def test_of_a_run_that_has_ended_nothing_is_asked_but_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = Completion(execution_id="e", status="failed", result=None, error="it broke")
    late = Completion(execution_id="e", status="completed")
    it = Asked(ShowRun=RunShown(run=FAILED, arguments={}, completion=done, late=late))
    runs.show_run(it, "c-2", json=False)
    out = capsys.readouterr().out
    assert "why" not in out
    assert "late       completed, after the run had ended here\n" in out


def test_the_audit_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    denied = msgspec.structs.replace(
        ENTRY,
        who="",
        act="Authenticate",
        subject="",
        outcome="unknown",
        address="10.0.0.9",
        count=7,
    )
    runs.show_audit(Asked(ListAudit=Audit(entries=(ENTRY, denied))), 50, everybody=True, json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("  agt_1  run.queue  c-1  ok")
    words = "  nobody  Authenticate  unknown  from 10.0.0.9  7 times in a minute"
    assert second.endswith(words)


# With processes


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path) as made:
        yield made


def test_where_is_my_run_and_why_did_it_not_start(deployed: Deployment) -> None:
    server = deployed.serve()
    deployed.introduce()
    desktop = deployed.run_desktop()
    deployed.share()
    deployed.until_listed()
    first = deployed.queue("Ada")
    deployed.until(first, "running")
    second = deployed.queue("Bob")
    told = deployed.command("agent", "get", second)
    assert told.out == f"{second}  queued\n"
    assert "other runs come first on its desktop" in told.err
    assert json.loads(deployed.command("agent", "get", second, "--json").out)["why"] == (
        "behind_others"
    )
    shown = deployed.command("runs", "show", second).out
    assert "why        1 other run comes first on its desktop (laptop, synced " in shown
    listed = deployed.command("runs", "list", "--status", "running").out
    assert listed.startswith(f"{first}  greet  running ")
    assert listed.count("\n") == 1
    deployed.command("runs", "cancel", second)
    assert deployed.command("runs", "forget", second).code == 0
    gone = deployed.command("runs", "show", second)
    assert (gone.code, gone.out) == (2, "")
    assert "you have no such run (not_found)" in gone.err
    acts = [one["act"] for one in json.loads(deployed.command("audit", "--json").out)]
    assert acts.index("run.forget") < acts.index("run.cancel") < acts.index("run.queue")
    deployed.gate.touch()
    assert deployed.until(first, "completed").result["who"] == "Ada"
    assert (desktop.stop(), server.stop()) == (0, 0)
