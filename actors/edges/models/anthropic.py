"""Anthropic's dialect: `POST /v1/messages`, streamed. A schema goes as a tool that must be used.

The input's tokens come with the first event and the output's with later ones, so an agent that is
stopped on the way is counted as the server counts. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.edges.models.failures import BackendError, detail_of, of_status
from actors.edges.models.openai import (
    broke_off,
    check_size,
    cut_short,
    decoded,
    value_or_calls,
)
from actors.edges.models.sse import SseEvent
from actors.edges.models.structured import problem_words, value_of
from actors.edges.models.tool_calls import (
    ANSWER,
    NO_TOOLS,
    NOTHING,
    Catalogue,
    Pieces,
    answer_tool,
    in_order,
    object_of,
    offered,
    opening,
)
from actors.edges.models.usage import Spent
from actors.edges.tools.tool import ToolSpec
from actors.graphs.messages import AgentAsk
from actors.text import units

VERSION = "2023-06-01"
MAX_TOKENS = 8192  # of an agent that names no bound: the API asks for one
STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def read_tokens(self) -> int | None:
        """All that was read, from the cache or not."""
        parts = (
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        )
        return None if self.input_tokens is None else sum(part or 0 for part in parts)


class _Message(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None


class _Delta(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    index: Any = None  # of the block that this belongs to
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: Any = None


class AnthropicDialect:
    """See the module's docstring.

    `model` answers agents that name none; `tools` are all that there are.
    """

    path = "/v1/messages"

    def __init__(self, model: str, *, tools: Catalogue = NO_TOOLS) -> None:
        self.model = model
        self.tools = tools

    def headers(self, key: str | None) -> Mapping[str, str]:
        """See Dialect."""
        head = {"anthropic-version": VERSION}
        return head if key is None else {**head, "x-api-key": key}

    def body(self, ask: AgentAsk) -> bytes:
        """See Dialect."""
        asked: dict[str, Any] = {
            "model": ask.model or self.model,
            "max_tokens": MAX_TOKENS if ask.max_tokens is None else ask.max_tokens,
            "messages": messages_of(ask),
            "stream": True,
        }
        tools = offered(self.tools, ask)
        if ask.schema is not None:
            choice = {"type": "any"} if tools else {"type": "tool", "name": ANSWER}
            asked["tool_choice"] = choice
            tools.append(answer_tool(ask.schema))
        if tools:
            asked["tools"] = [_tool(one) for one in tools]
        return msgspec.json.encode(asked)

    def assembler(self, ask: AgentAsk, spent: Spent) -> AnthropicAnswer:
        """See Dialect."""
        return AnthropicAnswer(ask, spent)


class AnthropicAnswer:
    """Reads one answer: the text of all its blocks, or the input of the tool."""

    def __init__(self, ask: AgentAsk, spent: Spent) -> None:
        self.finished = False
        self._ask = ask
        self._spent = spent
        self._text: list[str] = []
        self._calls = Pieces()
        self._size_chars = 0
        self._reason: str | None = None

    def take(self, event: SseEvent) -> None:
        """See Assembler. Kinds of events that are not known are none of ours."""
        told = decoded(event.data, _Event)
        if told.type == "error":
            detail = detail_of({"error": told.error})
            raise of_status(STATUS_OF.get(detail.kind, 500), detail)
        if told.type == "message_start" and told.message is not None:
            self._count(told.message.usage, final=False)
        elif told.type == "content_block_start" and told.content_block is not None:
            self._begin(told.index, told.content_block)
        elif told.type == "content_block_delta" and told.delta is not None:
            self._spent.piece()
            self._add(told.delta.text)
            if told.delta.partial_json is not None:
                self._grow(told.delta.partial_json)
                self._calls.take(told.index, None, None, told.delta.partial_json)
        elif told.type == "message_delta":
            if told.delta is not None:
                self._reason = told.delta.stop_reason or self._reason
            self._count(told.usage, final=self._reason is not None)
        elif told.type == "message_stop":
            self.finished = True

    def _count(self, usage: _Usage | None, *, final: bool) -> None:
        if usage is not None:
            self._spent.report(usage.read_tokens, usage.output_tokens, final=final)

    def _begin(self, index: Any, block: _Block) -> None:
        self._add(block.text)
        if block.type == "tool_use":
            self._calls.take(index, block.id, block.name, None)

    def _add(self, text: str | None) -> None:
        if text:
            self._grow(text)
            self._text.append(text)

    def _grow(self, piece: str) -> None:
        self._size_chars += units(piece)
        check_size(self._size_chars)

    def value(self) -> Any:
        """See Assembler."""
        if self._reason is None or not self.finished:
            raise broke_off()
        if self._reason in ("max_tokens", "model_context_window_exceeded"):
            raise cut_short(self._ask, self._spent)
        if self._reason == "refusal":
            raise BackendError("refused", "the model refuses to answer", retryable=False)
        text = "".join(self._text)
        if not len(self._calls):
            return value_of(self._ask, text, wrapped=False)
        return value_or_calls(self._ask, text, self._calls)


def messages_of(ask: AgentAsk) -> list[dict[str, Any]]:
    """Return the conversation so far: the question, and each round of tools with what came."""
    messages = opening(ask)
    for one in ask.rounds:
        pairs = in_order(one.calls, one.results)
        blocks: list[dict[str, Any]] = [
            {"type": "tool_use", "id": call.id, "name": call.tool,
             "input": object_of(call.arguments)}
            for call, _ in pairs
        ]  # fmt: skip
        if one.text.strip():
            blocks.insert(0, {"type": "text", "text": one.text})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result.text or NOTHING,
             "is_error": not result.ok}
            for call, result in pairs
        ]  # fmt: skip
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    if ask.rounds and ask.problem is not None:
        messages[-1]["content"].append({"type": "text", "text": problem_words(ask.problem)})
    return messages


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
