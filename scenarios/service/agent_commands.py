"""The commands of an agent, `pullcord agent`: each one call to a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from scenarios.flags import flag, switch
from scenarios.service.flags import JSON_HELP, NOWHERE, ConfigFile, Flat, ReachFlags, Ticket

if TYPE_CHECKING:
    from scenarios.service.agent import Agent


def agent_list(
    project: Annotated[str, flag("The project.")],
    /,
    *,
    limit: Annotated[int, flag("How many, 1 to 50.")] = 50,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
) -> int:
    """List the sessions that a project shares: id, slug, name."""
    from scenarios.service.agent import list_sessions

    return list_sessions(_agent(reach, config), project, limit, json=json)


def agent_run(
    session: Annotated[str, flag("The session's id, as `agent list` prints it.")],
    /,
    *,
    args: Annotated[
        str | None, flag("The Graph's arguments: a JSON object, or @FILE that holds one.")
    ] = None,
    key: Annotated[
        str | None,
        flag("An idempotency key of your own: with the same key nothing is queued twice. Without "
             "one it is made, and kept until the ticket is there."),
    ] = None,
    wait: Annotated[bool, switch("Wait for the run's end, and print its result.")] = False,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
) -> int:  # fmt: skip
    """Queue a run, and print its ticket. After an error the same command asks for the same run.

    Exit codes: 0 queued or completed, 1 failed, cancelled, expired or interrupted, 2 refused.
    """
    from scenarios.graph_backends import read_arguments
    from scenarios.service.agent import run_session

    arguments = read_arguments(args)
    return run_session(_agent(reach, config), session, arguments, key, wait=wait, json=json)


def agent_get(
    ticket: Annotated[str, Ticket],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
) -> int:
    """Print how a run stands, and its result if it has one.

    Exit codes: 0 it waits, runs or is completed, 1 it ended otherwise, 2 refused.
    """
    from scenarios.service.agent import get_run

    return get_run(_agent(reach, config), ticket, json=json)


def agent_cancel(
    ticket: Annotated[str, Ticket],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
) -> int:
    """Cancel a run: at once while it is queued, else within a few seconds."""
    from scenarios.service.agent import cancel_run

    return cancel_run(_agent(reach, config), ticket, json=json)


def agent_wait(
    ticket: Annotated[str, Ticket],
    /,
    *,
    timeout: Annotated[str | None, flag("How long, as in 90s or 2h; without it for ever.")] = None,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
) -> int:
    """Wait for a run's end, also while the server is away, and print its result.

    Exit codes: 0 completed, 1 failed, cancelled, expired or interrupted, 2 refused or not ended in
    time, 130 Ctrl-C.
    """
    from scenarios.graph_files import refusal
    from scenarios.service.agent import wait_for
    from transports.units import parse_duration

    try:
        limit_s = None if timeout is None else parse_duration(timeout) / 1e6
    except ValueError as error:
        raise refusal("--timeout", str(error)) from None
    return wait_for(_agent(reach, config), ticket, limit_s, json=json)


def _agent(reach: ReachFlags, config: Path | None) -> Agent:
    from scenarios.service.agent import Agent
    from scenarios.service.config import AgentSettings, file_of, resolve
    from scenarios.service.files import home

    return Agent(resolve(AgentSettings, vars(reach), file_of(home() / "agent", config)))
