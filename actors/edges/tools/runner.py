"""The tool runner: the actor that has tools make the calls of a fleet engine's agents.

Whether a call may be made the engine has decided; whether it can be made as asked, a tool decides
by its settings. The waiting is done by a task a call, on the trio host, as in a live model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
import trio

from actors.actor import Context, Handler
from actors.edges.tools.servers import Connection
from actors.edges.tools.tool import TEXT_LIMIT_CHARS, Tool, ToolError
from actors.graphs.messages import ToolAnswer, ToolAsk, ToolCancel
from actors.graphs.schemas import SchemaError, problem_of
from actors.text import clean_text, cut, units
from transports.envelope import Envelope

CALLS_LIMIT: Final = 16  # at once: more wait, so that no agent fills the machine with processes


class _Call(msgspec.Struct, gc=False):
    """A call that goes on: who asked, what stops it."""

    question: Envelope[ToolAsk]
    scope: trio.CancelScope


class ToolRunner:
    """See the module's docstring.

    Its host calls `open` once its nursery is there, and `close` at the end.
    """

    def __init__(self, tools: Sequence[Tool], connections: Sequence[Connection] = ()) -> None:
        self.tools = {tool.spec.name: tool for tool in tools}
        self.connections = connections
        assert len(self.tools) == len(tools), "two tools have one name"
        self.calling: dict[tuple[str, int], _Call] = {}
        self.handlers: Mapping[type[Any], Handler] = {
            ToolAsk: self.on_ask,
            ToolCancel: self.on_cancel,
            ToolAnswer: self.on_answered,
        }

    async def open(self, nursery: trio.Nursery, tell_myself: Callable[[Any], None]) -> None:
        """Get the nursery for the calls' tasks, and what puts a message into the own mailbox."""
        self.nursery = nursery
        self.tell_myself = tell_myself
        self.room = trio.CapacityLimiter(CALLS_LIMIT)
        for connection in self.connections:
            connection.nursery = nursery

    async def close(self) -> None:
        """Stop what still goes on, and end the servers that tools are of."""
        for call in self.calling.values():
            call.scope.cancel()
        self.calling = {}
        for connection in self.connections:
            await connection.close()

    def on_start(self, context: Context) -> None:
        """Begin a boot."""
        self.calling = {}

    def on_timer(self, context: Context, timer: str) -> None:
        """Nothing: it sets none."""

    def on_ask(self, context: Context, envelope: Envelope[ToolAsk]) -> None:
        """Begin a call, once however often it is asked for."""
        ask = envelope.body
        if (ask.run, ask.call) in self.calling:
            return
        scope = trio.CancelScope(deadline=trio.current_time() + ask.timeout_us / 1e6)
        call = _Call(envelope, scope)
        self.calling[ask.run, ask.call] = call
        self.nursery.start_soon(self.work, call)

    async def work(self, call: _Call) -> None:
        """Make a call, and tell what came of it; of one that was stopped nothing."""
        ask = call.question.body
        how = partial(ToolAnswer, run=ask.run, call=ask.call)
        answer = how(ok=False, text="the call took too long, and was stopped on the way")
        with call.scope:
            try:
                answer = how(ok=True, text=bounded(await self.make(ask)))
            except ToolError as error:
                answer = how(ok=False, text=bounded(str(error)))
        if self.calling.get((ask.run, ask.call)) is call:
            self.tell_myself(answer)

    async def make(self, ask: ToolAsk) -> str:
        """Make a call, when there is room; ToolError if its tool or its arguments are none."""
        tool = self.tools.get(ask.tool)
        if tool is None:
            raise ToolError("there is no such tool")
        arguments = checked(tool, ask.arguments)
        async with self.room:
            with trio.move_on_after(tool.limit_s):
                return await tool.call(arguments)
        sentence = f"the call took longer than {tool.limit_s:g} s, and was stopped on the way"
        raise ToolError(sentence)

    def on_answered(self, context: Context, envelope: Envelope[ToolAnswer]) -> None:
        """Answer, unless the call was stopped meanwhile."""
        answer = envelope.body
        if envelope.source != context.name:
            return
        call = self.calling.pop((answer.run, answer.call), None)
        if call is not None:
            context.reply(call.question, answer)

    def on_cancel(self, context: Context, envelope: Envelope[ToolCancel]) -> None:
        """Stop a call: nobody waits for it."""
        call = self.calling.pop((envelope.body.run, envelope.body.call), None)
        if call is not None:
            call.scope.cancel()


def checked(tool: Tool, arguments: Any) -> dict[str, Any]:
    """Return a call's arguments; ToolError if they don't fit their tool's schema."""
    if not isinstance(arguments, dict):
        raise ToolError("the arguments are no JSON object: call again with one")
    try:
        problem = problem_of(tool.spec.schema, arguments)
    except SchemaError as error:
        raise ToolError(f"the tool can't be called: {error}") from None
    if problem is not None:
        raise ToolError(f"the arguments don't fit: {problem}")
    return arguments


def bounded(text: str) -> str:
    """Return a result as it may be sent: clean, and cut with a word about it."""
    text = clean_text(text)
    size_chars = units(text)
    if size_chars <= TEXT_LIMIT_CHARS:
        return text
    note = f"\n[cut: these are the first {TEXT_LIMIT_CHARS:,} of {size_chars:,} characters]"
    return cut(text, TEXT_LIMIT_CHARS) + note
