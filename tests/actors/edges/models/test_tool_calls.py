"""Tools in the dialects: what is offered, how calls come, and that a strict server takes it all."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.models.anthropic import AnthropicDialect
from actors.edges.models.backend import Dialect
from actors.edges.models.failures import BackendError
from actors.edges.models.http import HttpBackend
from actors.edges.models.openai import OpenAiDialect
from actors.edges.models.sse import SseReader
from actors.edges.models.tool_calls import CALLS_LIMIT, NOTHING, Called, Pieces, read_arguments
from actors.edges.models.usage import Spent
from actors.edges.tools.tool import ToolSpec, arguments_schema
from actors.graphs.messages import AgentAsk, Round, ToolCall, ToolResult
from tests.actors.edges.models import conversation
from tests.actors.edges.models.stub_server import (
    Reply,
    anthropic_calls,
    anthropic_stream,
    ask,
    cut_everywhere,
    openai_calls,
    openai_stream,
    stub,
)

TOOLS = {
    name: ToolSpec(
        name=name,
        description=f"Does {name}.",
        schema=arguments_schema({"path": {"type": "string"}}),
    )
    for name in ("read_file", "list_files")
}
OPENAI, ANTHROPIC = OpenAiDialect("small", tools=TOOLS), AnthropicDialect("small", tools=TOOLS)
BOTH = pytest.mark.parametrize("dialect", [OPENAI, ANTHROPIC])
SCHEMA = {"type": "integer"}


def body(dialect: Dialect, **fields: Any) -> Any:
    asked = msgspec.json.decode(dialect.body(ask("why?", tools=("read_file",), **fields)))
    assert conversation.complaints(asked) == []
    return asked


def read(
    dialect: Dialect, stream: bytes, asked: AgentAsk | None = None, places: Sequence[int] = ()
) -> Any:
    reader = SseReader()
    answer = dialect.assembler(asked or ask(tools=("read_file",)), Spent())
    for chunk in cut_everywhere(stream, places):
        for event in reader.feed(chunk):
            answer.take(event)
    return answer.value()


def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more["name"]} if "name" in more else {}
    id_ = {"id": more["id"], "type": "function"} if "id" in more else {}
    return {"index": index, **id_, "function": {**name, "arguments": arguments}}


def rounds(*texts: str) -> tuple[Round, ...]:
    """A round a text, each with two calls, of which the second failed."""
    return tuple(
        Round(
            text=text,
            calls=(
                ToolCall(id=f"a{number}", tool="read_file", arguments={"path": "x"}),
                ToolCall(id=f"b{number}", tool="read_file", arguments="{broken"),
            ),
            results=(
                ToolResult(id=f"a{number}", ok=True, text=""),
                ToolResult(id=f"b{number}", ok=False, text="no"),
            ),
        )
        for number, text in enumerate(texts)
    )


# What is asked


def test_only_the_tools_of_the_agent_are_offered() -> None:
    assert [one["function"]["name"] for one in body(OPENAI)["tools"]] == ["read_file"]
    [tool] = body(ANTHROPIC)["tools"]
    assert tool == {
        "name": "read_file",
        "description": "Does read_file.",
        "input_schema": TOOLS["read_file"].schema,
    }
    assert "tool_choice" not in body(OPENAI)
    assert "tool_choice" not in body(ANTHROPIC)


@BOTH
def test_a_tool_that_there_is_not_is_an_error(dialect: Dialect) -> None:
    with pytest.raises(BackendError, match="there is no tool 'rm' here") as error:
        dialect.body(ask(tools=("read_file", "rm")))
    assert (error.value.code, error.value.retryable) == ("unsupported", False)


def test_a_schema_beside_tools_is_one_of_them_and_one_must_be_used() -> None:
    asked = body(OPENAI, schema=SCHEMA)
    assert asked["tool_choice"] == "required"
    assert "response_format" not in asked
    assert [one["function"]["name"] for one in asked["tools"]] == ["read_file", "answer"]
    other = body(ANTHROPIC, schema=SCHEMA)
    assert other["tool_choice"] == {"type": "any"}
    assert [one["name"] for one in other["tools"]] == ["read_file", "answer"]


def test_rounds_go_back_with_ids_in_order() -> None:
    user, assistant, first, second, problem = body(
        OPENAI, rounds=rounds("hm"), problem="too short"
    )["messages"]
    assert user["content"] == "why?"
    assert assistant["content"] == "hm"
    assert [call["id"] for call in assistant["tool_calls"]] == ["a0", "b0"]
    assert (first["tool_call_id"], first["content"]) == ("a0", NOTHING)
    assert second["content"] == "error: no"
    assert "too short" in problem["content"]
    messages = body(ANTHROPIC, rounds=rounds("hm", ""), problem="too short")["messages"]
    assert [one["type"] for one in messages[1]["content"]] == ["text", "tool_use", "tool_use"]
    assert [one["type"] for one in messages[3]["content"]] == ["tool_use", "tool_use"]
    assert [one.get("is_error") for one in messages[4]["content"]] == [False, True, None]
    assert "too short" in messages[4]["content"][2]["text"]


@BOTH
@given(st.lists(st.text(max_size=5), max_size=4), st.booleans(), st.booleans())
def test_any_conversation_is_one_that_strict_servers_take(
    dialect: Dialect, texts: list[str], schema: bool, problem: bool
) -> None:
    body(
        dialect,
        rounds=rounds(*texts),
        schema=SCHEMA if schema else None,
        problem="no" if problem else None,
    )


# What is answered


@given(st.lists(st.integers(0), max_size=20))
def test_calls_in_pieces_are_the_same_however_they_are_cut(places: list[int]) -> None:
    wanted = Called(
        "hm",
        (
            ToolCall(id="x", tool="read_file", arguments={"path": "ä"}),
            ToolCall(id="y", tool="list_files", arguments={}),
        ),
    )
    stream = openai_calls(
        piece(0, "", id="x", name="read_file"),
        piece(0, '{"pa'),
        piece(0, 'th": "ä"}'),
        piece(1, "", id="y", name="list_files"),
        text="hm",
    )
    assert read(OPENAI, stream, places=places) == wanted
    other = anthropic_calls(
        ("x", "read_file", ["", '{"path": "', 'ä"}']), ("y", "list_files", []), text="hm"
    )
    assert read(ANTHROPIC, other, places=places) == wanted


def test_calls_without_an_index_or_an_id_or_with_one_twice_have_their_own() -> None:
    whole = [piece(0, "{}", id=id_, name="read_file") for id_ in ("x", "y")]
    assert [one.id for one in read(OPENAI, openai_calls(*whole)).calls] == ["x", "y"]
    none = [piece(number, "{}", name="read_file") for number in (0, 1)]
    assert [one.id for one in read(OPENAI, openai_calls(*none)).calls] == ["call_1", "call_2"]
    bare: list[dict[str, Any]] = [
        {"index": None, "function": {"name": "read_file", "arguments": "{}"}},
        {"function": {"name": "list_files", "arguments": '{"pa'}},
        {"index": None, "id": None, "function": {"name": None, "arguments": 'th": ""}'}},
        {"function": None},
    ]
    calls = read(OPENAI, openai_calls(*bare)).calls
    assert [(one.id, one.tool, one.arguments) for one in calls] == [
        ("call_1", "read_file", {}), ("call_2", "list_files", {"path": ""}),
    ]  # fmt: skip
    twice = [piece(number, "{}", id="x", name="read_file") for number in (0, 1, 2)]
    ids = [one.id for one in read(OPENAI, openai_calls(*twice, reason="stop")).calls]
    assert ids == ["x", "x_2", "x_3"]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}), ("  ", {}), ('{"a": 1}', {"a": 1}), ("{broken", "{broken"),
        ("[" * 9_999, "[" * 9_999), ("3", 3), ('{"a": "\\u0000"}', {"a": "\ufffd"}),
    ],
)  # fmt: skip
def test_arguments_that_are_no_json_are_told_as_they_are(text: str, arguments: Any) -> None:
    assert read_arguments(text) == arguments


def test_the_tool_answer_is_the_value() -> None:
    asked = ask(tools=("read_file",), schema=SCHEMA)
    stream = openai_calls(piece(0, '{"value": 3}', id="x", name="answer"))
    assert read(OPENAI, stream, asked) == 3
    assert read(ANTHROPIC, anthropic_calls(("x", "answer", ['{"value"', ": 3}"])), asked) == 3
    # Servers that don't heed tool_choice answer by a text.
    assert read(OPENAI, openai_stream('{"value": 3}'), asked) == 3


def test_an_answer_beside_calls_comes_too_early() -> None:
    asked = ask(tools=("read_file",), schema=SCHEMA)
    calls = (("x", "answer", ['{"value": 3}']), ("y", "read_file", ["{}"]))
    assert [one.id for one in read(ANTHROPIC, anthropic_calls(*calls), asked).calls] == ["y"]


def test_calls_that_are_cut_short_or_too_many_are_failures() -> None:
    cut = openai_calls(piece(0, '{"pa', id="x", name="read_file"), reason="length")
    with pytest.raises(BackendError, match="cut_short"):
        read(OPENAI, cut)
    many = [piece(n, "{}", id=f"{n}", name="read_file") for n in range(CALLS_LIMIT + 1)]
    with pytest.raises(BackendError, match="more than 128 tool calls"):
        read(OPENAI, openai_calls(*many))
    long = [piece(0, "x" * 1_000, id="x", name="read_file") for _ in range(101)]
    with pytest.raises(BackendError, match="too_large"):
        read(OPENAI, openai_calls(*long))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.none() | st.text(max_size=3),
            st.none() | st.text(max_size=3),
            st.none() | st.text(max_size=3),
        ),
        max_size=20,
    )
)
def test_whatever_comes_each_call_has_an_id_of_its_own(
    parts: list[tuple[int, str | None, str | None, str | None]],
) -> None:
    pieces = Pieces()
    for part in parts:
        pieces.take(*part)
    calls = pieces.calls()
    assert len({one.id for one in calls}) == len(calls)
    assert all(one.id for one in calls)


# Over a connection


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_loop_of_tools_over_http(kind: str) -> None:
    openai = kind == "openai"
    call = (
        openai_calls(piece(0, '{"path": "a"}', id="x", name="read_file"))
        if openai
        else anthropic_calls(("x", "read_file", ['{"path": "a"}']))
    )
    end = (
        openai_stream("done")
        if openai
        else anthropic_stream({"type": "text_delta", "text": "done"})
    )
    dialect: Dialect = OPENAI if openai else ANTHROPIC
    async with stub(Reply([call]), Reply([end])) as server:
        backend = HttpBackend(dialect, server.url if openai else server.root, None)
        with trio.fail_after(10):
            called = await backend.answer(ask(tools=("read_file",)), Spent())
            result = ToolResult(id="x", ok=True, text="the file")
            one = Round(text=called.text, calls=called.calls, results=(result,))
            asked = ask(tools=("read_file",), rounds=(one,))
            assert await backend.answer(asked, Spent()) == "done"
        await backend.close()
    assert "the file" in str(server.seen[1].body["messages"][-1])
