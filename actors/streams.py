"""Chance by name: counter-based streams of uniform numbers."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

_NUMBER = Struct("<Q").unpack_from
_BLOCK_BYTES = 64
_TO_UNIT = 2.0**-53


class HashedStream:
    """Uniform numbers that depend on a key and a purpose alone.

    Block n is BLAKE2b of (purpose, n) under the key, eight draws a block: nothing is seeded, and a
    draw for one purpose never shifts another's.
    """

    __slots__ = ("_block", "_blocks", "_first", "_key", "_left_bytes", "_purpose")

    def __init__(self, key: bytes, purpose: str) -> None:
        self._purpose = purpose.encode()
        self._first = b"%b/0" % self._purpose  # most streams of most replications have one block
        self._block = b""
        self.restart(key)

    def restart(self, key: bytes) -> None:
        """Begin anew under a key: cheaper than a new stream."""
        self._key = key
        self._blocks = self._left_bytes = 0

    @property
    def drawn(self) -> int:
        """How many numbers were drawn since it began."""
        return (self._blocks * _BLOCK_BYTES - self._left_bytes) // 8

    def skip(self, count: int) -> None:
        """Go on behind so many numbers, as if they had been drawn."""
        for _ in range(count):
            self.random()

    def go_to(self, drawn: int) -> None:
        """Be as after so many draws."""
        self._blocks, over = divmod(drawn * 8, _BLOCK_BYTES)
        self._left_bytes = 0
        if over:
            self.random()
            self._left_bytes = _BLOCK_BYTES - over

    def random(self) -> float:
        """Return the next number, uniform in [0, 1), in steps of 2^-53."""
        left_bytes = self._left_bytes
        if not left_bytes:
            blocks = self._blocks
            label = b"%b/%d" % (self._purpose, blocks) if blocks else self._first
            self._block = blake2b(label, key=self._key).digest()
            self._blocks = blocks + 1
            left_bytes = _BLOCK_BYTES
        self._left_bytes = left_bytes = left_bytes - 8  # the last number is drawn first
        number: int = _NUMBER(self._block, left_bytes)[0]
        return (number >> 11) * _TO_UNIT
