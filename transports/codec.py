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


class FrameError(ValueError):
    """A frame cannot be sent or read; nothing of it was used."""


class Codec:
    """Encodes envelopes whose bodies are one of the given message types.

    Message types are tagged msgspec structs. Decoding checks every field's type, so a decoded
    envelope is as well-formed as one built here.
    """

    def __init__(self, message_types: Iterable[type[msgspec.Struct]]) -> None:
        types = sorted(set(message_types), key=lambda message_type: message_type.__name__)
        body: Any = reduce(or_, types)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=plain)
        self._decoder = msgspec.msgpack.Decoder(Envelope[body], ext_hook=_refuse)

    def encode(self, envelope: Envelope[Any]) -> bytes:
        """Return the frame's bytes; FrameError over the limit or on text that is no Unicode."""
        try:
            frame = self._encoder.encode(envelope)
        except (TypeError, UnicodeEncodeError, OverflowError, RecursionError) as error:
            raise FrameError(f"this message cannot be encoded: {error}") from error
        if len(frame) > FRAME_LIMIT_BYTES:
            raise FrameError(f"frame of {len(frame)} bytes, the limit is {FRAME_LIMIT_BYTES}")
        return frame

    def decode(self, frame: bytes) -> Envelope[Any]:
        """Return the envelope; FrameError on anything malformed, oversized or of another type."""
        if len(frame) > FRAME_LIMIT_BYTES:
            raise FrameError(f"frame of {len(frame)} bytes, the limit is {FRAME_LIMIT_BYTES}")
        try:
            return self._decoder.decode(frame)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise FrameError(f"not a frame: {error}") from error


def _refuse(code: int, _data: memoryview) -> NoReturn:
    raise msgspec.DecodeError(f"extension type {code} is no JSON value")
