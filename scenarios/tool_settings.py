"""The owner's settings of tools: a file that says which there are, and which Graph may use them.

    [read_file]
    folders = { docs = "docs" }

    [graphs."*"]
    read_file = "allow"

Nothing is on that this file does not turn on, and it is read only where its owner names it: a Graph
brings no rights with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from actors.edges.tools.files import Folders
from actors.edges.tools.servers import ANY, Server
from actors.edges.tools.servers import PREFIX as MCP
from actors.edges.tools.shell import PREFIX as SHELL
from actors.edges.tools.shell import Command, CommandError, schema_of
from actors.edges.tools.tool import NAME
from actors.edges.tools.web import Host, HostError
from actors.graphs.permissions import EVERY, Permission
from actors.graphs.schemas import SchemaError, problem_of
from scenarios.decode import Decoder
from scenarios.graph_files import PREFIX, SHIPPED
from scenarios.places import Keys
from scenarios.problems import listed, quote, suggest
from scenarios.source import Source, read_source
from scenarios.tool_tables import ApprovalsTable, HttpGetTable, McpTable, ReadFileTable, ShellTable

FILES: Final = ("read_file", "list_files")
WEB: Final = "http_get"
SECTIONS: Final = ("read_file", "http_get", "shell", "mcp", "approvals", "graphs")
NOT_TO_READ: Final = tuple(map(Path, ("/proc", "/sys", "/dev")))
_NAME: Final = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")  # never "__", which parts names
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a file of settings turns on, checked."""

    path: str
    folders: Folders | None
    hosts: tuple[Host, ...]
    commands: tuple[Command, ...]
    servers: tuple[Server, ...]
    permissions: dict[str, dict[str, Permission]]
    approval_timeout_us: int

    def names(self) -> list[str]:
        """Return the tools that there are, as far as their names are known without a server."""
        found = [*FILES] if self.folders is not None else []
        found += [WEB] if self.hosts else []
        found += [SHELL + command.name for command in self.commands]
        for server in self.servers:
            found += [server.tool_name(tool) for tool in server.tools if tool != ANY]
        return found

    def may_have(self, tool: str) -> bool:
        """Whether there is a tool, or a server that may have it."""
        return tool in self.names() or any(
            ANY in server.tools and tool.startswith(server.tool_name("")) for server in self.servers
        )


def load_tools(path: Path) -> ToolSettings:
    """Read a file of settings, or a shipped one as @graphs/NAME.toml.

    ScenarioError with all that is wrong with it.
    """
    if path.parts[:1] == (PREFIX.rstrip("/"),):
        path = SHIPPED.joinpath(*path.parts[1:])
    return _Loader(read_source(path)).load()


class _Loader:
    """Decodes one file, and goes on after a problem to find the others."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.decoder = Decoder(source)
        self.here = Path(source.path).resolve().parent

    def load(self) -> ToolSettings:
        """Return the settings, or raise ScenarioError."""
        for key in self.source.data:
            if key not in SECTIONS:
                near = suggest(key, SECTIONS)
                cure = f"there is {listed(SECTIONS, last='and')}"
                cure = f"did you mean {quote(near)}?" if near else cure
                self.decoder.problem((key,), f"unknown key {quote(key)}", of="key", cure=cure)
        approvals = self.table("approvals", ApprovalsTable) or ApprovalsTable()
        if not approvals.timeout:
            self.decoder.problem(("approvals", "timeout"), "a call must be able to wait")
        settings = ToolSettings(
            path=self.source.path,
            folders=self.folders(),
            hosts=tuple(self.hosts()),
            commands=tuple(self.commands()),
            servers=tuple(self.servers()),
            permissions=self.permissions(),
            approval_timeout_us=approvals.timeout,
        )
        if not self.decoder.problems:
            self.check_permissions(settings)
        self.decoder.finish()
        return settings

    def table(self, name: str, kind: type[Any]) -> Any:
        """Return a table of the file, None if there is none or it is not right."""
        if name not in self.source.data:
            return None
        return self.decoder.struct((name,), self.source.data[name], kind)

    def named(self, section: str, kind: type[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the tables below a section, by name."""
        tables = self.source.data.get(section, {})
        if not isinstance(tables, dict):
            self.decoder.problem((section,), f"write [{section}.NAME]")
            return
        for name, data in tables.items():
            if not _NAME.fullmatch(name):
                cure = "take letters, digits, - and _, no two of them together"
                message = f"{quote(name)} can't be a name here"
                self.decoder.problem((section, name), message, of="key", cure=cure)
            elif (table := self.decoder.struct((section, name), data, kind)) is not None:
                yield name, table

    # Tools

    def folders(self) -> Folders | None:
        """Return the folders that agents may read."""
        table = self.table("read_file", ReadFileTable)
        if table is None:
            return None
        found = {}
        for name, text in table.folders.items():
            path: Keys = ("read_file", "folders", name)
            if not _NAME.fullmatch(name):
                self.decoder.problem(path, f"{quote(name)} can't be a folder's name", of="key")
            elif (folder := self.folder(path, text)) is not None:
                if any(folder.is_relative_to(one) for one in NOT_TO_READ):
                    self.decoder.problem(path, "this is the machine's own, and no folder of files")
                found[name] = folder
        if not table.folders:
            self.decoder.problem(("read_file", "folders"), "name at least one folder")
        return Folders(found, hidden=table.hidden)

    def folder(self, path: Keys, text: str) -> Path | None:
        """Return a folder of the settings, which lies beside them if it is not absolute."""
        folder = (self.here / Path(text).expanduser()).resolve()
        if not folder.is_dir():
            self.decoder.problem(path, f"there is no folder {quote(str(folder), limit_chars=60)}")
            return None
        return folder

    def hosts(self) -> Iterator[Host]:
        """Yield the hosts that agents may ask."""
        table = self.table("http_get", HttpGetTable)
        if table is None:
            return
        if not table.hosts and not table.private_hosts:
            self.decoder.problem(("http_get",), "[http_get] names no host", cure="give it hosts")
        for key, entries, private in (
            ("hosts", table.hosts, False),
            ("private_hosts", table.private_hosts, True),
        ):
            for place, text in enumerate(entries):
                try:
                    yield Host.parse(text, private=private)
                except HostError as error:
                    message = f"{quote(text)} is no host"
                    self.decoder.problem(("http_get", key, place), message, cure=str(error))

    def commands(self) -> Iterator[Command]:
        """Yield the commands that agents may run."""
        for name, table in self.named("shell", ShellTable):
            path: Keys = ("shell", name)
            folder = self.folder((*path, "folder"), table.folder)
            self.check_variables((*path, "env"), table.env)
            self.check_timeout(path, table.timeout)
            self.check_length(path, SHELL + name)
            if folder is None or not self.check_program((*path, "command"), table.command, folder):
                continue
            try:
                command = Command(
                    name=name,
                    words=table.command,
                    description=table.description,
                    folder=folder,
                    patterns=table.patterns,
                    dashes=table.dashes,
                    environment=table.env,
                    limit_s=table.timeout / 1e6,
                )
                for pattern in table.patterns.values():
                    problem_of({"pattern": pattern}, "")  # alone: it must not close our brackets
                problem_of(schema_of(command), {})
            except CommandError as error:
                self.decoder.problem((*path, "command"), str(error))
            except SchemaError as error:
                self.decoder.problem((*path, "patterns"), str(error))
            else:
                yield command

    def servers(self) -> Iterator[Server]:
        """Yield the MCP servers whose tools agents may use."""
        for name, table in self.named("mcp", McpTable):
            path: Keys = ("mcp", name)
            self.check_variables((*path, "env"), table.env)
            self.check_timeout(path, table.timeout)
            for header, variable in table.headers.items():
                self.check_variables((*path, "headers", header), (variable,))
            if bool(table.command) == (table.url is not None):
                message = "a server has either a command or a URL"
                self.decoder.problem(path, message, cure='as in command = ["my-server"]')
                continue
            if table.url is not None and not table.url.startswith(("https://", "http://")):
                self.decoder.problem((*path, "url"), "a URL begins with https:// or http://")
            if not table.tools:
                cure = 'name them, or all with tools = ["*"]'
                self.decoder.problem((*path, "tools"), "it has no tool that may be used", cure=cure)
            folder = self.folder((*path, "folder"), table.folder)
            if folder is None or (
                table.command and not self.check_program((*path, "command"), table.command, folder)
            ):
                continue
            server = Server(
                name=name,
                words=table.command,
                url=table.url,
                tools=table.tools,
                folder=folder,
                environment=table.env,
                headers=table.headers,
                limit_s=table.timeout / 1e6,
            )
            for tool in table.tools:
                self.check_length((*path, "tools"), server.tool_name(tool))
            yield server

    def check_program(self, path: Keys, words: tuple[str, ...], folder: Path) -> bool:
        """Whether a command's program is there; one with a slash lies below its folder."""
        if not words or not words[0]:
            self.decoder.problem(path, "a command has at least one word: its program")
            return False
        program = words[0]
        where = str(folder / program) if "/" in program else program
        if "{" not in program and shutil.which(where) is None:
            self.decoder.problem(path, f"there is no program {quote(program)}")
            return False
        return True

    def check_variables(self, path: Keys, names: tuple[str, ...]) -> None:
        """Note names that no variable has; what they hold stands in the environment alone."""
        for name in names:
            if not _VARIABLE.fullmatch(name):
                message = f"{quote(name)} can't be a variable's name"
                cure = "name the variable: its value stands in your environment"
                self.decoder.problem(path, message, cure=cure)

    def check_timeout(self, path: Keys, timeout_us: int) -> None:
        """Note a time in which nothing can happen."""
        if not timeout_us:
            self.decoder.problem((*path, "timeout"), "timeout must be longer than 0s")

    def check_length(self, path: Keys, tool: str) -> None:
        """Note a name that model servers don't take."""
        if tool != tool.rstrip("*") or NAME.fullmatch(tool):
            return
        self.decoder.problem(path, f"the tool would be {tool}: a name has 64 characters at most")

    # Permissions

    def permissions(self) -> dict[str, dict[str, Permission]]:
        """Return what each Graph may do, by tool."""
        tables = self.source.data.get("graphs", {})
        kind = dict[str, dict[str, Permission]]
        found = self.decoder.value(("graphs",), tables, kind)
        return found or {}

    def check_permissions(self, settings: ToolSettings) -> None:
        """Note what is allowed of tools that there are not: it would never mean anything."""
        known = settings.names()
        for graph, tools in settings.permissions.items():
            for tool in tools:
                if tool.endswith(EVERY):
                    prefix = tool[:-1]
                    if any(one.startswith(prefix) for one in known) or any(
                        one.tool_name("").startswith(prefix) for one in settings.servers
                    ):
                        continue
                elif settings.may_have(tool):
                    continue
                near = suggest(tool, known)
                cure = f"did you mean {quote(near)}?" if near else _cure(tool, known)
                message = f"no tool {quote(tool)} is set up here"
                self.decoder.problem(("graphs", graph, tool), message, of="key", cure=cure)


def _cure(tool: str, known: list[str]) -> str:
    """Return what to do about a tool that is not set up."""
    section = {"read_file": "[read_file]", "list_files": "[read_file]", WEB: "[http_get]"}.get(tool)
    if section is None and tool.startswith((SHELL, MCP)):
        section = f"[{'shell' if tool.startswith(SHELL) else 'mcp'}.NAME]"
    if section is not None:
        return f"it needs the table {section}"
    return f"there is {listed(known, last='and')}" if known else "set tools up first"
