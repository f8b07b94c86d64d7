"""A model server on loopback: good streams, bad ones, slow ones, and ones that are given up."""

from typing import Any

import msgspec
import pytest
import trio

from actors.edges.models import http
from actors.edges.models.anthropic import AnthropicDialect
from actors.edges.models.failures import BackendError
from actors.edges.models.http import HttpBackend, ModelUrlError, check_base_url
from actors.edges.models.openai import OpenAiDialect
from actors.edges.models.usage import Spent
from tests.actors.edges.models.stub_server import (
    KEY,
    Reply,
    StubServer,
    anthropic_stream,
    ask,
    data,
    openai_stream,
    stub,
)

USAGE = {"prompt_tokens": 11, "completion_tokens": 7}
GOOD = openai_stream("he", "llo", usage=USAGE)


def openai(server: StubServer, key: str | None = KEY) -> HttpBackend:
    return HttpBackend(OpenAiDialect("small"), server.url, key, use_proxies=False)


async def failure(reply: Reply) -> tuple[BackendError, int]:
    """How a reply fails, and what it has used."""
    spent = Spent()
    async with stub(reply) as server:
        backend = openai(server)
        with pytest.raises(BackendError) as error:
            await backend.answer(ask("x" * 400), spent)
        await backend.close()
    assert KEY not in str(error.value)
    assert KEY not in repr(error.value)
    return error.value, spent.tokens


async def test_a_stream_is_an_answer_with_its_usage() -> None:
    spent = Spent()
    async with stub(Reply([GOOD]), Reply([GOOD[:70], GOOD[70:]])) as server:
        backend = openai(server)
        assert await backend.answer(ask(), spent) == "hello"
        assert await backend.answer(ask(), Spent()) == "hello"
        await backend.close()
    assert (spent.input_tokens, spent.output_tokens) == (11, 7)
    assert server.connections == 1
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.seen[0].headers["accept-encoding"] == "identity"


async def test_a_slow_stream_with_signs_of_life_is_waited_for() -> None:
    half = len(GOOD) // 2
    slow = [b": still at it\n\n", GOOD[:half], GOOD[half:]]
    async with stub(Reply(slow, pause_s=0.03)) as server:
        backend = openai(server)
        assert await backend.answer(ask(), Spent()) == "hello"
        await backend.close()


async def test_a_kept_connection_that_closes_as_it_is_used_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "STALE_LIMIT_S", 60.0)  # however slow this machine is
    spent = Spent()
    replies = Reply([GOOD]), Reply(end="silent"), Reply([GOOD])
    async with stub(*replies) as server:
        backend = openai(server)
        assert await backend.answer(ask(), Spent()) == "hello"
        assert await backend.answer(ask(), spent) == "hello"
        await backend.close()
    assert (server.connections, len(server.seen)) == (2, 3)
    assert spent.tokens == 18


@pytest.mark.parametrize(
    "replies",
    [
        [Reply(end="silent")],  # on a new connection
        [Reply([GOOD]), Reply(end="silent"), Reply(end="silent")],  # twice
        [Reply([GOOD]), Reply(end="silent", pause_s=0.05)],  # later than any idle one is closed
        [Reply([GOOD]), Reply([GOOD[:40]], end="abort")],  # after its first byte
        [Reply([GOOD]), Reply([], end="abort")],  # after its head
    ],
)
async def test_a_question_that_a_server_may_have_read_is_sent_once(
    replies: list[Reply], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = any(reply.pause_s for reply in replies)
    monkeypatch.setattr(http, "STALE_LIMIT_S", 0.04 if late else 60.0)
    async with stub(*replies) as server:
        backend = openai(server)
        for _ in replies[1:2]:
            assert await backend.answer(ask(), Spent()) == "hello"
        with pytest.raises(BackendError) as error:
            await backend.answer(ask(), Spent())
        await backend.close()
    assert (error.value.code, error.value.retryable) == ("disconnected", True)
    assert server.replies == []


@pytest.mark.parametrize("end", ["abort", "hang"])
async def test_an_answer_that_is_whole_needs_no_end_of_its_stream(end: str) -> None:
    async with stub(Reply([GOOD], end=end)) as server:
        backend = openai(server)
        with trio.fail_after(5):
            assert await backend.answer(ask(), Spent()) == "hello"
        await backend.close()


async def test_without_a_key_no_header_is_sent() -> None:
    async with stub(Reply([GOOD])) as server:
        backend = openai(server, None)
        await backend.answer(ask(), Spent())
        await backend.close()
    assert "authorization" not in server.seen[0].headers


async def test_anthropics_dialect_over_http() -> None:
    spent = Spent()
    stream = anthropic_stream({"type": "text_delta", "text": "hello"})
    async with stub(Reply([stream])) as server:
        backend = HttpBackend(AnthropicDialect("small"), server.root, KEY, use_proxies=False)
        assert await backend.answer(ask(), spent) == "hello"
        await backend.close()
    assert server.seen[0].headers["x-api-key"] == KEY
    assert spent.tokens == 34


async def test_a_busy_server_is_told_with_its_wish_and_has_used_nothing() -> None:
    body = b'{"error": {"message": "slow down"}}'
    error, tokens = await failure(
        Reply([body], 429, {"Content-Type": "application/json", "Retry-After": "7"})
    )
    assert str(error) == (
        "rate_limited: the model server is busy (429: slow down); it asks to wait 7 s"
    )
    assert (error.retryable, tokens) == (True, 0)


async def test_a_server_that_says_the_key_back_is_not_believed() -> None:
    body = msgspec.json.encode({"error": {"message": f"wrong key {KEY}!"}})
    error, _ = await failure(Reply([body], 401))
    assert "wrong key [key]!" in str(error)
    assert not error.retryable
    error, _ = await failure(Reply([data({"error": {"message": f"bad {KEY}"}})]))
    assert "bad [key]" in str(error)


async def test_what_comes_instead_of_a_stream_is_told() -> None:
    json = {"Content-Type": "application/json"}
    error, _ = await failure(Reply([b'{"error": {"message": "no stream here"}}'], headers=json))
    assert str(error).endswith("no event stream but application/json: no stream here")
    assert not error.retryable


async def test_nobody_is_followed_elsewhere() -> None:
    error, _ = await failure(Reply((), 307, {"Location": "http://127.0.0.1:1/"}))
    assert (error.code, error.retryable) == ("refused", False)


@pytest.mark.parametrize(
    ("reply", "code", "retryable"),
    [
        (Reply([openai_stream("half", reason=None)], end="abort"), "disconnected", True),
        (Reply([openai_stream("half", reason=None)]), "disconnected", True),
        (Reply([GOOD[:40], b"\xff\n\n"]), "malformed", True),
        (Reply([data("{")]), "malformed", True),
        (Reply([b"{}"], headers={"Content-Type": "application/json"}), "malformed", False),
        (Reply([b"x" * 3_000_000]), "malformed", True),
        (Reply([openai_stream("x" * 60_000, "y" * 60_000)]), "too_large", False),
        (Reply([b"oops"], 500), "server_error", True),
        (Reply([b"a" * 200_000], 400), "refused", False),
        (Reply([b"half"], 502, {"Content-Length": "999"}, end="abort"), "server_error", True),
    ],
)
async def test_what_goes_wrong_has_a_code(reply: Reply, code: str, retryable: bool) -> None:
    error, tokens = await failure(reply)
    assert (error.code, error.retryable) == (code, retryable)
    assert (tokens == 0) == (reply.status != 200)


async def test_a_server_that_is_not_there_is_named_without_its_path() -> None:
    backend = HttpBackend(OpenAiDialect("m"), "http://127.0.0.1:1/v1", KEY, use_proxies=False)
    spent = Spent()
    with pytest.raises(BackendError, match=r"no model server answers at 127\.0\.0\.1:1") as error:
        await backend.answer(ask(), spent)
    await backend.close()
    assert (error.value.code, error.value.retryable, spent.tokens) == ("unreachable", True, 0)


async def test_cancelled_in_the_middle_it_hangs_up_and_what_came_counts() -> None:
    spent = Spent()
    pieces = openai_stream("a", "b", "c", reason=None)
    async with stub(Reply([pieces], end="hang")) as server:
        backend = openai(server)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(backend.answer, ask("x" * 400), spent)
            await server.asked.wait()
            while spent.pieces < 3:  # noqa: ASYNC110  a count, which tells nobody of its changes
                await trio.sleep(0.001)
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await server.left.wait()
        await backend.close()
    assert spent.output_tokens == 3
    assert spent.input_tokens >= 100


async def test_cancelled_before_the_first_byte_the_prompt_counts() -> None:
    spent = Spent()
    async with stub(Reply((), end="hang")) as server:
        backend = openai(server)
        with trio.move_on_after(0.1):
            await backend.answer(ask("x" * 400), spent)
        await backend.close()
    assert spent.tokens >= 100


async def test_many_at_once() -> None:
    answers: list[Any] = []

    async def one(backend: HttpBackend) -> None:
        answers.append(await backend.answer(ask(), Spent()))

    async with stub(*[Reply([GOOD])] * 20) as server:
        backend = openai(server)
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(one, backend)
        await backend.close()
    assert answers == ["hello"] * 20


def test_a_backends_repr_has_no_key() -> None:
    backend = HttpBackend(OpenAiDialect("m"), "http://127.0.0.1:1/v1", KEY)
    assert KEY not in repr(backend)
    assert "127.0.0.1:1" in repr(backend)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:11434", "begin with"),
        ("ftp://host/v1", "begin with"),
        ("http://", "begin with"),
        ("http://host:99999/", "no URL"),
        ("http://[::1/", "no URL"),
        ("https://user:secret@host/v1", "holds a password"),
        ("http://host/v1?key=1", "no \\?"),
        ("http://host/v1#x", "no #"),
    ],
)
def test_a_base_url_that_is_none_is_refused(url: str, why: str) -> None:
    with pytest.raises(ModelUrlError, match=why) as error:
        check_base_url(url)
    assert "secret" not in str(error.value)


def test_a_base_url_loses_its_last_slash() -> None:
    assert check_base_url("http://localhost:8080/v1/") == "http://localhost:8080/v1"
