"""Why a run has not begun, or not ended, as far as the server can tell.

Of a queued run the first of these that is so: its session is not shared any more, or was changed
since; its desktop is away; other runs come first there; the desktop has it and has not begun it; it
has synced often enough to have it, and takes none; it gets it with its next sync.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.accounts.messages import Reason, RunExplained
from actors.hints import MISSED_POLLS
from actors.server import DEFAULT_POLL_US, SEEN_US

if TYPE_CHECKING:
    from actors.accounts.server import AccountedServer
    from actors.ledger import Run

AHEAD_LIMIT = 1_000  # runs of a desktop that are looked through; more are as good as these
LATE_US = 5_000_000  # how long a sync may be under way


def explained(server: AccountedServer, run: Run, now_us: int) -> RunExplained:
    """Return what a run waits for, and all that is known of its desktop."""
    known = server.devices.get(run.device)
    who = server.accounts.find(run.device)
    seen_us, slack_us = last_contact(server, run.device)
    poll_us = DEFAULT_POLL_US if known is None else known.poll_us
    patience_us = MISSED_POLLS * poll_us + LATE_US
    away = seen_us is None or now_us - seen_us > patience_us + slack_us
    ahead = _ahead(server, run) if run.status == "queued" else 0
    return RunExplained(
        command_id=run.command_id,
        reason=_reason(server, run, away, ahead, now_us - run.queued_us > patience_us),
        device=run.device,
        name="" if who is None else who.name,
        synced_ago_us=None if seen_us is None else max(0, now_us - seen_us),
        poll_us=None if known is None else poll_us,
        ahead=ahead,
    )


def last_contact(server: AccountedServer, device: str) -> tuple[int | None, int]:
    """Return when a device was heard of last, None if never, and how much later that may be."""
    known = server.devices.get(device)
    if known is None:
        return None, 0
    heard_us = None if server.hints is None else server.hints.heard.get(device)
    if heard_us is None:
        return known.seen_us, SEEN_US  # the store has what a former process heard to a minute
    # Another process may have heard of it since, which is known to a minute as well.
    return max(known.seen_us, heard_us), SEEN_US if server.config.shared else 0


def _reason(server: AccountedServer, run: Run, away: bool, ahead: int, waits_long: bool) -> Reason:
    if run.status == "running":
        if run.cancel_requested:
            return "stopping"
        return "away" if away else "approval" if run.awaiting else "running"
    if run.status != "queued":
        return "ended"
    shared = server.sessions.get(run.session)
    if shared is None or (shared.device, shared.meta.generation) != (run.device, run.generation):
        return "not_shared"
    if away:
        return "away"
    if ahead:
        return "behind_others"
    if run.delivery:
        return "not_begun"
    return "takes_none" if waits_long else "next_sync"


def _ahead(server: AccountedServer, run: Run) -> int:
    """Return how many runs have begun on a desktop, or begin before this one."""
    found = server.runs.scan("open", (run.device,), limit=AHEAD_LIMIT)
    before = True
    count = 0
    for each in found:
        if each.command_id == run.command_id:
            before = False
        elif before or each.status == "running":
            count += 1
    return count
