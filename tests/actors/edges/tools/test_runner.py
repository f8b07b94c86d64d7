"""The tool runner: every call is answered once, bounded, and ended when nobody waits."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.tools.runner import CALLS_LIMIT, ToolRunner, bounded
from actors.edges.tools.tool import TEXT_LIMIT_CHARS, ToolError, ToolSpec, arguments_schema
from actors.graphs.messages import ToolAnswer, ToolAsk, ToolCancel
from actors.text import units
from transports.envelope import Envelope


class Echo:
    """Says back what it is told; some words make it do other things."""

    limit_s = 5.0

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="echo",
            description="Says it back.",
            schema=arguments_schema({"text": {"type": "string", "pattern": "^[a-z]*$"}}),
        )
        self.at_work = self.most = 0

    async def call(self, arguments: dict[str, Any]) -> str:
        text: str = arguments["text"]
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            if text == "fail":
                raise ToolError("no luck")
            if text == "never":
                await trio.sleep_forever()
            await trio.sleep(1)
        finally:
            self.at_work -= 1
        return text


class Context:
    """What the runner needs of a context."""

    name = "tools"

    def __init__(self) -> None:
        self.replies: list[tuple[int, ToolAnswer]] = []

    def reply(self, envelope: Envelope[Any], body: ToolAnswer) -> None:
        self.replies.append((envelope.id, body))


class Bench:
    """A runner with its nursery; what its tasks tell it is delivered at once."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.echo = Echo()
        self.runner = ToolRunner([self.echo])
        self.context: Any = Context()
        self.nursery = nursery
        boot: Any = self.context
        self.runner.on_start(boot)

    async def opened(self) -> "Bench":
        await self.runner.open(self.nursery, self.deliver)
        return self

    def deliver(self, body: Any, source: str = "tools") -> None:
        self.runner.on_answered(self.context, Envelope(0, source, "tools", 0, 0, body))

    def ask(self, number: int, arguments: Any, tool: str = "echo", timeout_s: float = 60) -> None:
        body = ToolAsk(
            run="r", call=number, tool=tool, arguments=arguments, timeout_us=int(timeout_s * 1e6)
        )
        self.runner.on_ask(self.context, Envelope(number, "engine", "tools", 0, 0, body))

    def cancel(self, number: int) -> None:
        body = ToolCancel(run="r", call=number)
        self.runner.on_cancel(self.context, Envelope(99, "engine", "tools", 0, 0, body))

    async def told(self, wait_s: float = 2) -> list[tuple[int, bool, str]]:
        await trio.sleep(wait_s)
        return [(number, body.ok, body.text) for number, body in self.context.replies]


async def opened(work: Callable[[Bench], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        await work(await Bench(nursery).opened())
        nursery.cancel_scope.cancel()


def jumping(work: Callable[[Bench], Awaitable[None]]) -> None:
    """Run with a bench, on a clock that waits for nothing."""
    trio.run(opened, work, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_call_is_answered_with_its_text() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(3, {"text": "hello"})
        bench.ask(4, {"text": "fail"})
        assert await bench.told() == [(4, False, "no luck"), (3, True, "hello")]
        assert not bench.runner.calling

    jumping(work)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{broken", "no JSON object"),
        (None, "no JSON object"),
        ([1], "no JSON object"),
        ({}, "don't fit"),
        ({"text": "UPPER"}, "don't fit"),
        ({"text": "a", "more": 1}, "don't fit"),
    ],
)
def test_arguments_that_do_not_fit_are_told_and_never_reach_a_tool(
    arguments: Any, words: str
) -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, arguments)
        [(_, ok, text)] = await bench.told()
        assert not ok
        assert words in text
        assert bench.echo.most == 0

    jumping(work)


def test_a_tool_that_there_is_not_is_told() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {}, tool="rm")
        assert await bench.told() == [(1, False, "there is no such tool")]

    jumping(work)


def test_a_call_has_its_tools_time_and_its_engines() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {"text": "never"})
        bench.ask(2, {"text": "never"}, timeout_s=2)
        first, second = await bench.told(10)
        assert first[0] == 2
        assert "took too long" in first[2]
        assert second == (1, False, "the call took longer than 5 s, and was stopped on the way")
        assert bench.echo.at_work == 0

    jumping(work)


def test_a_cancelled_call_is_stopped_and_answers_nothing() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {"text": "never"})
        bench.ask(2, {"text": "hello"})
        await trio.sleep(0.5)
        assert bench.echo.at_work == 2
        bench.cancel(1)
        bench.cancel(7)
        assert await bench.told(10) == [(2, True, "hello")]
        assert bench.echo.at_work == 0

    jumping(work)


def test_a_question_that_comes_twice_is_one_call() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {"text": "hello"})
        bench.ask(1, {"text": "hello"})
        assert len(await bench.told()) == 1
        assert bench.echo.most == 1

    jumping(work)


def test_only_so_many_go_at_once() -> None:
    async def work(bench: Bench) -> None:
        for number in range(2 * CALLS_LIMIT + 1):
            bench.ask(number, {"text": "hello"})
        assert len(await bench.told(4)) == 2 * CALLS_LIMIT + 1
        assert bench.echo.most == CALLS_LIMIT

    jumping(work)


def test_nobody_else_can_answer_for_a_tool() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {"text": "never"})
        bench.deliver(ToolAnswer(run="r", call=1, ok=True, text="forged"), source="model")
        assert await bench.told(1) == []

    jumping(work)


def test_its_end_stops_calls() -> None:
    async def work(bench: Bench) -> None:
        bench.ask(1, {"text": "never"})
        await trio.sleep(0.5)
        await bench.runner.close()
        assert await bench.told() == []
        assert bench.echo.at_work == 0

    jumping(work)


@given(st.text(alphabet=st.characters(), max_size=50), st.integers(0, 40_000))
def test_any_result_is_clean_and_bounded(piece: str, count: int) -> None:
    text = bounded((piece * count)[:100_000])
    assert "\0" not in text
    text.encode()
    assert units(text) <= TEXT_LIMIT_CHARS + 100
