"""The OpenAI dialect: what is asked, and what of a stream is the answer."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.backend import ANSWER_LIMIT_CHARS
from actors.edges.models.failures import BackendError
from actors.edges.models.openai import OpenAiDialect
from actors.edges.models.sse import SseReader
from actors.edges.models.usage import Spent
from actors.graphs.messages import AgentAsk
from tests.actors.edges.models.stub_server import (
    KEY,
    ask,
    cut_everywhere,
    data,
    openai_stream,
)

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
DIALECT = OpenAiDialect("small")


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


def test_a_question_asks_for_a_stream_with_usage() -> None:
    assert body() == {
        "model": "small",
        "messages": [{"role": "user", "content": "why?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_an_agents_model_bound_and_schema_are_passed_on() -> None:
    schema = {"type": "object"}
    asked = body(model="big", max_tokens=50, schema=schema)
    assert (asked["model"], asked["max_tokens"]) == ("big", 50)
    assert asked["response_format"]["json_schema"]["schema"] == schema
    newer = msgspec.json.decode(OpenAiDialect("m", new_names=True).body(ask(max_tokens=50)))
    assert newer["max_completion_tokens"] == 50
    assert "max_tokens" not in newer


def test_a_key_goes_into_its_header() -> None:
    assert DIALECT.headers(KEY) == {"Authorization": f"Bearer {KEY}"}
    assert DIALECT.headers(None) == {}


@given(st.lists(st.text(max_size=20), max_size=6), st.lists(st.integers(0), max_size=20))
def test_cut_anywhere_the_answer_is_the_same(pieces: list[str], places: list[int]) -> None:
    stream = openai_stream(*pieces, usage=USAGE)
    assert read(stream, places=places) == ("".join(pieces), 18)


def test_a_value_by_a_schema_is_decoded() -> None:
    stream = openai_stream('{"value"', ": [1]}", usage=USAGE)
    assert read(stream, ask(schema={"type": "array"})) == ([1], 18)


def test_thoughts_count_and_are_no_answer() -> None:
    chunks = [
        {"choices": [{"delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"delta": {"reasoning": "hm"}}]},
        {"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]},
    ]
    assert read(data(*chunks)) == ("yes", 3)


def test_usage_that_comes_with_every_chunk_counts_at_its_last() -> None:
    chunks = [
        {"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 1}},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE},
        {"choices": None, "usage": {**USAGE, "completion_tokens": 8}},
    ]
    assert read(data(*chunks)) == ("a", 19)


def test_only_the_first_choice_counts() -> None:
    chunks = [
        {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {"content": "one"}, "finish_reason": "stop"}]},
    ]
    assert read(data(*chunks))[0] == "one"


@pytest.mark.parametrize(
    ("stream", "code", "retryable"),
    [
        (openai_stream("half", reason=None), "disconnected", True),
        (b"", "disconnected", True),
        (data("[DONE]"), "disconnected", True),
        (openai_stream("half", reason="length"), "cut_short", False),
        (openai_stream("no", reason="content_filter"), "refused", False),
        (data("{"), "malformed", True),
        (data('{"choices": 3}'), "malformed", True),
        (data("[" * 100_000), "malformed", True),
        (data({"error": {"message": "overloaded"}}), "server_error", True),
        (data({"error": {"message": "slow down", "code": 429}}), "rate_limited", True),
        (data({"error": "boom"}), "server_error", True),
        (openai_stream("x" * (ANSWER_LIMIT_CHARS + 1)), "too_large", False),
    ],
)
def test_what_goes_wrong_has_a_code(stream: bytes, code: str, retryable: bool) -> None:
    with pytest.raises(BackendError) as error:
        read(stream)
    assert (error.value.code, error.value.retryable) == (code, retryable)


def test_a_refusal_is_told_as_far_as_anybody_reads() -> None:
    pieces = [{"choices": [{"index": 0, "delta": {"refusal": "no " * 50}}]}] * 1_000
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    with pytest.raises(BackendError) as error:
        read(data(*pieces, end, "[DONE]"))
    assert str(error.value) == "refused: the model refuses: " + "no " * 100


def test_a_refusal_is_told() -> None:
    chunk = {"choices": [{"delta": {"refusal": "not that"}, "finish_reason": "stop"}]}
    with pytest.raises(BackendError, match="the model refuses: not that"):
        read(data(chunk))


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_in_another_way(raw: bytes) -> None:
    text = raw.decode("latin-1").replace("\n", " ").replace("\r", " ")
    with pytest.raises(BackendError) as error:
        read(f"data: {text}\n\n".encode())
    assert error.value.code in ("malformed", "disconnected", "server_error")
