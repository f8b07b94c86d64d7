"""The envelope every message travels in."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Body_co = TypeVar("Body_co", covariant=True)

SERIAL_BITS = 32  # an actor that sends a message a microsecond needs 71 minutes to use up one boot
BOOT_LIMIT = 1 << 21  # boot and serial together stay under 2^53, which JavaScript reads exactly


class Envelope(msgspec.Struct, Generic[Body_co], frozen=True, gc=False, omit_defaults=True):
    """One message on its way.

    ``id`` is (boot, serial) of the sender in one number, ``boot << 32 | serial``, so it never
    repeats. ``source`` is the sender: a host that receives from outside sets it from the link.
    ``reply_to`` is the id of the question that this answers, 0 for none. ``cause`` is the number of
    the log record whose turn sent it, 0 when no log is written. ``traceparent`` is the trace that
    it belongs to, in W3C's form; "" for none is left out of every encoding. Frozen and acyclic, so
    the garbage collector need not track it.
    """

    id: int
    source: str
    target: str
    reply_to: int
    cause: int
    body: Body_co
    traceparent: str = ""
