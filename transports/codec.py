"""Messages to bytes and back: msgpack, with the frame limit."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, NoReturn

import msgspec

from transports.envelope import Envelope

FRAME_LIMIT_BYTES = 1 << 20  # a legal result takes at most 600,000 bytes, every character escaped


def plain(value: Any) -> int:
    """Return what msgspec has no form for as plain data: a Duration or a Size is its number."""
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a message can't hold a {type(value).__name__}")


def as_json(value: Any) -> Any:
    """Return what a log would have of a message or a value: JSON's own types."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=plain))


class FrameError(ValueError):
    """A frame cannot be sent or read; nothing of it was used."""


class Codec:
    """Encodes envelopes whose bodies are one of the given message types.

    Message types are tagged msgspec structs. Decoding checks every field's type, so a decoded
    envelope is as well-formed as one built here.
    """

    def __init__(self, message_types: Iterable[type[msgspec.Struct]]) -> None:
        body: Any = one_of(message_types)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=plain)
        self._decoder = msgspec.msgpack.Decoder(Envelope[body], ext_hook=refuse_extension)

    def encode(self, envelope: Envelope[Any]) -> bytes:
        """Return the frame's bytes; FrameError over the limit or on text that is no Unicode."""
        return encoded(self._encoder, envelope)

    def decode(self, frame: bytes) -> Envelope[Any]:
        """Return the envelope; FrameError on anything malformed, oversized or of another type."""
        check_size(frame)
        try:
            return self._decoder.decode(frame)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise FrameError(f"not a frame: {error}") from error


def one_of(message_types: Iterable[type[msgspec.Struct]]) -> Any:
    """Return the type of a body that is one of these messages, the same in whatever order."""
    return reduce(or_, sorted(set(message_types), key=lambda kind: kind.__name__))


def encoded(encoder: msgspec.msgpack.Encoder, value: Any) -> bytes:
    """Return a frame's bytes; FrameError over the limit, or on what can't be encoded."""
    try:
        frame = encoder.encode(value)
    except (TypeError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise FrameError(f"this message cannot be encoded: {error}") from error
    check_size(frame)
    return frame


def check_size(frame: bytes) -> None:
    """Raise FrameError for a frame over the limit."""
    if len(frame) > FRAME_LIMIT_BYTES:
        raise FrameError(f"frame of {len(frame)} bytes, the limit is {FRAME_LIMIT_BYTES}")


def refuse_extension(code: int, _data: memoryview) -> NoReturn:
    """Refuse msgpack's extension types, which JSON has not."""
    raise msgspec.DecodeError(f"extension type {code} is no JSON value")
