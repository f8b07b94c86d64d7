"""An owner's commands: pairing codes, devices, agents and their tokens.

They speak to the server of this machine over its local socket; from another machine with the
server's address and an owner's token.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from actors.accounts.messages import (
    AddAgent,
    AddOwner,
    Agents,
    Audit,
    Changed,
    Devices,
    ListAgents,
    ListDevices,
    ListOwners,
    NewPairingCode,
    RenewToken,
    RevokeAgent,
    RevokeDevice,
    RevokeOwner,
    RunExplained,
    Runs,
    RunShown,
    SetOpenLimit,
)
from actors.edges.door import MakeLink, PairingCode, PrincipalToken, SignInLink
from scenarios.graph_files import refusal
from scenarios.json_text import indented
from scenarios.service.client import BOOT, LocalCaller, hello_with, plain
from scenarios.service.config import AgentSettings, Resolved
from scenarios.service.listing import print_rows
from scenarios.service.process import say
from scenarios.service.reach import SHA256, reach_of
from transports.handshake import Hello
from transports.tcp import connect_unix
from transports.units import Duration

NO_SERVER: Final = "start it there: pullcord server; or give --server and an owner's token"


class Owner(LocalCaller):
    """Who asks, and over which way."""

    heard = (
        Agents, Changed, Devices, PairingCode, PrincipalToken, SignInLink,
        Runs, RunShown, RunExplained, Audit,
    )  # fmt: skip
    absent = ("no server runs here", NO_SERVER)
    refused = "is this an owner's token?"

    def __init__(self, resolved: Resolved[AgentSettings], socket: Path) -> None:
        settings, origins = resolved.settings, resolved.origins
        if not settings.server:
            hello = Hello(name="owner", boot=BOOT)
            super().__init__(str(socket), partial(connect_unix, socket), hello)
            return
        reach = reach_of(settings, origins)
        if not settings.token:
            raise refusal("PULLCORD_TOKEN", "which owner asks?", "set it to an owner's token")
        hello = hello_with(settings.token, "owner", origins["token"])
        super().__init__(str(reach.address), reach.connect, hello, local=False)


def show_code(owner: Owner, *, json: bool) -> int:
    """Print a pairing code."""
    told: PairingCode = owner.ask(NewPairingCode())
    if json:
        sys.stdout.write(indented(plain(told)))
        return 0
    sys.stdout.write(f"{told.code}\n")
    say(f"good once, within {Duration(told.expires_in_us)}; on the desktop:")
    say(pair_command(told))
    return 0


def pair_command(told: PairingCode) -> str:
    """Return what is to be typed on the desktop."""
    command = f"pullcord desktop pair {told.code} --server HOST:PORT"
    return f"{command} --fingerprint {SHA256}{told.fingerprint}" if told.fingerprint else command


def show_link(owner: Owner, *, json: bool) -> int:
    """Print a link that signs the owner in to the server's pages."""
    told: SignInLink = owner.ask(MakeLink())
    if json:
        sys.stdout.write(indented(plain(told)))
        return 0
    sys.stdout.write(f"{told.url}\n")
    say(f"good once, within {Duration(told.expires_in_us)}")
    return 0


def list_devices(owner: Owner, *, json: bool) -> int:
    """Print the devices."""
    found = _pages(owner, ListDevices(), "devices")
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = []
    for one in found:
        state = "revoked" if one.revoked else f"synced {ago(one.synced_ago_us)}"
        warning = "A COPY OF ITS TOKEN WAS USED" if one.reused else ""
        rows.append((one.device, one.name, f"{state}, {one.open_runs} open", warning))
    print_rows(("desktop", "name", "state", ""), rows)
    if not found:
        say("no device is paired: pullcord devices pair")
    return 0


def list_agents(owner: Owner, *, json: bool) -> int:
    """Print the agents."""
    return _list(_pages(owner, ListAgents(), "agents"), "agent", json=json)


def list_owners(owner: Owner, *, json: bool) -> int:
    """Print every owner, to the administrator."""
    return _list(_pages(owner, ListOwners(), "agents"), "owner", json=json)


def _list(found: list[Any], kind: str, *, json: bool) -> int:
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    rows = []
    for one in found:
        state = "revoked" if one.revoked else f"seen {ago(one.seen_ago_us)}"
        scopes = ""
        if kind == "agent":
            state += f", {one.open_runs} of {one.open_limit} open"
            scopes = " ".join(one.scopes)
        rows.append((one.principal, one.name, state, scopes))
    print_rows((kind, "name", "state", "scopes" if kind == "agent" else ""), rows)
    if not found:
        say(f"there is no {kind}: pullcord {kind}s add NAME")
    return 0


def add_agent(owner: Owner, name: str, *, json: bool) -> int:
    """Add an agent, and print its token: this once."""
    return _give(owner.ask(AddAgent(name=name)), json=json)


def add_owner(owner: Owner, name: str, *, json: bool) -> int:
    """Add an owner, and print its token: this once."""
    return _give(owner.ask(AddOwner(name=name)), json=json)


def renew(owner: Owner, principal: str, *, json: bool) -> int:
    """Give an agent, or the owner itself, a new token, and print it; the old one has ended."""
    return _give(owner.ask(RenewToken(principal=principal)), json=json)


def _give(told: PrincipalToken, *, json: bool) -> int:
    if json:
        sys.stdout.write(indented(plain(told)))
        return 0
    sys.stdout.write(f"{told.token}\n")
    say(f"this is the token of {told.name} ({told.principal}); the server keeps only its hash")
    if told.principal.startswith("own_"):
        say("the owner needs it as PULLCORD_TOKEN, and --server HOST:PORT with each command")
    else:
        say("the agent needs it as PULLCORD_TOKEN, and PULLCORD_SERVER")
    return 0


def revoke(owner: Owner, principal: str, *, json: bool) -> int:
    """Remove a device, an agent or an owner."""
    body: RevokeDevice | RevokeOwner | RevokeAgent = RevokeAgent(agent=principal)
    if principal.startswith("dev_"):
        body = RevokeDevice(device=principal)
    elif principal.startswith("own_"):
        body = RevokeOwner(owner=principal)
    told: Changed = owner.ask(body)
    if json:
        sys.stdout.write(indented(plain(told)))
    else:
        say(f"{told.subject} is removed: its tokens have ended")
    return 0


def limit(owner: Owner, principal: str, runs: int | None, *, json: bool) -> int:
    """Say how many open runs a device or an agent may have; None is the server's default."""
    if runs is not None and runs < 1:
        cure = "remove it if it shall have none"
        raise refusal("RUNS", "at least 1 run can be open", cure)
    told: Changed = owner.ask(SetOpenLimit(principal=principal, open_limit=runs))
    if json:
        sys.stdout.write(indented(plain(told)))
    else:
        most = "as many open runs as the server's default says"
        if runs is not None:
            most = "1 open run" if runs == 1 else f"{runs} open runs"
        say(f"{told.subject} may have {most}")
    return 0


def _pages(owner: Owner, body: ListDevices | ListAgents | ListOwners, field: str) -> list[Any]:
    """Return the rows of every page."""
    rows: list[Any] = []
    while True:
        page = owner.ask(body)
        rows += getattr(page, field)
        if not page.cursor:
            return rows
        body = msgspec.structs.replace(body, cursor=page.cursor)


def ago(age_us: int | None) -> str:
    """Return how long ago something was, in whole seconds."""
    if age_us is None:
        return "never"
    return f"{Duration(age_us // 1_000_000 * 1_000_000)} ago"
