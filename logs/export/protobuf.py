"""The wire format of protocol buffers, as far as a writer of traces needs it.

A message is the concatenation of its fields. Each field is a key, `number << 3 | wire type`, and
its value: a varint (type 0), eight bytes (1), or a length and so many bytes (2). See
https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from struct import pack

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_UINT64_LIMIT = 1 << 64


def varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; a negative one as 64 bits."""
    number %= _UINT64_LIMIT
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def integer(field: int, number: int) -> bytes:
    """Return a field with a number, a truth value or an enumeration's."""
    return varint(field << 3 | _VARINT) + varint(number)


def fixed64(field: int, number: int) -> bytes:
    """Return a field with a number of eight bytes."""
    return varint(field << 3 | _FIXED64) + pack("<Q", number)


def double(field: int, number: float) -> bytes:
    """Return a field with a double."""
    return varint(field << 3 | _FIXED64) + pack("<d", number)


def message(field: int, content: bytes) -> bytes:
    """Return a field with a message, or other bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Return a field with text; half of a surrogate pair, which UTF-8 has not, is replaced."""
    return message(field, content.encode("utf-8", "replace"))
