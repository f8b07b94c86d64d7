"""Every backend keeps the contract: it answers, and counts while it does."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from actors.edges.models.anthropic import AnthropicDialect
from actors.edges.models.backend import Backend
from actors.edges.models.command import CommandBackend
from actors.edges.models.http import HttpBackend
from actors.edges.models.openai import OpenAiDialect
from actors.edges.models.usage import Spent
from tests.actors.edges.models.stub_server import (
    Reply,
    StubServer,
    anthropic_stream,
    ask,
    openai_stream,
    stub,
)

USAGE = {"prompt_tokens": 25, "completion_tokens": 9}
# Answers "ab" at first, with usage; then it never ends.
COMMAND = """
if test -e "$1"; then echo half; exec sleep 100; fi
touch "$1"
echo '{"value": "ab", "tokens": 34}'
"""
Make = Callable[[StubServer, Path], Backend]
CASES: list[tuple[Make, list[Reply]]] = [
    (
        lambda server, _: HttpBackend(OpenAiDialect("m"), server.url, None, use_proxies=False),
        [
            Reply([openai_stream("a", "b", usage=USAGE)]),
            Reply([openai_stream("a", "b", reason=None)], end="hang"),
        ],
    ),
    (
        lambda server, _: HttpBackend(AnthropicDialect("m"), server.root, None, use_proxies=False),
        [
            Reply([anthropic_stream({"type": "text_delta", "text": "ab"})]),
            Reply([anthropic_stream({"type": "text_delta", "text": "a"}, reason=None)], end="hang"),
        ],
    ),
    (lambda _, path: CommandBackend(["sh", "-c", COMMAND, "sh", str(path / "asked")]), []),
]


@pytest.mark.parametrize(("make", "replies"), CASES, ids=["openai", "anthropic", "command"])
async def test_it_answers_and_one_that_is_cancelled_has_used_something(
    make: Make, replies: list[Reply], tmp_path: Path
) -> None:
    spent = Spent()
    async with stub(*replies) as server:
        backend = make(server, tmp_path)
        assert await backend.answer(ask(), spent) == "ab"
        assert spent.tokens == 34
        stopped = Spent()
        with trio.move_on_after(0.1) as scope:
            await backend.answer(ask(), stopped)
        assert scope.cancelled_caught
        assert stopped.tokens > 0
        await backend.close()
