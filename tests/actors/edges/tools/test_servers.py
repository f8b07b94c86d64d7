"""Tools of MCP servers: real ones of the official SDK, and such as lie, hang, die and change."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.edges.tools.servers import Connection, McpTool, Server, ServerError, tools_of
from actors.edges.tools.tool import ToolError
from tests.actors.edges.leftovers import wait_until_gone
from tests.actors.edges.tools import mcp_program

PROGRAM = mcp_program.__file__
HERE = Path(__file__).parent


def server(*tools: str, words: tuple[str, ...] = (sys.executable, PROGRAM), **more: Any) -> Server:
    return Server(**{"name": "t", "words": words, "tools": tools or ("*",), "folder": HERE, **more})


def script(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


@asynccontextmanager
async def opened(which: Server) -> AsyncIterator[dict[str, McpTool]]:
    """A server's tools by their own names, in a run that ends."""
    connection = Connection(which)
    tools = {name: McpTool(connection, name, spec) for name, spec in await tools_of(which)}
    async with trio.open_nursery() as nursery:
        connection.nursery = nursery
        yield tools
        await connection.close()


async def refusal(tool: McpTool, arguments: dict[str, Any] | None = None) -> str:
    with pytest.raises(ToolError) as error:
        await tool.call(arguments or {})
    return str(error.value)


async def test_a_servers_tools_are_listed_and_called() -> None:
    async with opened(server()) as tools:
        add = tools["add"]
        assert add.spec.name == "mcp__t__add"
        assert add.spec.description == "Adds two numbers."
        assert add.spec.schema["required"] == ["a", "b"]
        assert tools["odd.name/tool"].spec.name == "mcp__t__odd_name_tool"
        assert await add.call({"a": 1, "b": 2}) == "3"
        assert await tools["odd.name/tool"].call({}) == "odd"
        assert await tools["picture"].call({}) == "a text\n[image: image/png, 6 bytes]"
        assert "fail" in await refusal(tools["fail"])
        first = await tools["number"].call({})
        assert await tools["number"].call({}) == first  # one server for all calls


async def test_only_the_tools_that_the_settings_name_are_there() -> None:
    async with opened(server("add")) as tools:
        assert [*tools] == ["add"]
    with pytest.raises(ServerError, match="it has no tool 'none': it has add, die, fail"):
        await tools_of(server("add", "none"))


async def test_a_list_that_changes_changes_nothing() -> None:
    async with opened(server()) as tools:
        before = [*tools]
        assert await tools["grow"].call({}) == "grew"
        assert "secret" not in before
        assert [*tools] == before
        assert await tools["add"].call({"a": 2, "b": 2}) == "4"


async def test_a_server_that_dies_is_told_of_and_started_again() -> None:
    async with opened(server()) as tools:
        first = await tools["number"].call({})
        said = await refusal(tools["die"])
        assert said == ("the server broke off, so whether it did anything is unknown: last words")
        assert await tools["number"].call({}) not in ("", first)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells whether a process is there")
async def test_a_server_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(pids))
    async with opened(server(environment=("PIDS",))) as tools:
        number = await tools["number"].call({})
        with trio.move_on_after(0.5) as scope:
            await tools["hang"].call({})
        assert scope.cancelled_caught
        assert await tools["number"].call({}) != number  # the next call has a new one
    started = pids.read_text().split()
    assert len(started) == 3
    await wait_until_gone(*map(int, started))


async def test_a_servers_environment_is_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-may-see")
    monkeypatch.setenv("NEEDED", "yes")
    async with opened(server("variable", environment=("NEEDED", "NOT_SET"))) as tools:
        assert await tools["variable"].call({"name": "OPENAI_API_KEY"}) == "nothing"
        assert await tools["variable"].call({"name": "NEEDED"}) == "yes"


async def test_over_http_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    process = await trio.lowlevel.open_process([sys.executable, PROGRAM, "--http", str(port)])
    try:
        with trio.fail_after(20):
            while True:
                try:
                    await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    await trio.sleep(0.02)
        monkeypatch.setenv("HELD", "Bearer x")
        url = f"http://127.0.0.1:{port}/mcp"
        which = server("add", words=(), url=url, headers={"Authorization": "HELD"})
        async with opened(which) as tools:
            assert await tools["add"].call({"a": 1, "b": 2}) == "3"
    finally:
        process.kill()
        await process.wait()
    with pytest.raises(ServerError, match="it can't be asked"):
        await tools_of(which)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no-such-program",), "No such file"),
        (script("import sys; sys.exit('no key is set')"), "no key is set"),
        (script("print('hello, I am no server')"), "it can't be asked"),
        (script("import sys; sys.stdin.readline(); print('{}'); sys.exit('lies')"), "lies"),
        (script("import os; os.write(1, bytes([255, 0, 10]) * 100)"), "it can't be asked"),
    ],
)
async def test_what_is_no_server_is_told(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ServerError) as error:
        await tools_of(server(words=words))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


LIAR = """
import json, sys
TOOL = {{"name": "t", "inputSchema": {{"type": "object"}}, "outputSchema": {{"type": "object",
        "properties": {{"n": {{"type": "integer"}}}}, "required": ["n"]}}}}
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method")
    if "id" not in asked:
        continue
    answer = {{"jsonrpc": "2.0", "id": asked["id"]}}
    if method == "initialize":
        answer["result"] = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                            "serverInfo": {{"name": "liar", "version": "1"}}}}
    elif method == "tools/list":
        answer["result"] = {{"tools": {tools}}}
    elif method == "tools/call":
        answer["result"] = {result}
    else:
        answer["error"] = {{"code": -32601, "message": "no such method"}}
    print(json.dumps(answer), flush=True)
"""


def liar(tools: str = "[TOOL]", result: str = "{}") -> Server:
    return server(words=script(LIAR.format(tools=tools, result=result)))


@pytest.mark.parametrize(
    "result",
    [
        "{}",
        '{"content": 3}',
        '{"content": [{"type": "text", "text": "a"}], "structuredContent": {"n": "no"}}',
        '{"content": [{"type": "hologram"}]}',
    ],
)
async def test_a_result_that_is_none_is_told(result: str) -> None:
    async with opened(liar(result=result)) as tools:
        assert "the server" in await refusal(tools["t"])


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ('[{**TOOL, "name": "x" * 60}]', "longer than 64 characters"),
        ('[{**TOOL, "name": "a.b"}, {**TOOL, "name": "a/b"}]', "two of its tools would be"),
        ('[{**TOOL, "name": f"t{n}"} for n in range(201)]', "more than 200 tools"),
        ('[{**TOOL, "inputSchema": {"type": "object", "x": "y" * 40_000}}]', "more than 32,768"),
        ('[{"name": "t"}]', "it can't be asked"),
        ("3", "it can't be asked"),
    ],
)
async def test_a_list_that_is_none_is_told(tools: str, said: str) -> None:
    with pytest.raises(ServerError) as error:
        await tools_of(liar(tools=tools))
    assert said in str(error.value)
