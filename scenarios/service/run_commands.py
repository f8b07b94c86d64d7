"""The commands of a server's owner about what happens: `runs` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from scenarios.flags import flag, switch
from scenarios.service.flags import JSON_HELP, NOWHERE, Flat, ReachFlags, ServerFolder, Ticket
from scenarios.service.owner_commands import owner_of


def runs_list(
    *,
    status: Annotated[str, flag("Only those: queued, running, completed and so on.")] = "",
    agent: Annotated[str, flag("Only those of an agent, by its id.")] = "",
    device: Annotated[str, flag("Only those for a desktop, by its id.")] = "",
    limit: Annotated[int, flag("How many, the newest first.")] = 50,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the runs of your agents: ticket, session, status, since when."""
    from actors.accounts.messages import ListRuns
    from scenarios.service.runs import list_runs

    asked = ListRuns(status=status, agent=agent, device=device)
    return list_runs(owner_of(reach, folder), asked, limit, json=json)


def runs_show(
    ticket: Annotated[str, Ticket],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Print all of a run: where it is, what it waits for, its arguments and its result."""
    from scenarios.service.runs import show_run

    return show_run(owner_of(reach, folder), ticket, json=json)


def runs_cancel(
    ticket: Annotated[str, Ticket],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Cancel a run as its agent could."""
    from scenarios.service.runs import cancel_run

    return cancel_run(owner_of(reach, folder), ticket, json=json)


def runs_forget(
    ticket: Annotated[str, Ticket],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Delete an ended run with its arguments and its result, before its time."""
    from scenarios.service.runs import forget_run

    return forget_run(owner_of(reach, folder), ticket, json=json)


def audit(
    *,
    everybody: Annotated[bool, switch("As administrator: the books of every owner.")] = False,
    limit: Annotated[int, flag("How many rows, the newest first.")] = 50,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Print who did what, on what, with what outcome and from where; denied reads too."""
    from scenarios.service.runs import show_audit

    return show_audit(owner_of(reach, folder), limit, everybody=everybody, json=json)
