"""The switchboard: many connections from outside, and to each the answers to what it asked.

What comes in gets an id of our own, so that no two connections can be confused, and its answer goes
back to the connection that asked, under the id that was asked; if that one is gone it is lost, and
no other gets it. What nobody asked for goes to its target's newest connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from actors.edges.line import Inside, Line
from transports.codec import FrameError
from transports.connection import Connection
from transports.envelope import Envelope
from transports.wire import WireCodec

LINES_LIMIT = 32  # connections of one name; the oldest gives way, since it may be half-open
PENDING_LIMIT = 1024  # questions of one connection whose answers are remembered to be its own

Amend = Callable[[Any], Any]  # an answer, as it is sent on


class Question(msgspec.Struct, gc=False):
    """A question from outside: whose, under which id there, and what becomes of its answer."""

    line: Line
    asked: int
    amend: Amend | None


class Switchboard:
    """See the module's docstring. `wire` encodes what goes out."""

    def __init__(self, inside: Inside, wire: WireCodec) -> None:
        self._inside = inside
        self._wire = wire
        self._lines: dict[str, list[Line]] = {}  # by name, the newest last
        self._questions: dict[int, Question] = {}
        self._pending: dict[Line, dict[int, None]] = {}  # the questions of each, the oldest first
        self.stopped = False

    @property
    def connections(self) -> Mapping[str, int]:
        """How many connections each name has."""
        return {name: len(lines) for name, lines in self._lines.items()}

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return all(line.idle for lines in self._lines.values() for line in lines)

    def stop_reading(self) -> None:
        """Hear nobody any more; what waits is still written."""
        self.stopped = True
        for lines in self._lines.values():
            for line in lines:
                line.stop_reading()

    def close(self, name: str, reason: str) -> None:
        """End every connection of a name."""
        for line in list(self._lines.get(name, ())):
            line.close(reason)

    async def run(
        self, name: str, connection: Connection, hear: Callable[[Line, bytes], Awaitable[None]]
    ) -> None:
        """Be a connection's life; `hear` is given its frames, one after another.

        BrokenLinkError when it ends, and what `hear` raises.
        """
        line = Line(connection)
        lines = self._lines.setdefault(name, [])
        if len(lines) >= LINES_LIMIT:
            lines[0].close("it has too many connections: the oldest is closed")
        lines.append(line)
        self._pending[line] = {}
        if self.stopped:
            line.stop_reading()
        try:
            await line.run(lambda frame: hear(line, frame))
        finally:
            lines.remove(line)
            if not lines:
                self._lines.pop(name, None)
            for number in self._pending.pop(line):
                self._questions.pop(number, None)

    async def enter(self, line: Line, told: Envelope[Any], amend: Amend | None = None) -> None:
        """Let a message in under an id of our own; waits while its target is behind."""
        number = self._inside.number()
        self._questions[number] = Question(line, told.id, amend)
        pending = self._pending[line]
        pending[number] = None
        if len(pending) > PENDING_LIMIT:
            oldest = next(iter(pending))
            del pending[oldest], self._questions[oldest]
        # It has not seen our log, so it can't say which record of it is the cause.
        await self._inside.enter(msgspec.structs.replace(told, id=number, cause=0))

    def take(self, envelope: Envelope[Any]) -> bool:
        """Send a message on its way; False if there is no connection for it."""
        body = envelope.body
        lines = self._lines.get(envelope.target, ())
        question = self._questions.pop(envelope.reply_to, None) if envelope.reply_to else None
        if question is not None:
            line, reply_to = question.line, question.asked
            del self._pending[line][envelope.reply_to]
            body = body if question.amend is None else question.amend(body)
        elif lines and not envelope.reply_to:
            line, reply_to = lines[-1], 0
        else:
            return False
        out = msgspec.structs.replace(envelope, reply_to=reply_to, body=body)
        try:
            if not line.post(self._wire.encode(out)):
                self._inside.lose(envelope, "queue full")
        except FrameError as error:
            self._inside.lose(envelope, f"it can't be sent: {error}")
        return True
