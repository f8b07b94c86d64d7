"""Frames on a byte stream: a length, then that many bytes. No I/O is done here.

A frame is a 4-byte length, most significant byte first, and as many bytes of content. The length is
read before anything is kept for the content, so a stranger who announces a gigabyte is refused for
four bytes. A frame of length 0 is a heartbeat: it says that the sender lives, and nothing else.
"""

from __future__ import annotations

from transports.codec import FRAME_LIMIT_BYTES, FrameError

LENGTH_BYTES = 4
READ_BYTES = 1 << 16  # one read; with the frame limit it bounds what a connection holds in memory

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


def pack(content: bytes) -> bytes:
    """Return the frame that carries `content`; FrameError if it is over the limit."""
    if len(content) > FRAME_LIMIT_BYTES:
        raise FrameError(f"frame of {len(content)} bytes, the limit is {FRAME_LIMIT_BYTES}")
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


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

        FrameError if its length is over the limit, whether or not the content has come.
        """
        held = self._bytes
        held_bytes = len(held)
        if held_bytes < LENGTH_BYTES:
            return None
        head = held[:LENGTH_BYTES]
        length = int.from_bytes(head, "big")
        if length > self.limit_bytes:
            raise FrameError(_over_limit(bytes(head), length, self.limit_bytes))
        end = LENGTH_BYTES + length
        if held_bytes < end:
            return None
        if isinstance(held, bytes):
            if held_bytes == end:
                self._bytes = b""
                return held[LENGTH_BYTES:]
            held = self._bytes = bytearray(held)
        with memoryview(held) as view, view[LENGTH_BYTES:end] as inside:
            content = bytes(inside)  # one copy; a slice of the buffer itself would be another
        del held[:end]
        return content


def _over_limit(head: bytes, length: int, limit_bytes: int) -> str:
    stranger = "TLS" if head[:2] in _TLS_RECORDS else _STRANGERS.get(head)
    if stranger is not None:
        return f"this is {stranger}, no frame: check the port and whether both sides use TLS"
    return f"frame of {length} bytes, the limit is {limit_bytes}"
