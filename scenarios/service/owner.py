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
    Agents,
    Audit,
    Changed,
    Devices,
    ListAgents,
    ListDevices,
    NewPairingCode,
    RevokeAgent,
    RevokeDevice,
    RunExplained,
    Runs,
    RunShown,
)
from actors.edges.door import MakeLink, PairingCode, PrincipalToken, SignInLink
from scenarios.graph_files import refusal
from scenarios.json_text import indented
from scenarios.service.client import BOOT, LocalCaller, hello_with, plain
from scenarios.service.config import AgentSettings, Resolved
from scenarios.service.process import say
from scenarios.service.reach import reach_of
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
    say(f"pullcord desktop pair {told.code} --server HOST:PORT")
    return 0


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
    for one in found:
        state = "revoked" if one.revoked else f"synced {ago(one.synced_ago_us)}"
        warning = "  A COPY OF ITS TOKEN WAS USED" if one.reused else ""
        sys.stdout.write(f"{one.device}  {one.name}  {state}, {one.open_runs} open{warning}\n")
    if not found:
        say("no device is paired: pullcord devices pair")
    return 0


def list_agents(owner: Owner, *, json: bool) -> int:
    """Print the agents."""
    found = _pages(owner, ListAgents(), "agents")
    if json:
        sys.stdout.write(indented([plain(one) for one in found]))
        return 0
    for one in found:
        state = "revoked" if one.revoked else f"seen {ago(one.seen_ago_us)}"
        scopes = " ".join(one.scopes)
        sys.stdout.write(f"{one.principal}  {one.name}  {state}, {one.open_runs} open  {scopes}\n")
    if not found:
        say("there is no agent: pullcord agents add NAME")
    return 0


def add_agent(owner: Owner, name: str, *, json: bool) -> int:
    """Add an agent, and print its token: this once."""
    told: PrincipalToken = owner.ask(AddAgent(name=name))
    if json:
        sys.stdout.write(indented(plain(told)))
        return 0
    sys.stdout.write(f"{told.token}\n")
    say(f"this is the token of {told.name} ({told.principal}); the server keeps only its hash")
    say("the agent needs it as PULLCORD_TOKEN, and PULLCORD_SERVER")
    return 0


def revoke(owner: Owner, principal: str, *, json: bool) -> int:
    """Remove a device or an agent."""
    device = principal.startswith("dev_")
    told: Changed = owner.ask(
        RevokeDevice(device=principal) if device else RevokeAgent(agent=principal)
    )
    if json:
        sys.stdout.write(indented(plain(told)))
    else:
        say(f"{told.subject} is removed: its tokens have ended")
    return 0


def _pages(owner: Owner, body: ListDevices | ListAgents, field: str) -> list[Any]:
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
