"""The tools of a run, made from its owner's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import trio
from msgspec import Struct

from actors.edges.tools.files import ListFiles, ReadFile
from actors.edges.tools.servers import (
    Connection,
    McpTool,
    Server,
    ServerError,
    mcp_is_installed,
    tools_of,
)
from actors.edges.tools.shell import ShellCommand
from actors.edges.tools.tool import Tool, ToolSpec
from actors.edges.tools.web import HttpGet
from scenarios.graph_files import refusal
from scenarios.tool_settings import ToolSettings

EXTRA: Final = "pip install 'pullcord[tools]'"
GRACE_S: Final = 5.0  # over the longest of its tools, until an engine gives a call up


class Toolbox(Struct, frozen=True, kw_only=True):
    """The tools that there are, and the connections that they share."""

    tools: tuple[Tool, ...] = ()
    connections: tuple[Connection, ...] = ()

    @property
    def catalogue(self) -> Mapping[str, ToolSpec]:
        """What models are told of them, by name."""
        return {tool.spec.name: tool.spec for tool in self.tools}


def make_tools(settings: ToolSettings) -> Toolbox:
    """Return the tools of the settings; ScenarioError if a server does not say which it has.

    KeyboardInterrupt when it was interrupted meanwhile: no server is left.
    """
    tools: list[Tool] = []
    if settings.folders is not None:
        tools += [ReadFile(settings.folders), ListFiles(settings.folders)]
    if settings.hosts:
        tools.append(HttpGet(settings.hosts))
    tools += map(ShellCommand, settings.commands)
    if not settings.servers:
        return Toolbox(tools=tuple(tools))
    if not mcp_is_installed():
        raise refusal(settings.path, "tools of MCP servers need their client", EXTRA)
    connections = [Connection(server) for server in settings.servers]
    found = _asked(settings)
    for connection, listed in zip(connections, found, strict=True):
        tools += [McpTool(connection, name, spec) for name, spec in listed]
    return Toolbox(tools=tuple(tools), connections=tuple(connections))


def _asked(settings: ToolSettings) -> list[list[tuple[str, ToolSpec]]]:
    """Ask every server for its tools, and end it again."""
    try:
        return trio.run(_listed, settings, restrict_keyboard_interrupt_to_checkpoints=True)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise


async def _listed(settings: ToolSettings) -> list[list[tuple[str, ToolSpec]]]:
    """Return the tools of every server, all asked at once."""
    found: list[list[tuple[str, ToolSpec]]] = [[] for _ in settings.servers]
    failures: dict[int, ServerError] = {}

    async def one(place: int, server: Server) -> None:
        try:
            found[place] = await tools_of(server)
        except ServerError as error:
            failures[place] = error

    async with trio.open_nursery() as nursery:
        for place, server in enumerate(settings.servers):
            nursery.start_soon(one, place, server)
    for place in sorted(failures):
        name = settings.servers[place].name
        raise refusal(f"{settings.path}: [mcp.{name}]", str(failures[place]))
    return found


def engine_fields(settings: ToolSettings, toolbox: Toolbox) -> dict[str, Any]:
    """Return what an engine's config has of the settings."""
    longest_s = max((tool.limit_s for tool in toolbox.tools), default=1.0)
    return {
        "permissions": settings.permissions,
        "approval_timeout": f"{int(settings.approval_timeout_us)}us",
        "tool_timeout": f"{round(longest_s + GRACE_S)}s",
    }
