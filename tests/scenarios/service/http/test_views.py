"""What pages show of the server's answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.accounts.messages import Agents, Audit, Devices, RunExplained, Runs, RunShown
from actors.messages import TERMINAL, Completion
from actors.transitions import TRANSITIONS
from scenarios.service.http.views import (
    RESULT_LIMIT_CHARS,
    STATUSES,
    Home,
    RunPage,
    agent_rows,
    audit_rows,
    device_row,
    home,
    kind_of,
    more,
    names_of,
    run_page,
    run_row,
)
from tests.actors.drawing import drawn
from tests.scenarios.service.http.office import (
    ANNA,
    NOW_US,
    Office,
    S,
    agent,
    completed,
    device,
    listing,
)

NAMES = {"agt_1": "night shift", "dev_1": "laptop"}


def shown(**fields: Any) -> RunPage:
    """The page of a run with these fields."""
    run = listing(**fields)
    told = RunShown(run=run, arguments={}, completion=None, late=None)
    return run_page(told, NAMES, NOW_US)


def front(office: Office, status: str = "", at: str = "", cursor: str = "") -> Home:
    """The first page of an office."""
    runs = Runs(runs=tuple(one.run for one in office.runs[ANNA]), cursor=cursor)
    devices = Devices(devices=tuple(office.devices[ANNA]))
    return home(office.status(), devices, runs, NAMES, status, at)


def test_every_status_that_a_run_can_have_has_its_filter() -> None:
    reached = {rule.target for rule in TRANSITIONS}
    assert reached == set(STATUSES)
    assert set(STATUSES) >= TERMINAL


def test_kinds_of_statuses() -> None:
    kinds = {status: kind_of(status) for status in STATUSES}
    assert kinds["queued"] == kinds["running"] == "open"
    assert kinds["completed"] == "good"
    assert kinds["cancelled"] == "stopped"
    assert kinds["failed"] == kinds["interrupted"] == kinds["expired"] == "bad"


def test_what_a_run_waits_for_is_a_sentence() -> None:
    told = RunExplained(command_id="c", reason="away", device="dev_1", name="lap\x1btop")
    run = RunShown(run=listing(), arguments={}, completion=None, late=None)
    page = run_page(run, NAMES, NOW_US, told)
    assert page.why.startswith("Its desktop has not been heard of lately (lap")
    assert page.why.endswith("top, never synced).")
    assert "\x1b" not in page.why
    assert shown().why == ""


def test_a_run_that_waits() -> None:
    page = shown(delivery=2)
    assert page.sentence == "It has waited 1 min 30 s, and was offered twice."
    assert [step.name for step in page.steps] == ["Queued", "Offered to the desktop"]
    assert page.steps[0].at == "2026-03-01 11:58:35 UTC"
    assert (page.cancel, page.forget) == (f"/runs/{page.id}/cancel", "")


def test_a_run_that_runs_and_was_asked_to_stop() -> None:
    page = shown(status="running", delivery=1, started_ago_us=30 * S, cancel_requested=True)
    assert page.sentence == "It has run for 30 s. It was asked to stop."
    assert [step.name for step in page.steps] == [
        "Queued",
        "Offered to the desktop",
        "Started",
        "Asked to stop",
    ]
    assert (page.cancel, page.forget) == ("", "")


def test_a_run_that_ended() -> None:
    page = run_page(completed(), NAMES, NOW_US)
    assert page.sentence == "It waited 20 s and ran for 1 min."
    assert page.steps[-1].name == "Completed"
    assert page.steps[-1].note == "after 1 min"
    assert page.outcome is not None
    facts = dict(page.outcome.facts)
    assert (facts["Execution"], facts["Tokens"]) == ("x-1", "1,234")
    assert facts["Reported cost"] == "0.0421"
    assert '"sum": 7' in page.outcome.result
    assert (page.cancel, page.forget) == ("", f"/runs/{page.id}/forget")


def test_what_takes_less_than_a_second_is_at_once() -> None:
    page = shown(status="failed", started_ago_us=90 * S, finished_ago_us=89 * S + 1)
    assert [step.note for step in page.steps] == ["", "at once", "at once"]


def test_a_run_that_never_started() -> None:
    page = shown(status="expired", finished_ago_us=30 * S)
    assert page.sentence == "It waited 1 min and never started."
    assert page.steps[-1].note == "after 1 min"


def test_a_result_is_bounded_and_its_length_told() -> None:
    done = Completion(execution_id="x", status="completed", result="R" * 50_000)
    page = run_page(completed(completion=done, late=done), NAMES, NOW_US)
    assert page.outcome is not None
    assert page.outcome == page.late
    assert page.outcome.result.startswith("R" * RESULT_LIMIT_CHARS + "… (30,000 more")


@pytest.mark.parametrize(
    ("ago_us", "poll_us", "kind"),
    [(7 * S, 20 * S, "good"), (121 * S, 20 * S, "bad"), (None, None, "stopped")],
)
def test_a_desktop_that_misses_polls_is_seen(
    ago_us: int | None, poll_us: int | None, kind: str
) -> None:
    assert device_row(device(synced_ago_us=ago_us, poll_us=poll_us)).kind == kind


def test_a_revoked_desktop_can_be_revoked_no_more() -> None:
    row = device_row(device(revoked=True))
    assert (row.synced, row.revoke, row.kind) == ("revoked", "", "stopped")


def test_a_copied_token_is_told() -> None:
    assert "somebody may have a copy" in device_row(device(reused=True)).warning
    assert device_row(device()).warning == ""


def test_a_full_desktop_is_told() -> None:
    assert device_row(device(open_runs=5, open_limit=5)).open_runs == "5, its limit"


def test_ids_never_leave_their_part_of_a_path() -> None:
    assert run_row(listing("../x?y#z"), NAMES).href == "/runs/..%2Fx%3Fy%23z"
    assert device_row(device("a/b")).revoke == "/devices/a%2Fb/revoke"


def test_the_first_page_says_how_much_waits() -> None:
    page = front(Office())
    assert page.summary == "2 queued and 0 running; the oldest has waited 1 min 30 s."
    assert page.warnings == ()
    assert [one.text for one in page.choices if one.chosen] == ["all"]


def test_the_first_page_warns() -> None:
    office = Office()
    office.writable = False
    office.devices[ANNA] = [device(synced_ago_us=3_600 * S, open_runs=1)]
    store, desktop = front(office).warnings
    assert "can't write its store" in store
    assert "has not synced" in desktop


def test_links_to_more_keep_the_filter() -> None:
    page = front(Office(), status="queued", at="d/2", cursor="r 7")
    assert page.more_runs == "/?status=queued&devices=d%2F2&cursor=r+7#runs"
    assert page.more_devices == ""
    assert more("/audit", "a b") == "/audit?cursor=a+b"
    assert more("/audit", "") == ""


def test_an_empty_list_says_why() -> None:
    office = Office()
    office.runs[ANNA] = []
    assert front(office).no_runs == "No run was queued yet."
    assert front(office, status="failed").no_runs == "No run is failed."


def test_agents_and_the_audit() -> None:
    rows = agent_rows(Agents(agents=(agent(), agent("agt_2", revoked=True, scopes=()))))
    assert [(one.may, one.seen, bool(one.revoke)) for one in rows] == [
        ("look and run", "40 s ago", True),
        ("nothing", "revoked", False),
    ]
    entry = msgspec.structs.replace(Office().audit[0], count=3, outcome="not_found", subject="")
    (row,) = audit_rows(Audit(entries=(entry,)), NAMES)
    assert (row.who, row.act, row.subject, row.kind) == ("night shift", "run, 3 times", "", "bad")
    entry = msgspec.structs.replace(entry, act="run.show", subject="a/b")
    (row,) = audit_rows(Audit(entries=(entry,)), NAMES)
    assert row.href == "/runs/a%2Fb"


def test_principals_are_called_by_their_names() -> None:
    assert names_of([device()], [agent()]) == NAMES
    assert run_row(listing(agent="agt_7"), NAMES).agent == "agt_7"
    assert run_row(listing(agent="agt_7"), {"agt_7": "  "}).agent == "(no name)"


@settings(max_examples=50, deadline=None)
@given(drawn(RunShown), st.integers(0, 1 << 62))
def test_any_run_has_a_page(told: RunShown, now_us: int) -> None:
    page = run_page(told, {}, now_us)
    assert page.steps[0].name == "Queued"
    assert run_row(told.run, {}).status == told.run.status
