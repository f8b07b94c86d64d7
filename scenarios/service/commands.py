"""The commands of a deployment: `server`, `desktop`, `agent` and `config`.

As in `scenarios.commands`, each turns its flags into a call, and what it does is imported when it
runs. Every flag that is a setting has a variable and a key in a file too: see docs/deploy.md.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from scenarios.flags import flag, switch

if TYPE_CHECKING:
    from scenarios.service.agent import Agent
    from scenarios.service.owner import Owner

Flat = Parameter(name="*")  # a class's fields are flags of their own
Folder = flag("Its files' folder; by default in PULLCORD_HOME or the user's data.")
ServerFolder = flag("The server's folder on this machine, if it isn't the usual one.")
ConfigFile = flag("A TOML file with these settings; by default config.toml in the folder.")
JSON_HELP = "Print JSON."
Record = switch("Write messages into the log whole, arguments and results too.")
Ticket = flag("A run's ticket.")


@dataclass(frozen=True, kw_only=True)
class ReachFlags:
    """How a server is reached."""

    server: Annotated[str | None, flag("The server, HOST:PORT; or PULLCORD_SERVER.")] = None
    ca: Annotated[str | None, flag("The authorities whose certificates count, a PEM file.")] = None
    fingerprint: Annotated[str | None, flag("The SHA-256 of the one certificate that counts.")] = (
        None
    )
    plain: Annotated[bool | None, switch("Speak without TLS to a server on another machine.")] = (
        None
    )


NOWHERE = ReachFlags()


def server(
    *,
    listen: Annotated[
        str | None, flag("Where it listens, HOST:PORT; by default 127.0.0.1:8700.")
    ] = None,
    store: Annotated[
        str | None, flag("sqlite:PATH, by default in the folder, or postgresql://USER@HOST/DB.")
    ] = None,
    tls_cert: Annotated[str | None, flag("Its certificate and those above it, a PEM file.")] = None,
    tls_key: Annotated[str | None, flag("The certificate's key, a PEM file.")] = None,
    plain: Annotated[
        bool | None, switch("Listen without TLS although other machines can reach it.")
    ] = None,
    http: Annotated[
        str | None, flag("Where its pages and metrics are, HOST:PORT; by default nowhere.")
    ] = None,
    http_url: Annotated[
        str | None, flag("The URL by which browsers elsewhere reach those pages.")
    ] = None,
    record: Annotated[bool | None, Record] = None,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Serve desktops and agents until SIGTERM or Ctrl-C, which let it finish what it has.

    Exit codes: 0 stopped, 2 it can't begin.
    """
    from scenarios.service.config import ServerSettings, file_of, resolve
    from scenarios.service.files import home
    from scenarios.service.server import run_server

    place = folder or home() / "server"
    flags = {
        "listen": listen,
        "store": store,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "plain": plain,
        "http": http,
        "http_url": http_url,
        "record": record,
    }
    resolved = resolve(ServerSettings, flags, file_of(place, config), tables=("server",))
    return run_server(resolved, place)


def desktop_run(
    *,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    record: Annotated[bool | None, Record] = None,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Stay connected to a server, and run what it queues, until SIGTERM or Ctrl-C.

    Exit codes: 0 stopped, 2 it can't begin.
    """
    from scenarios.service.config import DesktopSettings, file_of, resolve
    from scenarios.service.desktop import run_desktop
    from scenarios.service.files import home

    place = folder or home() / "desktop"
    flags = {**vars(reach), "record": record}
    file = file_of(place, config)
    resolved = resolve(DesktopSettings, flags, file, tables=("relay", "engine"))
    return run_desktop(resolved, place)


def desktop_pair(
    code: Annotated[str, flag("The code, as the server's owner sees it by `devices code`.")],
    /,
    *,
    name: Annotated[str | None, flag("What the owner sees; by default the host's name.")] = None,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Make this desktop a device of a server's owner. If the answer is lost, say it again."""
    from scenarios.service.config import DesktopSettings, file_of, resolve
    from scenarios.service.files import home
    from scenarios.service.pairing import pair

    place = folder or home() / "desktop"
    file = file_of(place, config)
    resolved = resolve(DesktopSettings, vars(reach), file, tables=("relay", "engine"))
    return pair(code, name, resolved.settings, resolved.origins, place)


def link(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Print a link that signs you in, once, to the pages of a server with --http."""
    from scenarios.service.owner import show_link

    return show_link(_owner(reach, folder), json=json)


def devices_code(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """Print a code that pairs one desktop, once, within ten minutes."""
    from scenarios.service.owner import show_code

    return show_code(_owner(reach, folder), json=json)


def devices_list(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the paired desktops: id, name, last sync, open runs."""
    from scenarios.service.owner import list_devices

    return list_devices(_owner(reach, folder), json=json)


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

    return revoke(_owner(reach, folder), device, json=json)


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

    return add_agent(_owner(reach, folder), name, json=json)


def agents_list(
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    reach: Annotated[ReachFlags, Flat] = NOWHERE,
    folder: Annotated[Path | None, ServerFolder] = None,
) -> int:
    """List the agents: id, name, last seen, open runs, scopes."""
    from scenarios.service.owner import list_agents

    return list_agents(_owner(reach, folder), json=json)


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

    return revoke(_owner(reach, folder), agent, json=json)


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


def config_show(
    part: Annotated[Literal["server", "desktop", "agent"], flag("Whose settings.")],
    /,
    *,
    json: Annotated[bool, switch(JSON_HELP)] = False,
    config: Annotated[Path | None, ConfigFile] = None,
    folder: Annotated[Path | None, Folder] = None,
) -> int:
    """Print every setting, its value, and where that was said: a variable, a file's line, default.

    Flags go over both; they are not known here.
    """
    from scenarios.service.config import KINDS, file_of, resolve, rows
    from scenarios.service.files import home

    kind, tables = KINDS[part]
    resolved: Any = resolve(kind, {}, file_of(folder or home() / part, config), tables=tables)
    found = list(rows(resolved))
    if json:
        from scenarios.json_text import indented

        named = ({"key": key, "value": value, "from": origin} for key, value, origin in found)
        sys.stdout.write(indented(list(named)))
        return 0
    widths = [max(len(row[at]) for row in found) for at in (0, 1)]
    for key, value, origin in found:
        sys.stdout.write(f"{key:{widths[0]}}  {value:{widths[1]}}  {origin}\n")
    return 0


def _agent(reach: ReachFlags, config: Path | None) -> Agent:
    from scenarios.service.agent import Agent
    from scenarios.service.config import AgentSettings, file_of, resolve
    from scenarios.service.files import home

    return Agent(resolve(AgentSettings, vars(reach), file_of(home() / "agent", config)))


def _owner(reach: ReachFlags, folder: Path | None) -> Owner:
    from scenarios.service.config import AgentSettings, resolve
    from scenarios.service.files import home
    from scenarios.service.owner import Owner
    from scenarios.service.server import SOCKET

    # A variable that an agent is called with must not lead an owner past the own machine.
    environ = os.environ if reach.server else {}
    socket = (folder or home() / "server").resolve() / SOCKET
    return Owner(resolve(AgentSettings, vars(reach), None, environ=environ), socket)
