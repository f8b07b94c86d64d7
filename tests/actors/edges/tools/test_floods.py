"""A server that says more than anybody can hold: what is too long is dropped as it comes."""

import sys
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.tools import floods
from actors.edges.tools.floods import LineDecoder, bound_body
from actors.edges.tools.servers import Server, ServerError, tools_of

LIMIT = 20


@given(st.lists(st.text("aé🙂\n", max_size=60)), st.lists(st.integers(0, 400)))
def test_lines_are_cut_at_the_limit_wherever_they_come_apart(
    texts: list[str], places: list[int]
) -> None:
    text = "".join(texts)
    raw = text.encode()
    marks = sorted({0, len(raw), *(place % (len(raw) + 1) for place in places)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(floods, "MESSAGE_LIMIT_BYTES", LIMIT)
        decoder = LineDecoder()
        pieces = [decoder.decode(raw[one:to]) for one, to in pairwise(marks)]
    assert "".join(pieces) == "\n".join(line[:LIMIT] for line in text.split("\n"))


def test_what_is_no_text_is_replaced_as_its_user_wants() -> None:
    assert LineDecoder("replace").decode(b"a\xff\n") == "a\ufffd\n"
    assert "a€".encode(floods.LINES_ENCODING) == b"a\xe2\x82\xac"
    assert b"a\xe2\x82\xac".decode(floods.LINES_ENCODING) == "a€"


FLOOD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "flood", "version": "1"}}
    else:
        tool = {"name": "long", "description": "x" * 100_000, "inputSchema": {"type": "object"}}
        print(json.dumps({**answer, "result": {"tools": [tool]}}))
        answer["result"] = {"tools": []}
    print(json.dumps(answer), flush=True)
"""


async def test_a_line_that_is_too_long_is_lost_and_the_next_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(floods, "MESSAGE_LIMIT_BYTES", 10_000)
    words = (sys.executable, "-c", FLOOD)
    server = Server(name="f", words=words, tools=("*",), folder=Path(__file__).parent)
    assert await tools_of(server) == []


@pytest.mark.parametrize("header", [b"", b"Content-Encoding: gzip\r\n"])
async def test_a_body_without_end_breaks_off(
    header: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(floods, "MESSAGE_LIMIT_BYTES", 10_000)
    left = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + header + b"\r\n"
        await stream.send_all(head)
        try:
            while True:
                await stream.send_all(b"x" * 65_536)
        except trio.BrokenResourceError:
            left.set()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        url = f"http://127.0.0.1:{port}/mcp"
        with trio.fail_after(20):
            with pytest.raises(ServerError, match="it can't be asked"):
                await tools_of(Server(name="f", url=url, tools=("*",), folder=Path()))
            await left.wait()
        nursery.cancel_scope.cancel()


async def test_a_body_within_the_limit_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floods, "MESSAGE_LIMIT_BYTES", 10)
    closed = []

    class Stream(httpx2.AsyncByteStream):
        def __init__(self, size_bytes: int) -> None:
            self.size_bytes = size_bytes

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"x" * (self.size_bytes - 5)
            yield b"y" * 5

        async def aclose(self) -> None:
            closed.append(self.size_bytes)

    response = httpx2.Response(200, stream=Stream(10))
    await bound_body(response)
    assert await response.aread() == b"xxxxxyyyyy"
    response = httpx2.Response(200, stream=Stream(11))
    await bound_body(response)
    with pytest.raises(httpx2.RemoteProtocolError, match="more than 10 bytes"):
        await response.aread()
    await response.aclose()
    assert closed == [10, 11]
