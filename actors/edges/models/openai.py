"""The OpenAI-compatible dialect: Ollama, llama.cpp, vLLM, and the service that it is named for.

`POST /chat/completions`, streamed, with the usage in the last chunk (`stream_options`). A schema
goes as `response_format`. No I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import BackendError, detail_of, of_status
from actors.edges.models.sse import SseEvent
from actors.edges.models.structured import object_schema, question_of, value_of
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk
from actors.text import units

DONE = "[DONE]"  # ends a stream, in most servers
CUT_SHORT = "length"
FILTERED = "content_filter"


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
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
    """See the module's docstring. `model` answers agents that name none.

    With `new_names` the bound on tokens has the name that the service's own newer models take.
    """

    path = "/chat/completions"

    def __init__(self, model: str, *, new_names: bool = False) -> None:
        self.model = model
        self.new_names = new_names

    def headers(self, key: str | None) -> Mapping[str, str]:
        """See Dialect. Servers on one's own machine need no key."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, ask: AgentAsk) -> bytes:
        """See Dialect."""
        if ask.tools:
            raise no_tools()
        asked: dict[str, Any] = {
            "model": ask.model or self.model,
            "messages": [{"role": "user", "content": question_of(ask)}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if ask.max_tokens is not None:
            asked["max_completion_tokens" if self.new_names else "max_tokens"] = ask.max_tokens
        if ask.schema is not None:
            named = {"name": "answer", "schema": object_schema(ask.schema)}
            asked["response_format"] = {"type": "json_schema", "json_schema": named}
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
        self._refusal += delta.refusal or ""
        if delta.content:
            self._size_chars += units(delta.content)
            check_size(self._size_chars)
            self._text.append(delta.content)

    def value(self) -> Any:
        """See Assembler."""
        if self._reason is None:
            raise broke_off()
        if self._reason == CUT_SHORT:
            raise cut_short(self._ask, self._spent)
        if self._refusal or self._reason == FILTERED:
            words = self._refusal[:300] or "its filter stopped the answer"
            raise BackendError("refused", f"the model refuses: {words}", retryable=False)
        return value_of(self._ask, "".join(self._text), wrapped=True)


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


def no_tools() -> BackendError:
    """Return the failure of an agent with tools, which a model server alone does not run."""
    sentence = "a model server runs no tools: take them out, or run agents by a command"
    return BackendError("unsupported", sentence, retryable=False)
