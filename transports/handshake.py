"""The greeting of a connection: who is there, and does it speak our protocol.

The dialling side says `Hello`; the accepting side answers `Welcome` or `Refusal`, and closes after
a refusal. Each is a msgpack map, small, and due within `handshake_s`: a length and the map, as in
every protocol, and in this one a checksum behind them. The protocol number is read before the rest
and before the checksum, so that a version that changes those is still refused with a sentence that
both sides can log. The token is compared in constant time, is in no log, and is forgotten after the
greeting; on a network that isn't trusted TLS keeps it secret on the way.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated

import anyio
import msgspec
from anyio.abc import ByteStream

from transports.codec import FRAME_LIMIT_BYTES, FrameError
from transports.connection import (
    LOST,
    BrokenLinkError,
    Connection,
    Peer,
    Timings,
    close_now,
    what_broke,
)
from transports.frames import READ_BYTES, FrameBuffer, pack_greeting
from transports.wire import Address

PROTOCOL = 2  # grows when an old peer could not take part any more
HELLO_LIMIT_BYTES = 1 << 13  # what a stranger may make us hold: the longest legal hello fits
REASON_LIMIT_CHARS = 500

Token = Annotated[str, msgspec.Meta(max_length=1000)]
Reason = Annotated[str, msgspec.Meta(max_length=REASON_LIMIT_CHARS)]
# Why a hello is refused, None if it is not; now, or once somebody has been asked.
Accept = Callable[["Hello"], Awaitable[str | None] | str | None]

NOT_KNOWN = "unknown name or wrong token"  # one sentence for both: names can't be tried out


class Hello(Peer, frozen=True, kw_only=True, tag="hello", tag_field="type"):
    """What the dialling side says first. Its repr leaves the token out."""

    protocol: int = PROTOCOL
    name: Address
    boot: Address
    token: Token = ""

    def __repr__(self) -> str:
        return f"Hello(protocol={self.protocol}, name={self.name!r}, boot={self.boot!r})"


class Welcome(Peer, frozen=True, kw_only=True, tag="welcome", tag_field="type"):
    """The accepting side's answer to a hello that it takes."""

    protocol: int
    name: Address
    boot: Address


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag="refusal", tag_field="type"):
    """The accepting side's answer to any other; it closes the connection after it."""

    protocol: int
    reason: Reason


class _Version(msgspec.Struct):
    protocol: int


class RefusedError(BrokenLinkError):
    """The accepting side does not take this connection; `name` is what the dialler called itself.

    It is final for this connection alone: a dialler tries again, since what is refused now may be
    put right on the other side.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


_ENCODER = msgspec.msgpack.Encoder()
_VERSION = msgspec.msgpack.Decoder(_Version)
_GREETING: msgspec.msgpack.Decoder[Hello | Welcome | Refusal] = msgspec.msgpack.Decoder(
    Hello | Welcome | Refusal
)


def decode_hello(frame: bytes, me: Peer) -> Hello:
    """Return the hello in a frame; RefusedError, with a sentence for both sides, if it is none."""
    try:
        theirs = _VERSION.decode(frame).protocol
        if theirs == PROTOCOL and isinstance(hello := _GREETING.decode(frame), Hello):
            return hello
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise RefusedError(f"not a hello: {error}") from None
    if theirs == PROTOCOL:
        raise RefusedError("not a hello: it is the accepting side that answers")
    raise RefusedError(_mismatch(me.name, PROTOCOL, "the dialler", theirs))


def decode_answer(frame: bytes) -> Welcome:
    """Return the welcome in a frame; RefusedError for a refusal, BrokenLinkError for neither."""
    try:
        greeting = _GREETING.decode(frame)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BrokenLinkError(f"no answer to a hello: {error}") from None
    if isinstance(greeting, Refusal):
        raise RefusedError(f"refused: {greeting.reason}")
    if isinstance(greeting, Hello):
        raise BrokenLinkError("no answer to a hello: both sides dialled")
    if greeting.protocol != PROTOCOL:
        raise BrokenLinkError(_mismatch(greeting.name, greeting.protocol, "this side", PROTOCOL))
    return greeting


def _mismatch(name: str, theirs: int, other: str, ours: int) -> str:
    return (
        f"{name} speaks protocol {theirs} and {other} {ours}: "
        "run versions of pullcord on both sides that share one"
    )


def accept_tokens(tokens: Mapping[str, str]) -> Accept:
    """Return what accepts a dialler whose token is the one under its name.

    It takes as long for a name that is not there, and says the same.
    """

    def accept(hello: Hello) -> str | None:
        expected = tokens.get(hello.name)
        right = hmac.compare_digest((expected or "").encode(), hello.token.encode())
        return None if expected and right else NOT_KNOWN

    return accept


async def verdict(accept: Accept, hello: Hello) -> str | None:
    """Return why a hello is refused, None if it is not."""
    told = accept(hello)
    return told if told is None or isinstance(told, str) else await told


async def greet(stream: ByteStream, me: Hello, timings: Timings) -> Connection:
    """Say hello on a stream that this side opened, and return the connection.

    RefusedError if the other side refuses, BrokenLinkError if it doesn't answer in time or not by
    the protocol; the stream is closed then.
    """
    buffer = FrameBuffer(HELLO_LIMIT_BYTES)
    welcome: Welcome | None = None
    async with _closed_on_error(stream):
        with anyio.move_on_after(timings.handshake_s):
            await _send(stream, me)
            welcome = decode_answer(await _receive(stream, buffer))
        if welcome is None:
            raise BrokenLinkError(f"no welcome within {timings.handshake_s:g} s")
    return _connection(stream, welcome, timings, buffer)


async def answer(stream: ByteStream, me: Peer, accept: Accept, timings: Timings) -> Connection:
    """Hear the hello on a stream that the other side opened, answer, and return the connection.

    `accept` returns why a hello is refused, None if it is not; what it waits for is part of the
    greeting's time. RefusedError if it is refused, and for what is no hello of our protocol;
    BrokenLinkError if none comes in time. The stream is closed then.
    """
    buffer = FrameBuffer(HELLO_LIMIT_BYTES)
    hello: Hello | None = None
    refused: RefusedError | None = None
    async with _closed_on_error(stream):
        with anyio.move_on_after(timings.handshake_s) as scope:
            try:
                hello = await _admitted(await _receive(stream, buffer), me, accept)
                await _send(stream, Welcome(protocol=PROTOCOL, name=me.name, boot=me.boot))
            except RefusedError as error:
                refused = error
                await _refuse(stream, error.reason)
        if refused is not None:
            raise refused
        if hello is None or scope.cancelled_caught:
            raise BrokenLinkError(f"no greeting within {timings.handshake_s:g} s")
    return _connection(stream, hello, timings, buffer)


async def _admitted(frame: bytes, me: Peer, accept: Accept) -> Hello:
    hello = decode_hello(frame, me)
    reason = await verdict(accept, hello)
    if reason is not None:
        raise RefusedError(reason, hello.name)
    return hello


@asynccontextmanager
async def _closed_on_error(stream: ByteStream) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        await close_now(stream)
        raise


def _connection(
    stream: ByteStream, them: Peer, timings: Timings, buffer: FrameBuffer
) -> Connection:
    """Return the connection to `them`, without the token; what came after the greeting is kept."""
    buffer.limit_bytes = FRAME_LIMIT_BYTES
    peer = Peer(protocol=them.protocol, name=them.name, boot=them.boot)
    return Connection(stream, peer, timings, buffer)


async def _send(stream: ByteStream, message: msgspec.Struct) -> None:
    try:
        await stream.send(pack_greeting(_ENCODER.encode(message)))
    except LOST as error:
        raise BrokenLinkError(what_broke(error)) from error


async def _receive(stream: ByteStream, buffer: FrameBuffer) -> bytes:
    """Return the greeting's content; RefusedError if it is too long or its checksum is wrong.

    One of another protocol, and what is no greeting, are for the caller to refuse, unchecked.
    """
    try:
        while (content := buffer.take_greeting()) is None:
            await _read(stream, buffer)
        while _is_ours(content) and not buffer.take_check(content):
            await _read(stream, buffer)
    except FrameError as error:
        raise RefusedError(str(error)) from error
    return content


async def _read(stream: ByteStream, buffer: FrameBuffer) -> None:
    try:
        buffer.feed(await stream.receive(READ_BYTES))
    except LOST as error:
        raise BrokenLinkError(what_broke(error)) from error


def _is_ours(content: bytes) -> bool:
    try:
        return _VERSION.decode(content).protocol == PROTOCOL
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False


async def _refuse(stream: ByteStream, reason: str) -> None:
    """Say why, then read what still comes until the peer closes.

    A socket that is closed with unread bytes is reset, and the reset may overtake the sentence.
    """
    try:
        await _send(stream, Refusal(protocol=PROTOCOL, reason=reason[:REASON_LIMIT_CHARS]))
        while True:
            await stream.receive(READ_BYTES)
    except (BrokenLinkError, *LOST):
        pass  # nobody is there to be told
