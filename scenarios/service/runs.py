"""What a server's owner sees of runs: where each is, what it waits for, who did what."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from actors.accounts.messages import (
    AuditEntry,
    CancelRun,
    Changed,
    ExplainRun,
    ForgetRun,
    ListAudit,
    ListRuns,
    RunExplained,
    RunListing,
    RunShown,
    ShowRun,
)
from actors.messages import TERMINAL
from scenarios.graph_files import refusal
from scenarios.graph_progress import one_line
from scenarios.json_text import indented
from scenarios.service.client import plain
from scenarios.service.listing import print_rows
from scenarios.service.owner import Owner, ago
from scenarios.service.process import say
from scenarios.service.why import words_of

PAGE = 50  # rows of one answer


def list_runs(owner: Owner, asked: ListRuns, limit: int, *, json: bool) -> int:
    """Print runs, the newest first."""
    found: list[RunListing] = list(islice(_rows(owner, asked, "runs"), _checked(limit)))
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    print_rows(
        ("run", "slug", "state"), [(one.command_id, one.slug, _standing(one)) for one in found]
    )
    if not found:
        say("there is no such run")
    return 0


def _standing(run: RunListing) -> str:
    """Return how a run stands, since when, and why it failed if it did."""
    since_us = run.finished_ago_us
    if since_us is None:
        since_us = run.queued_ago_us if run.started_ago_us is None else run.started_ago_us
    error = f": {one_line(run.error)[:60]}" if run.error else ""
    return f"{run.status} {ago(since_us)}{error}"


def show_run(owner: Owner, ticket: str, *, json: bool) -> int:
    """Print all of a run, and what it waits for if it does."""
    shown: RunShown = owner.ask(ShowRun(command_id=ticket))
    told: RunExplained | None = None
    if shown.run.status not in TERMINAL:
        told = owner.ask(ExplainRun(command_id=ticket))
    if json:
        why = None if told is None else plain(told)
        sys.stdout.write(indented({**plain(shown), "why": why}))
        return 0
    for key, value in _facts(shown, told):
        sys.stdout.write(f"{key:10} {value}\n")
    return 0


def _facts(shown: RunShown, told: RunExplained | None) -> Iterator[tuple[str, str]]:
    run = shown.run
    yield "run", run.command_id
    yield "status", _standing(run)
    if told is not None:
        yield "why", words_of(told)
    yield "session", f"{run.session}  {run.slug}"
    yield "agent", run.agent
    yield "desktop", run.device
    yield "queued", ago(run.queued_ago_us)
    if run.started_ago_us is not None:
        yield "started", ago(run.started_ago_us)
    if run.finished_ago_us is not None:
        yield "ended", ago(run.finished_ago_us)
    yield "arguments", one_line(msgspec.json.encode(shown.arguments).decode())
    if shown.completion is not None:
        yield "tokens", f"{run.total_tokens:,}"
        yield "result", one_line(msgspec.json.encode(shown.completion.result).decode())
    if shown.late is not None:
        yield "late", f"{shown.late.status}, after the run had ended here"


def cancel_run(owner: Owner, ticket: str, *, json: bool) -> int:
    """Cancel a run as its agent could."""
    told: Changed = owner.ask(CancelRun(command_id=ticket))
    return _done(
        told,
        f"{ticket} is cancelled if it was queued; if it runs, it stops within seconds",
        json=json,
    )


def forget_run(owner: Owner, ticket: str, *, json: bool) -> int:
    """Delete an ended run with its arguments and its result."""
    told: Changed = owner.ask(ForgetRun(command_id=ticket))
    return _done(told, f"{ticket} is forgotten; its key queues nothing again", json=json)


def _done(told: Changed, words: str, *, json: bool) -> int:
    if json:
        sys.stdout.write(indented(plain(told)))
    else:
        say(words)
    return 0


def show_audit(owner: Owner, limit: int, *, everybody: bool, json: bool) -> int:
    """Print who did what, the newest first."""
    asked = ListAudit(everybody=everybody, limit=PAGE)
    found: list[AuditEntry] = list(islice(_rows(owner, asked, "entries"), _checked(limit)))
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = []
    for one in found:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.at_us / 1e6))
        source = f"from {one.address}" if one.address else ""
        often = f"{one.count} times in a minute" if one.count > 1 else ""
        who = one.who or "nobody"
        rows.append((when, who, one.act, one.subject, one.outcome, source, often))
    print_rows(("when", "who", "what", "on", "outcome", "", ""), rows)
    if not found:
        say("nothing is in the audit yet")
    return 0


def _checked(limit: int) -> int:
    """Return how many rows are wanted; ScenarioError for what is no number of rows."""
    if limit < 1:
        raise refusal("--limit", "at least 1 row can be asked for")
    return limit


def _rows(owner: Owner, body: Any, field: str) -> Iterator[Any]:
    """Yield the rows of page after page; a page may be empty and not the last."""
    while True:
        page = owner.ask(body)
        yield from getattr(page, field)
        if not page.cursor:
            return
        body = msgspec.structs.replace(body, cursor=page.cursor)
