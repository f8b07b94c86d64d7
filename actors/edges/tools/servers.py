"""The tools of MCP servers, through the protocol's own client.

A server's tools are read once, before a run. What it says of them later changes nothing: no tool
becomes callable by a server's word. It is asked for nothing but its tools, and may ask for nothing:
no model, no file, no question to the owner. A server that has died is started again by the next
call.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from actors.edges.tools.floods import LINES_ENCODING, bound_body
from actors.edges.tools.tool import (
    DESCRIPTION_LIMIT_CHARS,
    NAME,
    ToolError,
    ToolSpec,
)
from actors.text import clean_text, clean_value, cut

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, ContentBlock

PREFIX: Final = "mcp__"
START_LIMIT_S: Final = 30.0  # to start and to say which tools there are
LAST_WORDS_S: Final = 0.2  # for what a server that has ended wrote to its stderr
TOOLS_LIMIT: Final = 200  # of a server; each is told to every agent that has it
PAGES_LIMIT: Final = 20
SCHEMA_LIMIT_BYTES: Final = 32 << 10
WORDS_LIMIT_BYTES: Final = 4 << 10  # of stderr, whose end is kept
ANY: Final = "*"  # all tools that a server has when a run begins
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_-]")


class ServerError(Exception):
    """A server can't be used: one sentence."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One server of the settings: a command, or a URL; and which of its tools may be used.

    `environment` names the variables that a command gets besides the usual ones; `headers` names
    for each header of requests to a URL the variable that holds its value.
    """

    name: str
    words: tuple[str, ...] = ()
    url: str | None = None
    tools: tuple[str, ...]
    folder: Path
    environment: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    limit_s: float = 60.0

    def tool_name(self, tool: str) -> str:
        """Return what agents call a tool of this server."""
        return f"{PREFIX}{self.name}__{_UNUSUAL.sub('_', tool)}"

    def gives(self, tool: str) -> bool:
        """Whether the settings let a tool of this server be used."""
        return ANY in self.tools or tool in self.tools


def mcp_is_installed() -> bool:
    """Whether the extra is there that brings the client."""
    return find_spec("mcp") is not None


class Words:
    """The end of what a server wrote to its stderr, which is no part of the protocol."""

    def __init__(self) -> None:
        self.raw = bytearray()

    @property
    def last(self) -> str:
        """Its last line, with a colon before it; nothing if it said nothing."""
        line = clean_text(self.raw.decode(errors="replace")).strip().rpartition("\n")[2].strip()
        return f": {line[:300]}" if line else ""

    async def listen(self, descriptor: int) -> None:
        """Read until all who could write are gone."""
        async with trio.lowlevel.FdStream(descriptor) as stream:
            async for chunk in stream:
                self.raw.extend(chunk)
                del self.raw[:-WORDS_LIMIT_BYTES]


@asynccontextmanager
async def connected(server: Server, words: Words) -> AsyncIterator[Client]:
    """Start or reach a server, and end what was started. Whatever goes wrong is an Exception."""
    from mcp import Client  # noqa: PLC0415  an extra, which takes half a second

    # What it says of a server's mistakes would stand in the middle of a terminal's picture.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    async with trio.open_nursery() as nursery:
        try:
            if server.url is not None:
                transport = await _over_http(server)
            else:
                transport = await _over_pipes(server, words, nursery)
            async with Client(transport, cache=None) as client:
                yield client
        finally:
            # What it said at last may still be in the pipe, which something of it may hold open.
            nursery.cancel_scope.deadline = trio.current_time() + LAST_WORDS_S


async def _over_pipes(server: Server, words: Words, nursery: trio.Nursery) -> Transport:
    from mcp.client.stdio import (  # noqa: PLC0415  an extra
        StdioServerParameters,
        stdio_client,
    )

    reading, writing = os.pipe()
    nursery.start_soon(words.listen, reading)
    named = {name: os.environ[name] for name in server.environment if name in os.environ}
    parameters = StdioServerParameters(
        command=server.words[0],
        args=list(server.words[1:]),
        env=named,
        cwd=server.folder,
        encoding=LINES_ENCODING,
        encoding_error_handler="replace",
    )

    @asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        with os.fdopen(writing, "w") as errors:
            async with stdio_client(parameters, errlog=errors) as streams:
                yield streams

    return transport()


async def _over_http(server: Server) -> Transport:
    import httpx2  # noqa: PLC0415  the extra's own
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  an extra

    assert server.url is not None, "a server has a command or a URL"
    headers = {name: os.environ.get(held, "") for name, held in server.headers.items()}
    headers["Accept-Encoding"] = "identity"
    url = server.url

    @asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        async with (
            httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(server.limit_s, connect=10.0),
                event_hooks={"response": [bound_body]},
            ) as client,
            streamable_http_client(url, http_client=client) as streams,
        ):
            yield streams

    return transport()


async def tools_of(server: Server) -> list[tuple[str, ToolSpec]]:
    """Return a server's tools that the settings let be used: its own name, and what models get.

    ServerError if it can't be asked.
    """
    words = Words()
    try:
        with trio.fail_after(START_LIMIT_S):
            async with connected(server, words) as client:
                found = await _listed(client)
    except trio.TooSlowError:
        sentence = f"it does not say within {START_LIMIT_S:g} s which tools it has{words.last}"
        raise ServerError(sentence) from None
    except Exception as error:  # noqa: BLE001  the client's errors have no common base but this
        raise ServerError(f"it can't be asked: {reason(error)}{words.last}") from None
    return _usable(server, found)


async def _listed(client: Client) -> list[Any]:
    found: list[Any] = []
    cursor = None
    for _ in range(PAGES_LIMIT):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise ServerError(f"its list of tools has more than {PAGES_LIMIT} pages")


def _usable(server: Server, found: Sequence[Any]) -> list[tuple[str, ToolSpec]]:
    names = {tool.name for tool in found}
    missing = [name for name in server.tools if name != ANY and name not in names]
    if missing:
        raise ServerError(f"it has no tool {missing[0]!r}: it has {', '.join(sorted(names))}")
    chosen = [tool for tool in found if server.gives(tool.name)]
    if len(chosen) > TOOLS_LIMIT:
        raise ServerError(f"it has more than {TOOLS_LIMIT} tools: name those that are needed")
    specs: dict[str, tuple[str, ToolSpec]] = {}
    for tool in chosen:
        name = server.tool_name(tool.name)
        if not NAME.fullmatch(name):
            raise ServerError(f"the name {name} is longer than 64 characters")
        if name in specs:
            raise ServerError(f"two of its tools would be {name}")
        specs[name] = (tool.name, _spec(name, tool))
    return list(specs.values())


def _spec(name: str, tool: Any) -> ToolSpec:
    try:
        schema = clean_value(tool.input_schema)
        size_bytes = len(msgspec.json.encode(schema))
    except (ValueError, RecursionError):
        raise ServerError(f"the schema of {name} can't be read") from None
    if size_bytes > SCHEMA_LIMIT_BYTES:
        raise ServerError(f"the schema of {name} has more than {SCHEMA_LIMIT_BYTES:,} bytes")
    description = cut(clean_text(tool.description or ""), DESCRIPTION_LIMIT_CHARS)
    return ToolSpec(name=name, description=description, schema=schema)


def is_refusal(error: Exception) -> bool:
    """Whether a server has answered that it won't, rather than broken off or lied."""
    from mcp import MCPError  # noqa: PLC0415  an extra
    from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415  an extra

    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


def reason(error: BaseException) -> str:
    """Return why the client failed, in one line: the first of what it holds."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = getattr(error, "message", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(clean_text(str(words)).split())[:300] or type(error).__name__


class Connection:
    """A run's connection to one server: made by the first call, and again after it broke."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.nursery: trio.Nursery | None = None
        self.calls = 0
        self._live: _Live | None = None
        self._starting = trio.Lock()

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call one of the server's tools; ToolError if it does not answer."""
        live = await self._connected()
        self.calls += 1
        stuck = True
        try:
            result = await live.client.call_tool(tool, arguments)
            stuck = False
        except Exception as error:  # noqa: BLE001  the client's errors have no common base but this
            if is_refusal(error):
                stuck = False
                raise ToolError(f"the server answers: {reason(error)}") from None
            live.drop()
            await live.ended.wait()  # by then its last words are here
            sentence = "the server broke off, so whether it did anything is unknown"
            raise ToolError(f"{sentence}{live.words.last}") from None
        finally:
            self.calls -= 1
            # One that let a call wait until it was stopped may be stuck: the next has a new one.
            if stuck and not self.calls:
                live.drop()
        return result

    async def _connected(self) -> _Live:
        async with self._starting:
            if self._live is None or self._live.over:
                assert self.nursery is not None, "a run has opened it"
                live = _Live()
                self._live = live
                failure = await self.nursery.start(partial(live.run, self.server))
                if failure is not None:
                    raise ToolError(f"the server can't be asked: {failure}{live.words.last}")
            return self._live

    async def close(self) -> None:
        """End the server, and wait until it has ended."""
        live, self._live = self._live, None
        if live is not None:
            live.drop()
            await live.ended.wait()


class _Live:
    """One connection, held by a task of its own."""

    client: Client

    def __init__(self) -> None:
        self.words = Words()
        self.over = False
        self.ended = trio.Event()
        self._scope = trio.CancelScope()

    async def run(
        self, server: Server, task_status: trio.TaskStatus[str | None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Hold the connection until it breaks or is dropped; start with why there is none."""
        started = False
        failure = f"it does not answer within {START_LIMIT_S:g} s"
        try:
            with self._scope:
                self._scope.deadline = trio.current_time() + START_LIMIT_S
                async with connected(server, self.words) as self.client:
                    self._scope.deadline = float("inf")
                    started = True
                    task_status.started(None)
                    await trio.sleep_forever()
        except Exception as error:  # noqa: BLE001  the client's errors have no common base but this
            failure = reason(error)
        finally:
            self.over = True
            self.ended.set()
        if not started:
            task_status.started(failure)

    def drop(self) -> None:
        """End the connection."""
        self.over = True
        self._scope.cancel()


class McpTool:
    """One tool of a server."""

    def __init__(self, connection: Connection, tool: str, spec: ToolSpec) -> None:
        self.connection = connection
        self.tool = tool
        self.spec = spec
        self.limit_s = connection.server.limit_s + START_LIMIT_S

    async def call(self, arguments: dict[str, Any]) -> str:
        """See Tool."""
        result = await self.connection.call(self.tool, arguments)
        text = text_of(result)
        if result.is_error:
            raise ToolError(text or "the tool failed, and says nothing of why")
        return text


def text_of(result: CallToolResult) -> str:
    """Return what a server's result says: its texts, and the names of what is no text."""
    text = "\n".join(map(_words_of, result.content))
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    return text


def _words_of(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[a link to {block.uri}]"
    if block.type == "resource":
        inner = block.resource
        text = getattr(inner, "text", None)
        return text if text is not None else f"[a resource: {inner.uri}]"
    return f"[{block.type}: {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
