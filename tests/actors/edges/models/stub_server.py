"""A model server on loopback: strict about what it is sent, and broken as a test asks for."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import h11
import msgspec
import trio

from actors.graphs.messages import AgentAsk
from tests.actors.edges.models import conversation

KEY = "sk-a-key-that-nobody-may-see"
MESSAGES = {"model", "messages", "stream", "max_tokens"}
ALLOWED = {
    "/v1/chat/completions": {
        *MESSAGES, "stream_options", "max_completion_tokens", "response_format", "tools",
        "tool_choice",
    },
    "/v1/messages": {*MESSAGES, "tools", "tool_choice"},
}  # fmt: skip


def ask(prompt: str = "Say something", **fields: Any) -> AgentAsk:
    """A question to a model."""
    usual: dict[str, Any] = {"run": "r", "agent": 1, "timeout_us": 60_000_000}
    return AgentAsk(prompt=prompt, **{**usual, **fields})


@dataclass
class Reply:
    """What the server answers: chunks of bytes, then how it ends.

    `hang` keeps the connection open until the client has left, `abort` closes it in the middle,
    `silent` before its first byte, after a pause.
    """

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    end: str = "clean"
    pause_s: float = 0  # before each chunk


@dataclass
class Seen:
    """One request: where it went, its headers in lower case, its body."""

    path: str
    headers: dict[str, str]
    body: Any


class StubServer:
    """Answers one request after another with the replies that it was given."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.seen: list[Seen] = []
        self.complaints: list[str] = []
        self.port = self.connections = 0
        self.left = trio.Event()  # a client has left before its answer's end
        self.asked = trio.Event()  # a reply's chunks are all sent

    @property
    def url(self) -> str:
        """The base URL of the OpenAI dialect."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def root(self) -> str:
        """The base URL of Anthropic's."""
        return f"http://127.0.0.1:{self.port}"

    def check(self, request: h11.Request, body: bytes) -> None:
        """Note what a server would not accept."""
        path = request.target.decode()
        headers = {name.decode(): value.decode() for name, value in request.headers}
        decoded = msgspec.json.decode(body)
        self.seen.append(Seen(path, headers, decoded))
        if request.method != b"POST" or path not in ALLOWED:
            self.complaints.append(f"{request.method!r} {path}")
            return
        unknown = set(decoded) - ALLOWED[path]
        if unknown or decoded["stream"] is not True:
            self.complaints.append(f"{sorted(unknown)} stream={decoded.get('stream')}")
        if not decoded["model"] or decoded["messages"][0].keys() != {"role", "content"}:
            self.complaints.append("a model and messages")
        self.complaints += conversation.complaints(decoded)
        if path == "/v1/messages":
            if "max_tokens" not in decoded or headers.get("anthropic-version") != "2023-06-01":
                self.complaints.append("max_tokens and a version")
        elif decoded.get("stream_options") != {"include_usage": True}:
            self.complaints.append("usage was not asked for")

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        connection = h11.Connection(h11.SERVER)
        self.connections += 1
        async with stream:
            try:
                while await self.serve_one(connection, stream):
                    connection.start_next_cycle()
            except trio.BrokenResourceError:
                self.left.set()

    async def serve_one(self, connection: h11.Connection, stream: trio.SocketStream) -> bool:
        """Serve one request; whether another may follow."""
        request, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return False
        assert request is not None
        self.check(request, body)
        return await self.answer(connection, stream, self.replies.pop(0))

    async def answer(
        self, connection: h11.Connection, stream: trio.SocketStream, reply: Reply
    ) -> bool:
        if reply.end == "silent":
            await trio.sleep(reply.pause_s)
            return False
        head = h11.Response(
            status_code=reply.status,
            headers=[(name.encode(), value.encode()) for name, value in reply.headers.items()],
        )
        await stream.send_all(connection.send(head) or b"")
        for chunk in reply.chunks:
            await trio.sleep(reply.pause_s)
            await stream.send_all(connection.send(h11.Data(data=chunk)) or b"")
        self.asked.set()
        if reply.end == "abort":
            return False
        if reply.end == "hang":
            await stream.receive_some(1)  # returns when the client has left
            self.left.set()
            return False
        await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
        return connection.our_state is h11.DONE


@asynccontextmanager
async def stub(*replies: Reply) -> AsyncIterator[StubServer]:
    """Serve these replies; complain at the end of what the client did wrong."""
    server = StubServer()
    server.replies = list(replies)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, server.serve, 0)
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()
    assert server.complaints == []


def data(*chunks: Any) -> bytes:
    """Chunks as events; a text is data as it is."""
    texts = (one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in chunks)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def openai_stream(
    *pieces: str, reason: str | None = "stop", usage: dict[str, Any] | None = None
) -> bytes:
    """An answer in the OpenAI dialect."""
    parts: list[Any] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        *({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces),
    ]
    if reason is not None:
        parts.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if usage is not None:
        parts.append({"choices": [], "usage": usage})
    return data(*parts, *(["[DONE]"] if reason is not None else []))


def named(*events: dict[str, Any]) -> bytes:
    """Events with their type as their name, as Anthropic sends them."""
    return b"".join(f"event: {one['type']}\n".encode() + data(one) for one in events)


def anthropic_stream(
    *deltas: dict[str, Any], reason: str | None = "end_turn", output_tokens: int = 9
) -> bytes:
    """An answer in Anthropic's dialect."""
    usage = {"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1}
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
    ]
    if reason is not None:
        parts += [
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason},
                "usage": {"output_tokens": output_tokens},
            },
            {"type": "message_stop"},
        ]
    return named(*parts)


def openai_calls(*pieces: dict[str, Any], text: str = "", reason: str = "tool_calls") -> bytes:
    """Tool calls in the OpenAI dialect, a chunk a piece."""
    parts: list[dict[str, Any]] = [{"content": text}] if text else []
    parts += [{"tool_calls": [piece]} for piece in pieces]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in parts]
    return data(
        *chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, "[DONE]"
    )


def anthropic_calls(*calls: tuple[str, str, Sequence[str]], text: str = "") -> bytes:
    """Tool calls in Anthropic's dialect: an id, a name and the pieces of the input."""
    parts: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m"}}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]))
    for id_, name, pieces in calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": id_, "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        parts.append({"type": "content_block_start", "index": index, "content_block": block})
        parts += [{"type": "content_block_delta", "index": index, "delta": one} for one in deltas]
        parts.append({"type": "content_block_stop", "index": index})
    parts.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return named(*parts, {"type": "message_stop"})


def cut_everywhere(stream: bytes, places: Sequence[int]) -> list[bytes]:
    """The same bytes in pieces."""
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[one:other] for one, other in pairwise(marks)]
