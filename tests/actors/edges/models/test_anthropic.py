"""Anthropic's dialect: what is asked, and what of a stream is the answer."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.anthropic import MAX_TOKENS, AnthropicDialect
from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import BackendError
from actors.edges.models.sse import SseReader
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk
from tests.actors.edges.models.stub_server import (
    KEY,
    anthropic_calls,
    anthropic_stream,
    ask,
    cut_everywhere,
    named,
)

DIALECT = AnthropicDialect("small")


def text(piece: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": piece}


def read(stream: bytes, asked: AgentAsk | None = None, places: Sequence[int] = ()) -> Any:
    """The answer's value, and what was used."""
    spent, reader = Spent(), SseReader()
    answer = DIALECT.assembler(asked or ask(), spent)
    for chunk in cut_everywhere(stream, places):
        for event in reader.feed(chunk):
            answer.take(event)
    return answer.value(), spent.tokens


def body(**fields: Any) -> Any:
    return msgspec.json.decode(DIALECT.body(ask("why?", **fields)))


def test_a_question_has_the_bound_that_the_api_asks_for() -> None:
    assert body() == {
        "model": "small",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": "why?"}],
        "stream": True,
    }
    assert body(max_tokens=5, model="big")["max_tokens"] == 5


def test_a_schema_goes_as_a_tool_that_must_be_used() -> None:
    schema = {"type": "object"}
    asked = body(schema=schema)
    assert asked["tools"][0]["input_schema"] == schema
    assert asked["tool_choice"] == {"type": "tool", "name": asked["tools"][0]["name"]}


def test_a_key_goes_into_its_header() -> None:
    assert DIALECT.headers(KEY)["x-api-key"] == KEY
    assert "x-api-key" not in DIALECT.headers(None)


@given(st.lists(st.text(max_size=20), max_size=6), st.lists(st.integers(0), max_size=20))
def test_cut_anywhere_the_answer_is_the_same(pieces: list[str], places: list[int]) -> None:
    stream = anthropic_stream(*map(text, pieces), output_tokens=9)
    assert read(stream, places=places) == ("".join(pieces), 20 + 5 + 9)


def test_a_tools_input_is_the_value() -> None:
    stream = anthropic_calls(("x", "answer", ["", '{"value"', ": 3}"]))
    assert read(stream, ask(schema={"type": "integer"}))[0] == 3


def test_a_stream_that_stops_has_used_what_came() -> None:
    spent, reader = Spent(), SseReader()
    answer = DIALECT.assembler(ask(), spent)
    for event in reader.feed(anthropic_stream(text("a"), text("b"), text("c"), reason=None)):
        answer.take(event)
    assert (spent.input_tokens, spent.output_tokens) == (25, 3)


def test_kinds_of_events_that_are_not_known_are_left() -> None:
    strange = named({"type": "new_thing", "index": [1]})
    assert read(strange + anthropic_stream({"type": "thinking_delta", "thinking": "hm"}))[0] == ""


@pytest.mark.parametrize(
    ("stream", "code", "retryable"),
    [
        (anthropic_stream(text("half"), reason=None), "disconnected", True),
        (anthropic_stream(text("half"), reason="max_tokens"), "cut_short", False),
        (anthropic_stream(text("no"), reason="refusal"), "refused", False),
        (named({"type": "error", "error": {"type": "overloaded_error", "message": "later"}}),
         "rate_limited", True),
        (named({"type": "error", "error": {"type": "authentication_error"}}), "refused", False),
        (named({"type": "error", "error": None}), "server_error", True),
        (b"data: {}\n\n", "malformed", True),
        (b"data: nonsense\n\n", "malformed", True),
        (anthropic_stream(text("x" * (ANSWER_LIMIT_CHARS + 1))), "too_large", False),
    ],
)  # fmt: skip
def test_what_goes_wrong_has_a_code(stream: bytes, code: str, retryable: bool) -> None:
    with pytest.raises(BackendError) as error:
        read(stream)
    assert (error.value.code, error.value.retryable) == (code, retryable)
