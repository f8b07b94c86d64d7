"""The owner at the terminal: what they see, what decides, and that no agent's word does."""

import io
import os
import pty
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from actors.graphs.messages import Approval, Approvals, Decide
from scenarios.graph_owner import (
    FRAME,
    Choice,
    Chosen,
    Nobody,
    Settled,
    Terminal,
    TerminalOwner,
    framed,
    heading,
    shown_time,
)
from transports.envelope import Envelope


def approval(call: int = 1, **fields: Any) -> Approval:
    usual: dict[str, Any] = {
        "run": "r", "graph": "triage", "agent": 2, "label": "sort", "tool": "shell__show",
        "arguments": {"name": "a"}, "waited_us": 0, "left_us": 1,
    }  # fmt: skip
    return Approval(call=call, **{**usual, **fields})


class FakeAsker:
    """Answers what a test says, when it says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.cancelled: list[int] = []
        self.send, self.answers = trio.open_memory_channel[Choice](10)

    async def ask(self, approval: Approval) -> Choice:
        self.asked.append(approval.call)
        try:
            return await self.answers.receive()
        except trio.Cancelled:
            self.cancelled.append(approval.call)
            raise


class Bench:
    """An owner; what it tells itself is delivered at once."""

    name = "owner"

    def __init__(self, asker: Any) -> None:
        self.owner = TerminalOwner(asker)
        self.decided: list[tuple[int, bool]] = []
        self.context: Any = self

    async def opened(self, nursery: trio.Nursery) -> "Bench":
        await self.owner.open(nursery, self.deliver)
        self.owner.on_start(self.context)
        return self

    def request(self, _target: str, body: Any, _timeout_us: int) -> None:
        if isinstance(body, Decide):
            self.decided.append((body.call, body.allow))

    def deliver(self, body: Any, source: str = "owner") -> None:
        handler = self.owner.handlers[type(body)]
        handler(self.context, Envelope(0, source, "owner", 0, 0, body))

    async def wait_for(self, *approvals: Approval) -> None:
        self.deliver(Approvals(waiting=approvals), "engine")
        await trio.testing.wait_all_tasks_blocked()


async def test_calls_are_asked_for_one_after_another(nursery: trio.Nursery) -> None:
    asker = FakeAsker()
    bench = await Bench(asker).opened(nursery)
    await bench.wait_for(approval(1), approval(2))
    await bench.wait_for(approval(1), approval(2), approval(3))
    assert asker.asked == [1]
    for choice in ("yes", "no"):
        asker.send.send_nowait(choice)
        await trio.testing.wait_all_tasks_blocked()
    assert asker.asked == [1, 2, 3]
    assert bench.decided == [(1, True), (2, False)]


async def test_always_is_for_the_tool_of_the_graph_and_no_other(nursery: trio.Nursery) -> None:
    asker = FakeAsker()
    bench = await Bench(asker).opened(nursery)
    others = (
        approval(2, arguments={"name": "b"}),
        approval(3, tool="http_get"),
        approval(4, graph="triage/sub"),
        approval(5, run="s"),
    )
    await bench.wait_for(approval(1), *others)
    asker.send.send_nowait("always")
    await trio.testing.wait_all_tasks_blocked()
    await bench.wait_for(approval(6), *others[1:])
    assert bench.decided == [(1, True), (2, True), (6, True)]
    assert asker.asked == [1, 3]


async def test_a_call_that_waits_no_more_is_not_asked_for(nursery: trio.Nursery) -> None:
    asker = FakeAsker()
    bench = await Bench(asker).opened(nursery)
    await bench.wait_for(approval(1), approval(2), approval(3))
    bench.deliver(Settled(run="r", call=2))
    bench.deliver(Settled(run="r", call=1))
    bench.deliver(Settled(run="r", call=9))
    await trio.testing.wait_all_tasks_blocked()
    assert asker.cancelled == [1]
    assert asker.asked == [1, 3]
    assert bench.decided == []


async def test_nobody_else_chooses_for_the_owner(nursery: trio.Nursery) -> None:
    asker = FakeAsker()
    bench = await Bench(asker).opened(nursery)
    await bench.wait_for(approval(1))
    bench.deliver(Chosen(run="r", call=1, choice="always"), "model")
    bench.deliver(Settled(run="r", call=1), "tools")
    await bench.wait_for(approval(2))
    assert bench.decided == []
    assert asker.cancelled == []


async def test_where_nobody_is_the_answer_is_no(nursery: trio.Nursery) -> None:
    bench = await Bench(Nobody()).opened(nursery)
    await bench.wait_for(approval(1), approval(2))
    assert bench.decided == [(1, False), (2, False)]


# The terminal


class Screen:
    """Notes that it makes room."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pause(self) -> None:
        self.said.append("pause")

    def resume(self) -> None:
        self.said.append("resume")


class Line:
    """A terminal, of which the test has the other end."""

    def __init__(self, width_columns: int = 60) -> None:
        self.far, self.near = pty.openpty()
        self.stream, self.screen = io.StringIO(), Screen()
        self.terminal = Terminal(self.near, self.stream, self.screen, width_columns)

    def type(self, text: str) -> None:
        os.write(self.far, text.encode())

    async def asked(self, times: int = 1) -> None:
        with trio.fail_after(10):
            while self.stream.getvalue().count("allow it?") < times:  # noqa: ASYNC110  a text
                await trio.sleep(0.002)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    os.close(made.near)
    os.close(made.far)


async def choose(line: Line, *typed: str, **fields: Any) -> Choice:
    """What comes of words that are typed, each when it is asked for."""
    found: list[Choice] = []

    async def ask() -> None:
        found.append(await line.terminal.ask(approval(**fields)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        for times, word in enumerate(typed, 1):
            await line.asked(times)
            line.type(word)
    return found[0]


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        (["y\n"], "yes"),
        (["YES\n"], "yes"),
        (["n\n"], "no"),
        (["always\n"], "always"),
        (["\n", "yy\n", "yes please\n", " a \n"], "always"),
        (["\x04"], "no"),  # its end
    ],
)
async def test_only_a_word_that_is_typed_decides(
    line: Line, typed: list[str], choice: Choice
) -> None:
    assert await choose(line, *typed) == choice
    assert line.screen.said == ["pause", "resume"]


async def test_what_was_typed_before_the_question_is_no_answer(line: Line) -> None:
    line.type("y\n")
    assert await choose(line, "n\n") == "no"


async def test_a_question_that_is_cancelled_leaves_the_terminal(line: Line) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.terminal.ask, approval())
        await line.asked()
        nursery.cancel_scope.cancel()
    assert line.screen.said == ["pause", "resume"]
    assert line.stream.getvalue().endswith("it waits no more\n")


async def test_long_arguments_are_shown_when_they_are_asked_for(line: Line) -> None:
    assert await choose(line, "s\n", "y\n", arguments={"name": "x" * 1_000 + "END"}) == "yes"
    before, _, after = line.stream.getvalue().partition("more lines: s shows them")
    assert "END" not in before
    assert "END" in after


FORGED = "x\x1b[2J\r\nallow it? [y]es, [n]o, [a]lways: y\u202e\n" + " " * 55 + "allow it?"


@given(st.text(max_size=300) | st.just(FORGED), st.text(max_size=80), st.integers(30, 120))
def test_no_argument_leaves_its_frame(value: str, label: str, width_columns: int) -> None:
    one = approval(arguments={value[:50] or "a": value, "list": [value]}, label=label)
    lines = [*framed(one, width_columns), *heading(one, width_columns)]
    for line in lines:
        assert line.startswith((FRAME, "shell__show: agent 2 of triage wants"))
        assert line.isprintable() or not any(ord(char) < 32 or ord(char) == 127 for char in line)
        assert cell_len(line) < width_columns or line.startswith("shell__show")
        assert not any(char in line for char in "\x1b\r\n\u202e\u2028")


@pytest.mark.parametrize(
    ("time_us", "shown"),
    [(-1, "0 s"), (59_400_000, "59 s"), (119_000_000, "119 s"), (900_000_000, "15 min")],
)
def test_how_long_there_is_to_answer(time_us: int, shown: str) -> None:
    assert shown_time(time_us) == shown


def test_arguments_of_any_kind_are_shown() -> None:
    assert [*framed(approval(arguments={}), 60)] == ["  | no arguments"]
    assert [*framed(approval(arguments="{broken"), 60)] == ['  | "{broken"']
    assert [*framed(approval(arguments={"a": [1, None]}), 60)] == ["  | a: [1,null]"]
