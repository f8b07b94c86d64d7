"""Envelopes as programs in other languages read them: a msgpack array of five, or of six.

The array is `[id, target, reply_to, cause, body]`, and behind it the traceparent of what is traced.
A sixth element of another form is dropped. The array has no source: who sent it is known from the
connection, and the receiving side sets it, so nobody can speak in another's name. The body is a map
whose "type" names the message. Values are those that JSON has; the rest of msgpack (binary,
extension types and so timestamps, keys that are no text, NaN and the infinities) is refused, also
on the way out, so that an actor's mistake is found where it was made and costs no connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from types import NoneType
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec.structs import astuple

from transports.codec import FrameError, check_size, encoded, one_of, plain, refuse_extension
from transports.envelope import Envelope
from transports.traceparent import NONE, accepted

Body = TypeVar("Body")

ADDRESS_LIMIT_CHARS = 200  # of an actor's name; longer ones are mistakes
Address = Annotated[str, msgspec.Meta(min_length=1, max_length=ADDRESS_LIMIT_CHARS)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]  # what JavaScript reads exactly


# What can't hold anything that JSON lacks; a field that is unset is left out.
_PLAIN = frozenset({str, int, bool, NoneType, msgspec.UnsetType})


class _Wire(msgspec.Struct, Generic[Body], array_like=True, frozen=True, gc=False):
    id: Number
    target: Address
    reply_to: Number
    cause: Number
    body: Body


class _Traced(_Wire[Body], Generic[Body], array_like=True, frozen=True, gc=False):
    traceparent: msgspec.Raw = msgspec.Raw(b"")  # not read before the rest is known to be good


_read_text = msgspec.msgpack.Decoder(str).decode


class WireCodec:
    """Encodes and decodes envelopes whose bodies are one of the given message types."""

    def __init__(self, message_types: Iterable[type[msgspec.Struct]]) -> None:
        body: Any = one_of(message_types)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=plain)
        self._decoder = msgspec.msgpack.Decoder(_Traced[body], ext_hook=refuse_extension)

    def encode(self, envelope: Envelope[Any]) -> bytes:
        """Return the frame's content, without the source.

        FrameError over the limit, and on what the other side would refuse in a value.
        """
        wire = (envelope.id, envelope.target, envelope.reply_to, envelope.cause, envelope.body)
        _check_values(envelope.body)
        traceparent = envelope.traceparent and accepted(envelope.traceparent)
        return encoded(self._encoder, (*wire, traceparent) if traceparent else wire)

    def decode(self, frame: bytes, source: str) -> Envelope[Any]:
        """Return the envelope as one from `source`, the name that the connection's peer proved.

        FrameError on anything malformed, oversized, of another type or of an unknown one.
        """
        check_size(frame)
        try:
            wire = self._decoder.decode(frame)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
            raise FrameError(f"not an envelope: {error}") from error
        _check_values(wire.body)
        return Envelope(
            wire.id, source, wire.target, wire.reply_to, wire.cause, wire.body, _traced(wire)
        )


def _traced(wire: _Traced[Any]) -> str:
    """Return an envelope's traceparent, "" for none and for whatever else stands in its place."""
    raw = wire.traceparent
    if not raw:
        return NONE
    try:
        return accepted(_read_text(raw))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NONE


def _check_values(body: msgspec.Struct) -> None:
    """Raise FrameError for a value that JSON lacks, at any depth; without recursion."""
    # Nearly every field is plain, and one by one they would take longer than all the encoding.
    todo: list[Any] = [each for each in astuple(body) if type(each) not in _PLAIN]
    while todo:
        value = todo.pop()
        if isinstance(value, str | int | None):
            continue
        if isinstance(value, float):
            if not isfinite(value):
                raise FrameError(f"{value} is no JSON value")
        elif isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise FrameError("a map has a key that is no text")
            todo.extend(value.values())
        elif isinstance(value, list | tuple):
            todo.extend(value)
        elif isinstance(value, msgspec.Struct):
            fields = (getattr(value, field) for field in value.__struct_fields__)
            todo.extend(each for each in fields if each is not msgspec.UNSET)
        else:
            raise FrameError(f"a {type(value).__name__} is no JSON value")
