"""The commands of a desktop's owner: `pullcord desktop sessions`, `share` and so on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from scenarios.flags import flag, switch
from scenarios.service.flags import JSON_HELP, DesktopFolder

if TYPE_CHECKING:
    from scenarios.service.desk import Desk

SessionArgument = flag("A session's id, slug or name, as `desktop sessions` prints them.")
WATCH_S = 1.0  # between two looks


def desktop_sessions(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """List this desktop's sessions: id, slug, project, whether agents may see it."""
    from scenarios.service.desk import show_sessions

    return show_sessions(_desk(folder), json=json)


def desktop_share(
    target: Annotated[
        str, flag("A session that is there; with --project a Graph: FILE.js, NAME, @graphs/NAME.")
    ],
    /,
    *,
    project: Annotated[
        str | None, flag("Add the Graph as a session of this project, as it is now.")
    ] = None,
    name: Annotated[str | None, flag("The new session's name; by default the Graph's.")] = None,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Let agents run a session; print its id. A later edit of the Graph's file changes nothing."""
    from scenarios.service.desk import share

    return share(_desk(folder), target, project, name, json=json)


def desktop_unshare(
    session: Annotated[str, SessionArgument],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Let agents run a session no more: what is queued for it is cancelled."""
    from scenarios.service.desk import unshare

    return unshare(_desk(folder), session, json=json)


def desktop_remove(
    session: Annotated[str, SessionArgument],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Remove a session and its Graph: agents can't run it any more. Its history stays."""
    from scenarios.service.desk import remove

    return remove(_desk(folder), session, json=json)


def desktop_rename(
    session: Annotated[str, SessionArgument],
    name: Annotated[str, flag("Its new name.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Give a session another name, and another slug with it."""
    from scenarios.service.desk import rename

    return rename(_desk(folder), session, name, json=json)


def desktop_enable(
    project: Annotated[str, flag("The project.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Let agents of a project run its shared sessions here again."""
    from scenarios.service.desk import enable

    return enable(_desk(folder), project, enabled=True, json=json)


def desktop_disable(
    project: Annotated[str, flag("The project.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Let no session of a project be run here, shared or not."""
    from scenarios.service.desk import enable

    return enable(_desk(folder), project, enabled=False, json=json)


def desktop_history(
    run: Annotated[str | None, flag("One run's ticket or execution: all of it, as JSON.")] = None,
    /,
    *,
    limit: Annotated[int, flag("How many runs, the latest first.")] = 50,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """List what ran on this desktop: when it ended, ticket, session, status, tokens."""
    from scenarios.service.desk import show_history

    return show_history(_desk(folder), run, limit, json=json)


def desktop_outbox(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """List the results that the server has not accepted yet."""
    from scenarios.service.desk import show_outbox

    return show_outbox(_desk(folder), json=json)


def desktop_approvals(
    decision: Annotated[
        Literal["allow", "deny"] | None,
        flag("What you decide of a call; without it, see what waits."),
    ] = None,
    run: Annotated[str | None, flag("The call's run.")] = None,
    call: Annotated[int | None, flag("The call's number in that run.")] = None,
    /,
    *,
    watch: Annotated[bool, switch("Print each call as it comes, until Ctrl-C.")] = False,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """List the tool calls that wait for you; or allow or deny one.

    A call that nobody decides is denied once its time is up.
    """
    from scenarios.service import approvals

    desk = _desk(folder)
    if decision is None:
        show = approvals.watch_approvals if watch else approvals.show_approvals
        return show(desk, json=json)
    if run is None or call is None:
        from scenarios.graph_files import refusal

        cure = "as `pullcord desktop approvals` prints them"
        raise refusal(decision, "it goes with a run and a call's number", cure)
    return approvals.decide(desk, run, call, allow=decision == "allow", json=json)


def desktop_status(
    *,
    watch: Annotated[bool, switch("Print it again every second, until Ctrl-C.")] = False,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    folder: Annotated[Path | None, DesktopFolder] = None,
) -> int:
    """Print how this desktop stands: last sync, runs, outbox, disk."""
    from scenarios.service.desk import show_status

    desk = _desk(folder)
    while True:
        code = show_status(desk, json=json)
        if not watch:
            return code
        time.sleep(WATCH_S)


def _desk(folder: Path | None) -> Desk:
    from scenarios.service.desk import Desk
    from scenarios.service.desktop import SOCKET
    from scenarios.service.files import home

    return Desk((folder or home() / "desktop").resolve() / SOCKET)
