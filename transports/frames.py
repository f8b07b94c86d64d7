"""Frames on a byte stream: a header, then the content. No I/O is done here.

A header is three numbers of 4 bytes, most significant byte first: the content's length, the
content's CRC-32, and the CRC-32 of the eight bytes before. The header has a checksum of its own so
that a damaged length is found at once: by one over the whole frame it would be found only when as
many bytes have come, which may never be, and where frames are cut wrongly no checksum promises
anything. So in each of the two parts every single, double and burst error up to 32 bits is found
for certain, and any other but for one in 2^32. What is found ends the connection.

The length is looked at before anything is kept for the content, so a stranger who announces a
gigabyte is refused for four bytes. A frame of length 0 is a heartbeat: it says that the sender
lives, and nothing else.

The greeting has a form of its own, which every protocol keeps: a length and the content, so that
each can read any other's number. In this one a CRC-32 of both follows.
"""

from __future__ import annotations

from struct import Struct
from zlib import crc32

from transports.codec import FRAME_LIMIT_BYTES, FrameError

LENGTH_BYTES = 4
CRC_BYTES = 4
HEADER_BYTES = LENGTH_BYTES + 2 * CRC_BYTES
READ_BYTES = 1 << 16  # one read; with the frame limit it bounds what a connection holds in memory

_CHECKED = Struct(">II")  # what the header's own checksum covers
_CHECKED_BYTES = _CHECKED.size
_HEADER = Struct(">III")

# What people connect to the wrong port with, by how it begins.
_STRANGERS = {
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"PUT ": "HTTP",
    b"HEAD": "HTTP",
    b"OPTI": "HTTP",
    b"CONN": "HTTP",
    b"PRI ": "HTTP/2",
    b"HTTP": "HTTP",
    b"SSH-": "SSH",
}
_TLS_RECORDS = (b"\x16\x03", b"\x15\x03")  # a handshake and an alert
_DAMAGED = "bytes were damaged on the way, or their sender reckons it otherwise"


def pack(content: bytes) -> bytes:
    """Return the frame that carries `content`; FrameError if it is over the limit."""
    if len(content) > FRAME_LIMIT_BYTES:
        raise FrameError(f"frame of {len(content)} bytes, the limit is {FRAME_LIMIT_BYTES}")
    checked = _CHECKED.pack(len(content), crc32(content))
    return checked + crc32(checked).to_bytes(CRC_BYTES, "big") + content


def pack_greeting(content: bytes) -> bytes:
    """Return the bytes that carry a greeting's `content`, which is far below the limit."""
    checked = len(content).to_bytes(LENGTH_BYTES, "big") + content
    return checked + crc32(checked).to_bytes(CRC_BYTES, "big")


class FrameBuffer:
    """Cuts what arrives into frames.

    Call `take` until it returns None, then `feed` it the next piece. It never holds more than one
    frame at the limit and one piece. After a FrameError the stream has no more frames: close it.
    """

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes  # of a frame's content; it may change between two frames
        self._bytes: bytes | bytearray = b""  # most often one piece that is one frame

    def feed(self, piece: bytes) -> None:
        """Add what came, READ_BYTES at most."""
        if not self._bytes:
            self._bytes = piece
            return
        if isinstance(self._bytes, bytes):
            self._bytes = bytearray(self._bytes)
        self._bytes += piece

    @property
    def is_partial(self) -> bool:
        """Whether a frame has begun and is not taken yet."""
        return bool(self._bytes)

    def take(self) -> bytes | None:
        """Return the next frame's content, b"" for a heartbeat, None if it is not complete.

        FrameError if its length is over the limit or its header damaged, whether or not the
        content has come; and if the content is damaged.
        """
        held = self._bytes
        if len(held) < HEADER_BYTES:
            self._length()
            return None
        length, crc, header_crc = _HEADER.unpack_from(held)
        if length > self.limit_bytes:
            raise FrameError(_over_limit(bytes(held[:LENGTH_BYTES]), length, self.limit_bytes))
        if crc32(held[:_CHECKED_BYTES]) != header_crc:
            raise FrameError(f"a frame's header has a wrong checksum: {_DAMAGED}")
        content = self._cut(HEADER_BYTES, length)
        if content is not None and crc32(content) != crc:
            raise FrameError(f"a frame of {length} bytes has a wrong checksum: {_DAMAGED}")
        return content

    def take_greeting(self) -> bytes | None:
        """Return a greeting's content, None if it is not complete; FrameError over the limit.

        Whether a checksum follows depends on the protocol that it names.
        """
        length = self._length()
        return None if length is None else self._cut(LENGTH_BYTES, length)

    def take_check(self, content: bytes) -> bool:
        """Take the checksum behind a greeting of this content; False if it is not complete.

        FrameError if it is wrong.
        """
        check = self._cut(0, CRC_BYTES)
        if check is not None and not pack_greeting(content).endswith(check):
            raise FrameError(f"a greeting has a wrong checksum: {_DAMAGED}")
        return check is not None

    def _length(self) -> int | None:
        """Return the first number, None if it has not come; FrameError over the limit."""
        if len(self._bytes) < LENGTH_BYTES:
            return None
        head = bytes(self._bytes[:LENGTH_BYTES])
        length = int.from_bytes(head, "big")
        if length > self.limit_bytes:
            raise FrameError(_over_limit(head, length, self.limit_bytes))
        return length

    def _cut(self, start: int, length: int) -> bytes | None:
        """Take `start` bytes and return as many as `length` after them, None if some lack."""
        held, end = self._bytes, start + length
        if len(held) < end:
            return None
        if isinstance(held, bytes):
            if len(held) == end:
                self._bytes = b""
                return held[start:]
            held = self._bytes = bytearray(held)
        with memoryview(held) as view, view[start:end] as inside:
            content = bytes(inside)  # one copy; a slice of the buffer itself would be another
        del held[:end]
        return content


def _over_limit(head: bytes, length: int, limit_bytes: int) -> str:
    stranger = "TLS" if head[:2] in _TLS_RECORDS else _STRANGERS.get(head)
    if stranger is not None:
        return f"this is {stranger}, no frame: check the port and whether both sides use TLS"
    return f"frame of {length} bytes, the limit is {limit_bytes}"
