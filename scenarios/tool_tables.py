"""The tables of the owner's settings of tools, and what each of their keys means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from transports.units import Duration

_MINUTE: Final = Duration(60_000_000)


class ReadFileTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[read_file]`: the tools read_file and list_files."""

    folders: Annotated[dict[str, str], "the folders that agents may read, by the names they use"]
    hidden: Annotated[bool, "whether files count whose names begin with a dot"] = False


class HttpGetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[http_get]`: the tool http_get."""

    hosts: Annotated[
        tuple[str, ...], "hosts that may be asked: docs.example.org, *.example.org, http://host"
    ] = ()
    private_hosts: Annotated[
        tuple[str, ...], "the same, for hosts that are not of the public Internet"
    ] = ()


class ShellTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[shell.NAME]`: the tool shell__NAME."""

    command: Annotated[tuple[str, ...], "its words; in {braces} what an agent fills in"]
    description: Annotated[str, "what agents are told of it"]
    patterns: Annotated[
        dict[str, str], "for a place in braces the pattern that its whole value must match"
    ] = msgspec.field(default_factory=dict)
    dashes: Annotated[tuple[str, ...], 'the places whose values may begin with "-"'] = ()
    folder: Annotated[str, "the folder that it runs in"] = "."
    env: Annotated[tuple[str, ...], "variables that it gets besides PATH, HOME and LANG"] = ()
    timeout: Annotated[Duration, "how long it may take"] = _MINUTE


class McpTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[mcp.NAME]`: the tools mcp__NAME__TOOL of an MCP server."""

    tools: Annotated[tuple[str, ...], 'the tools that may be used, or "*" for all that it has']
    command: Annotated[tuple[str, ...], "the words of the command that starts the server"] = ()
    url: Annotated[str | None, "the URL of a server that runs already"] = None
    folder: Annotated[str, "the folder that a command runs in"] = "."
    env: Annotated[tuple[str, ...], "variables that a command gets besides the usual ones"] = ()
    headers: Annotated[
        dict[str, str], "for a header of requests to a URL the variable that holds its value"
    ] = msgspec.field(default_factory=dict)
    timeout: Annotated[Duration, "how long a call may take"] = _MINUTE


class ApprovalsTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[approvals]`: how calls wait for their owner."""

    timeout: Annotated[Duration, "how long a call waits; then it is denied"] = Duration(900_000_000)


TABLES: Final[Mapping[str, tuple[type[msgspec.Struct], str]]] = {
    "read_file": (ReadFileTable, "the tools read_file and list_files"),
    "http_get": (HttpGetTable, "the tool http_get"),
    "shell.NAME": (ShellTable, "the tool shell__NAME, a command"),
    "mcp.NAME": (McpTable, "the tools mcp__NAME__TOOL of an MCP server"),
    "approvals": (ApprovalsTable, "how calls wait for their owner"),
}
