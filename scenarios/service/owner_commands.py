"""The commands of a server's owner: `devices`, `agents` and `link`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from scenarios.flags import flag, switch
from scenarios.service.flags import JSON_HELP, NOWHERE, Flat, ReachFlags, ServerFolder

if TYPE_CHECKING:
    from scenarios.service.owner import Owner


def link(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Print a link that signs you in, once, to the pages of a server with --http."""
    from scenarios.service.owner import show_link

    return show_link(owner_of(reach, folder), json=json)


def devices_pair(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Print a code that pairs one desktop, once, within ten minutes."""
    from scenarios.service.owner import show_code

    return show_code(owner_of(reach, folder), json=json)


def devices_list(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the paired desktops: id, name, last sync, open runs."""
    from scenarios.service.owner import list_devices

    return list_devices(owner_of(reach, folder), json=json)


def devices_revoke(
    device: Annotated[str, flag("Its id, as `devices list` prints it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Remove a desktop: its connections and its token end at once."""
    from scenarios.service.owner import revoke

    return revoke(owner_of(reach, folder), device, json=json)


def agents_add(
    name: Annotated[str, flag("What you call it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Add an agent, and print its token: this once."""
    from scenarios.service.owner import add_agent

    return add_agent(owner_of(reach, folder), name, json=json)


def agents_list(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the agents: id, name, last seen, open runs, scopes."""
    from scenarios.service.owner import list_agents

    return list_agents(owner_of(reach, folder), json=json)


def agents_revoke(
    agent: Annotated[str, flag("Its id, as `agents list` prints it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Remove an agent: its token ends at once, and so does what it queued."""
    from scenarios.service.owner import revoke

    return revoke(owner_of(reach, folder), agent, json=json)


def devices_limit(
    device: Annotated[str, flag("Its id, as `devices list` prints it.")],
    runs: Annotated[int | None, flag("How many; without it the server's default.")] = None,
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Say how many runs for a desktop may be open; more are refused."""
    from scenarios.service.owner import limit

    return limit(owner_of(reach, folder), device, runs, json=json)


def agents_renew(
    agent: Annotated[str, flag("Its id, as `agents list` prints it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Give an agent a new token, and print it: this once. The old one ends at once."""
    from scenarios.service.owner import renew

    return renew(owner_of(reach, folder), agent, json=json)


def agents_limit(
    agent: Annotated[str, flag("Its id, as `agents list` prints it.")],
    runs: Annotated[int | None, flag("How many; without it the server's default.")] = None,
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Say how many runs of an agent may be open; more are refused."""
    from scenarios.service.owner import limit

    return limit(owner_of(reach, folder), agent, runs, json=json)


def owners_add(
    name: Annotated[str, flag("What you call it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Add an owner with agents and desktops of its own, and print its token: this once."""
    from scenarios.service.owner import add_owner

    return add_owner(owner_of(reach, folder), name, json=json)


def owners_list(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the owners: id, name, last seen."""
    from scenarios.service.owner import list_owners

    return list_owners(owner_of(reach, folder), json=json)


def owners_renew(
    owner: Annotated[str, flag("Its id, as `owners list` prints it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Give yourself a new token, and print it: this once. The old one ends at once."""
    from scenarios.service.owner import renew

    return renew(owner_of(reach, folder), owner, json=json)


def owners_revoke(
    owner: Annotated[str, flag("Its id, as `owners list` prints it.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Remove an owner, with its agents and desktops."""
    from scenarios.service.owner import revoke

    return revoke(owner_of(reach, folder), owner, json=json)


def owner_of(reach: ReachFlags, folder: Path | None) -> Owner:
    """Return the owner who asks: over the local socket, or with a token where a server is named."""
    from scenarios.service.config import AgentSettings, resolve
    from scenarios.service.files import home
    from scenarios.service.owner import Owner
    from scenarios.service.server import SOCKET

    # A variable that an agent is called with must not lead an owner past the own machine.
    environ = os.environ if reach.server else {}
    socket = (folder or home() / "server").resolve() / SOCKET
    return Owner(resolve(AgentSettings, vars(reach), None, environ=environ), socket)
