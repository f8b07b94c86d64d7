"""The OpenAI-compatible dialect: Ollama, llama.cpp, vLLM, and the service that it is named for.

`POST /chat/completions`, streamed, with the usage in the last chunk (`stream_options`). A schema
goes as `response_format`, beside tools as one of them. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import BackendError, detail_of, of_status
from actors.edges.models.sse import SseEvent
from actors.edges.models.structured import (
    object_schema,
    problem_words,
    value_of,
)
from actors.edges.models.tool_calls import (
    ANSWER,
    NO_TOOLS,
    Called,
    Catalogue,
    Pieces,
    answer_tool,
    in_order,
    object_of,
    offered,
    opening,
    said,
)
from actors.edges.models.usage import Spent
from actors.edges.tools.tool import ToolSpec
from actors.graphs.messages import AgentAsk, ToolCall
from actors.text import units

DONE = "[DONE]"  # ends a stream, in most servers
CUT_SHORT = "length"
FILTERED = "content_filter"
REFUSAL_LIMIT_CHARS = 300  # of what a model says when it refuses


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


NO_FUNCTION = _Function()


class _Call(msgspec.Struct, frozen=True):
    index: int | None = None  # some servers have none, or null
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    reasoning_content: str | None = None  # what a model thinks before; counted, not answered
    reasoning: str | None = None  # the same, in other servers
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None  # of some gateways


class _Chunk(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    error: Any = None


class OpenAiDialect:
    """See the module's docstring. `model` answers agents that name none; `tools` are all there are.

    With `new_names` the bound on tokens has the name that the service's own newer models take.
    """

    path = "/chat/completions"

    def __init__(self, model: str, *, new_names: bool = False, tools: Catalogue = NO_TOOLS) -> None:
        self.model = model
        self.new_names = new_names
        self.tools = tools

    def headers(self, key: str | None) -> Mapping[str, str]:
        """See Dialect. Servers on one's own machine need no key."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, ask: AgentAsk) -> bytes:
        """See Dialect."""
        asked: dict[str, Any] = {
            "model": ask.model or self.model,
            "messages": messages_of(ask),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if ask.max_tokens is not None:
            asked["max_completion_tokens" if self.new_names else "max_tokens"] = ask.max_tokens
        tools = offered(self.tools, ask)
        if tools and ask.schema is not None:
            tools.append(answer_tool(ask.schema))
            asked["tool_choice"] = "required"
        elif ask.schema is not None:
            named = {"name": ANSWER, "schema": object_schema(ask.schema)}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
        if tools:
            asked["tools"] = [{"type": "function", "function": _function(one)} for one in tools]
        return msgspec.json.encode(asked)

    def assembler(self, ask: AgentAsk, spent: Spent) -> OpenAiAnswer:
        """See Dialect."""
        return OpenAiAnswer(ask, spent)


class OpenAiAnswer:
    """Reads one answer. Of several choices only the first counts."""

    def __init__(self, ask: AgentAsk, spent: Spent) -> None:
        self.finished = False
        self._ask = ask
        self._spent = spent
        self._text: list[str] = []
        self._calls = Pieces()
        self._size_chars = 0
        self._refusal = ""
        self._reason: str | None = None

    def take(self, event: SseEvent) -> None:
        """See Assembler."""
        if event.data == DONE:
            self.finished = True
            return
        chunk = decoded(event.data, _Chunk)
        if chunk.error is not None:
            raise in_stream(chunk.error)
        for choice in chunk.choices or ():
            if choice.index == 0:
                self._take_choice(choice)
        if chunk.usage is not None:
            usage = chunk.usage
            # Some servers tell it with every chunk; what follows the reason is all of it.
            final = self._reason is not None
            self._spent.report(usage.prompt_tokens, usage.completion_tokens, final=final)
            self._spent.costs(usage.cost)

    def _take_choice(self, choice: _Choice) -> None:
        self._reason = choice.finish_reason or self._reason
        delta = choice.delta
        if delta is None:
            return
        if delta.content or delta.reasoning_content or delta.reasoning or delta.refusal:
            self._spent.piece()
        if len(self._refusal) < REFUSAL_LIMIT_CHARS:
            self._refusal += delta.refusal or ""
        if delta.content:
            self._grow(delta.content)
            self._text.append(delta.content)
        for call in delta.tool_calls or ():
            function = call.function or NO_FUNCTION
            self._spent.piece()
            self._grow(function.arguments or "")
            self._calls.take(call.index, call.id, function.name, function.arguments)

    def _grow(self, piece: str) -> None:
        self._size_chars += units(piece)
        check_size(self._size_chars)

    def value(self) -> Any:
        """See Assembler."""
        if self._reason is None:
            raise broke_off()
        if self._reason == CUT_SHORT:
            raise cut_short(self._ask, self._spent)
        if self._refusal or self._reason == FILTERED:
            words = self._refusal[:REFUSAL_LIMIT_CHARS] or "its filter stopped the answer"
            raise BackendError("refused", f"the model refuses: {words}", retryable=False)
        return value_or_calls(self._ask, "".join(self._text), self._calls)


def messages_of(ask: AgentAsk) -> list[dict[str, Any]]:
    """Return the conversation so far: the question, and each round of tools with what came."""
    messages = opening(ask)
    for one in ask.rounds:
        pairs = in_order(one.calls, one.results)
        calls = [
            {"id": call.id, "type": "function", "function": _called(call)} for call, _ in pairs
        ]
        messages.append({"role": "assistant", "content": one.text or None, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": said(result.ok, result.text)}
            for call, result in pairs
        ]
    if ask.rounds and ask.problem is not None:
        messages.append({"role": "user", "content": problem_words(ask.problem)})
    return messages


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


def _called(call: ToolCall) -> dict[str, Any]:
    arguments = msgspec.json.encode(object_of(call.arguments)).decode()
    return {"name": call.tool, "arguments": arguments}


# What the dialects have in common


def decoded(data: str, kind: type[Any]) -> Any:
    """Return a chunk; BackendError if it is none."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        sentence = f"the model server sent a chunk that can't be read: {error}"
        raise BackendError("malformed", sentence[:300], retryable=True) from None


def in_stream(error: Any) -> BackendError:
    """Return the failure that a server tells of when the stream has begun already."""
    detail = detail_of({"error": error})
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 600:
        return of_status(status, detail)
    words = f"the model server failed within its answer: {detail.text[:300] or detail.kind}"
    return BackendError("server_error", words, retryable=True)


def check_size(size_chars: int) -> None:
    """Refuse an answer that fits into no message."""
    if size_chars > ANSWER_LIMIT_CHARS:
        sentence = f"the answer has more than {ANSWER_LIMIT_CHARS:,} characters"
        raise BackendError("too_large", sentence, retryable=False)


def broke_off() -> BackendError:
    """Return the failure of a stream that ends before its end."""
    sentence = "the model server broke off before the end of its answer"
    return BackendError("disconnected", sentence, retryable=True)


def cut_short(ask: AgentAsk, spent: Spent) -> BackendError:
    """Return the failure of an answer that reached its limit: half of one is no answer."""
    cure = "give the agent more maxTokens" if ask.max_tokens is not None else "set maxTokens"
    sentence = f"the answer was cut at its limit of tokens, after {spent.output_tokens:,}: {cure}"
    return BackendError("cut_short", sentence, retryable=False)


def value_or_calls(ask: AgentAsk, text: str, calls: Pieces) -> Any:
    """Return what an agent wants of its tools, or else its value: by the tool `answer`, or text."""
    answer = calls.answer()
    if answer is not None:
        return value_of(ask, answer, wrapped=True)
    if len(calls):
        return Called(text, calls.calls())
    return value_of(ask, text, wrapped=True)
