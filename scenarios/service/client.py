"""A client of a deployed process: one connection, a few questions, no actors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import msgspec
import trio
from anyio.abc import ByteStream

from actors.accounts.messages import PrincipalRevoked
from actors.edges.door import MARKS, Kind
from actors.messages import Failure, Message
from actors.raised import what_to_raise
from scenarios.graph_files import refusal
from scenarios.problems import ScenarioError
from scenarios.service.files import SHORTER
from scenarios.service.reach import cure_of
from transports.codec import FrameError
from transports.connection import LOST, BrokenLinkError, Connection, Timings, what_broke
from transports.envelope import Envelope
from transports.handshake import Hello, RefusedError, greet
from transports.wire import WireCodec

TOKEN_LIMIT_CHARS = 1000  # of any server; ours have 50
ARTICLES: Mapping[Kind, str] = {"owner": "an owner", "agent": "an agent", "device": "a desktop"}
# A socket that is not there, and one whose process was killed.
NOBODY = ("No such file", "Connection refused")
ASK_S = 30.0  # for an answer: longer than a server holds one back
BOOT = "client"  # a client has no state, so no start of it differs from another


class NoAnswerError(Exception):
    """The link broke, or no answer came in time: whether the question was heard is unknown."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Caller:
    """Asks one question after another over a connection."""

    def __init__(self, connection: Connection, target: str, heard: Iterable[type[Message]]) -> None:
        self._connection = connection
        self._target = target
        self._codec = WireCodec([*heard, PrincipalRevoked])
        self._numbers = count(1)

    async def ask(self, body: Message, limit_s: float = ASK_S) -> Any:
        """Return the answer. NoAnswerError if none comes, FrameError for what is not understood."""
        number = next(self._numbers)
        frame = self._codec.encode(Envelope(number, "", self._target, 0, 0, body))
        try:
            with trio.fail_after(limit_s):
                await self._connection.send(frame)
                while True:
                    told = self._codec.decode(await self._connection.receive(), self._target)
                    if told.reply_to == number or isinstance(told.body, PrincipalRevoked):
                        break
        except BrokenLinkError as error:
            raise NoAnswerError(error.reason) from error
        except trio.TooSlowError:
            raise NoAnswerError(f"no answer within {limit_s:g} s") from None
        if isinstance(told.body, PrincipalRevoked):
            raise RefusedError(told.body.reason)
        return told.body


@asynccontextmanager
async def calling(
    connect: Callable[[], Awaitable[ByteStream]],
    hello: Hello,
    heard: Iterable[type[Message]],
    target: str = "server",
    timings: Timings | None = None,
) -> AsyncIterator[Caller]:
    """Connect and greet; close at the end.

    RefusedError if the other side doesn't take us, NoAnswerError if nobody is there. What is raised
    meanwhile comes out as it is.
    """
    timings = timings or Timings()
    stream: ByteStream | None = None
    try:
        with trio.move_on_after(timings.connect_s):
            stream = await connect()
        if stream is None:
            raise NoAnswerError(f"no answer within {timings.connect_s:g} s")
        connection = await greet(stream, hello, timings)
    except RefusedError:
        raise
    except BrokenLinkError as error:
        raise NoAnswerError(error.reason) from error
    except LOST as error:
        raise NoAnswerError(what_broke(error)) from error
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.keep_alive)
            yield Caller(connection, target, heard)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise what_to_raise(group) from None
    finally:
        await connection.aclose()


def hello_with(token: str, kind: Kind, place: str) -> Hello:
    """Return the greeting of an agent or an owner who has a token.

    ScenarioError, which does not have the token, for what is none, or for something else.
    """
    token = token.strip()
    shown = token.isascii() and token.isprintable() and " " not in token
    if not (shown and 0 < len(token) <= TOKEN_LIMIT_CHARS):
        cure = f"the token of {ARTICLES[kind]} begins with {MARKS[kind]}"
        raise refusal(place, "this is no token", cure)
    for other, mark in MARKS.items():
        if other != kind and token.startswith(mark):
            what = f"this is the token of {ARTICLES[other]}, and {ARTICLES[kind]}'s is needed"
            raise refusal(place, what)
    return Hello(name=kind, boot=BOOT, token=token)


def call_problem(place: str, error: Exception, refused_cure: str) -> ScenarioError:
    """Return what to tell a user of a call that failed: place, cause, cure."""
    reason = getattr(error, "reason", str(error))
    cure = cure_of(reason)
    if cure is None and isinstance(error, RefusedError):
        cure = refused_cure
    return refusal(place, reason, cure or None)


class LocalCaller:
    """Asks a process of this machine, or of another, one question a connection, for a command.

    `absent` is what to do where no process has the socket, `refused` where it doesn't take us. One
    of another machine is not `local`.
    """

    place: str  # how errors name whom is asked
    heard: tuple[type[Message], ...]
    absent: tuple[str, str]  # a sentence, and its cure
    refused = ""

    def __init__(
        self,
        place: str,
        connect: Callable[[], Awaitable[ByteStream]],
        hello: Hello,
        *,
        local: bool = True,
    ) -> None:
        self.place = place
        self._local = local
        self._connect = connect
        self._hello = hello

    def ask(self, body: Message, target: str = "server") -> Any:
        """Return the answer; ScenarioError if there is none, or it is a refusal."""
        try:
            answer = trio.run(self._asked, body, target)
        except CALL_ERRORS as error:
            if self._local and isinstance(error, NoAnswerError):
                self._explain(error.reason)
            raise call_problem(self.place, error, self.refused) from None
        if isinstance(answer, Failure):
            raise refusal(self.place, f"{answer.error} ({answer.code})")
        return answer

    def _explain(self, reason: str) -> None:
        """Raise what is wrong with a local socket, if that is what a reason says."""
        if any(words in reason for words in NOBODY):
            raise refusal(self.place, *self.absent)
        if "Permission denied" in reason:
            raise refusal(self.place, "this is another user's", "ask as the user who started it")
        if "too long" in reason:
            raise refusal(self.place, "this path is too long for a socket", SHORTER)

    async def _asked(self, body: Message, target: str) -> Any:
        heard: list[type[Message]] = [*self.heard, Failure]
        async with calling(self._connect, self._hello, heard, target) as caller:
            return await caller.ask(body)


CALL_ERRORS = (NoAnswerError, RefusedError, FrameError)


def plain(body: msgspec.Struct) -> dict[str, Any]:
    """Return an answer as JSON has it, without the name of its type."""
    found: dict[str, Any] = msgspec.to_builtins(body)
    found.pop("type", None)
    return found
